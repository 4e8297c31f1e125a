#include "app/commands/token_command.h"

#include "auth/jwt.h"
#include "auth/jwt_sign.h"
#include "auth/keys/dev_keys.h"
#include "auth/user_id.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "text/utf8.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    TTL_DEFAULT_SECONDS = 3600,
    COUNT_MAX = 1000 * 1000,
    SCOPE_BYTES_MAX = 1024,
    /* Signing dominates, so a long list is spread over the cores, this many tokens at a time. */
    BATCH_TOKENS = 256,
    THREADS_MAX = 16,
};

static const double TTL_MAX_SECONDS = 100.0 * 366 * 86400;

static const char USAGE[] =
    "usage: rollcall token USER [--ttl SECONDS] [--scope \"…\"] [--count N]\n"
    "                      [--key FILE | --data-dir DIR] [--issuer TEXT] [--audience TEXT]\n";

static const char HELP[] =
    "\n"
    "Prints a signed token (a JWT) for USER, to connect with during development and tests.\n"
    "\n"
    "  --ttl SECONDS    how long the token is valid, from now; may be fractional (default 3600)\n"
    "  --scope \"…\"      what its bearer may do besides being USER, separated by spaces:\n"
    "                   admin (the admin interface), deliver (push to other users' devices)\n"
    "  --count N        prints N tokens, one a line, for the users USER0, USER1, … USER<N-1>\n"
    "  --key FILE       the private key to sign with, in PEM: RSA, P-256 or Ed25519\n"
    "  --data-dir DIR   sign with the dev key of this directory, which is made when there is\n"
    "                   none (default ./rollcall-data)\n"
    "  --issuer TEXT    the token's `iss`, for servers with auth.issuer\n"
    "  --audience TEXT  the token's `aud`, for servers with auth.audience\n"
    "  --help           this text\n"
    "\n"
    "A server started with --dev and the same data directory accepts these tokens; any other\n"
    "does when --jwt-keys names the public half of the key (DIR/dev-jwks.json for the dev key).\n"
    "\n"
    "  rollcall token alice\n"
    "  rollcall token root --scope \"admin deliver\" --ttl 600\n"
    "  rollcall token load- --count 20000 > tokens.txt\n";

struct token_options {
    const char *user;
    const char *key_path; /* NULL: the dev key */
    const char *data_dir;
    struct slice scope;
    struct slice issuer;
    struct slice audience;
    double ttl_seconds;
    long count; /* 0: one token for USER as it stands */
    bool help;
};

static int report_token_usage(const char *what, const char *value)
{
    fprintf(stderr, "rollcall token: %s%s%s\n%s(--help says more)\n", what, value ? ": " : "",
            value ? value : "", USAGE);
    return EXIT_USAGE;
}

static bool parse_token_ttl(const char *text, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    return errno == 0 && end != text && *end == '\0' && *out > 0 && *out <= TTL_MAX_SECONDS;
}

static bool parse_token_count(const char *text, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *out >= 1 && *out <= COUNT_MAX;
}

static bool parse_token_text(const char *text, struct slice *out)
{
    *out = slice_of(text);
    return out->len > 0 && out->len <= SCOPE_BYTES_MAX && utf8_valid(*out);
}

/* Stores one option. Returns NULL, or what the option expects if the value is wrong. */
static const char *parse_token_option(struct token_options *options, int option, const char *value)
{
    switch (option) {
    case 't':
        return parse_token_ttl(value, &options->ttl_seconds)
                   ? NULL
                   : "--ttl expects seconds, more than 0 and at most a hundred years";
    case 'c':
        return parse_token_count(value, &options->count) ? NULL : "--count expects 1 to 1000000";
    case 's':
        return parse_token_text(value, &options->scope) ? NULL : "--scope expects names";
    case 'i':
        return parse_token_text(value, &options->issuer) ? NULL : "--issuer expects a text";
    case 'a':
        return parse_token_text(value, &options->audience) ? NULL : "--audience expects a text";
    case 'k':
        options->key_path = value;
        return NULL;
    default:
        options->data_dir = value;
        return NULL;
    }
}

/* The longest user id that --count produces must still be valid. */
static bool token_users_valid(const struct token_options *options)
{
    struct buffer longest = BUFFER_INIT;
    buffer_append_text(&longest, options->user);
    if (options->count > 0)
        buffer_append_int(&longest, options->count - 1);
    bool valid = !longest.failed && user_id_valid(buffer_slice(&longest));
    buffer_free(&longest);
    return valid;
}

static int check_token_options(struct token_options *options, int argc, char **argv)
{
    if (optind == argc)
        return report_token_usage("which USER is the token for?", NULL);
    if (argc - optind > 1)
        return report_token_usage("one USER at a time, see --count", argv[optind + 1]);
    options->user = argv[optind];
    if (options->key_path && options->data_dir)
        return report_token_usage("--key and --data-dir exclude each other", NULL);
    if (!options->data_dir)
        options->data_dir = "./rollcall-data";
    if (!token_users_valid(options))
        return report_token_usage("a user id is 1 to 128 bytes of UTF-8 without control characters",
                                  NULL);
    return EXIT_SUCCESS;
}

static int parse_token_options(int argc, char **argv, struct token_options *options)
{
    static const struct option known[] = {
        {"ttl", required_argument, NULL, 't'},
        {"scope", required_argument, NULL, 's'},
        {"count", required_argument, NULL, 'c'},
        {"key", required_argument, NULL, 'k'},
        {"data-dir", required_argument, NULL, 'd'},
        {"issuer", required_argument, NULL, 'i'},
        {"audience", required_argument, NULL, 'a'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int option;
    optind = 0; /* restarts GNU getopt */
    while ((option = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (option == 'h') {
            options->help = true;
            return EXIT_SUCCESS;
        }
        if (option == ':')
            return report_token_usage("this option expects a value", argv[optind - 1]);
        if (option == '?')
            return report_token_usage("unknown option", argv[optind - 1]);
        const char *expected = parse_token_option(options, option, optarg);
        if (expected)
            return report_token_usage(expected, optarg);
    }
    return check_token_options(options, argc, argv);
}

static struct jwt_signer *open_token_signer(const struct token_options *options,
                                            struct auth_error *error)
{
    struct dev_keys keys;
    if (options->key_path)
        return jwt_signer_load(options->key_path, error);
    if (!dev_keys_ensure(options->data_dir, &keys, error))
        return NULL;
    return jwt_signer_load(keys.private_path, error);
}

/* Tokens that one thread signs. */
struct batch {
    const struct jwt_signer *signer;
    const struct token_options *options;
    struct jwt_sign_claims claims;
    long first; /* number of the first user; -1: the user has no number */
    long count;
    struct buffer lines;
    bool ok;
};

static void *sign_token_batch(void *argument)
{
    struct batch *batch = argument;
    struct buffer user = BUFFER_INIT;
    buffer_clear(&batch->lines);
    batch->ok = true;
    for (long i = 0; i < batch->count && batch->ok; i++) {
        buffer_clear(&user);
        buffer_append_text(&user, batch->options->user);
        if (batch->first >= 0)
            buffer_append_int(&user, batch->first + i);
        batch->claims.user = buffer_slice(&user);
        size_t from = batch->lines.len;
        batch->ok = !user.failed && jwt_sign(batch->signer, &batch->claims, &batch->lines) &&
                    batch->lines.len - from <= JWT_BYTES_MAX;
        buffer_append_byte(&batch->lines, '\n');
        batch->ok = batch->ok && !batch->lines.failed;
    }
    buffer_free(&user);
    return NULL;
}

/* Signs the batches in parallel, the first one on this thread. If a thread cannot be created, this thread does
 * its work. */
static void sign_token_batches(struct batch *batches, size_t batch_count)
{
    pthread_t threads[THREADS_MAX];
    bool started[THREADS_MAX] = {false};
    for (size_t i = 1; i < batch_count; i++)
        started[i] = pthread_create(&threads[i], NULL, sign_token_batch, &batches[i]) == 0;
    for (size_t i = 0; i < batch_count; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        else
            sign_token_batch(&batches[i]);
    }
}

static bool print_token_batches(const struct batch *batches, size_t batch_count)
{
    for (size_t i = 0; i < batch_count; i++) {
        if (!batches[i].ok) {
            fputs("rollcall token: signing failed\n", stderr);
            return false;
        }
        if (fwrite(batches[i].lines.data, 1, batches[i].lines.len, stdout) !=
            batches[i].lines.len) {
            fprintf(stderr, "rollcall token: standard output: %s\n", strerror(errno));
            return false;
        }
    }
    return true;
}

/* Assigns the next users to as many batches as needed. Returns how many batches are used. */
static size_t fill_token_batches(struct batch *batches, size_t batch_max, long *next, long count)
{
    size_t used = 0;
    for (; used < batch_max && *next < count; used++) {
        long left = count - *next;
        batches[used].first = *next;
        batches[used].count = left < BATCH_TOKENS ? left : BATCH_TOKENS;
        *next += batches[used].count;
    }
    return used;
}

static bool print_tokens(const struct batch *model)
{
    struct batch batches[THREADS_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t batch_max = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
    long count = model->options->count;
    bool ok = true;
    for (size_t i = 0; i < batch_max; i++)
        batches[i] = *model;
    if (count == 0) {
        batches[0].first = -1;
        batches[0].count = 1;
        sign_token_batches(batches, 1);
        ok = print_token_batches(batches, 1);
    }
    for (long next = 0; next < count && ok;) {
        size_t used = fill_token_batches(batches, batch_max, &next, count);
        sign_token_batches(batches, used);
        ok = print_token_batches(batches, used);
    }
    for (size_t i = 0; i < batch_max; i++)
        buffer_free(&batches[i].lines);
    return ok && fflush(stdout) == 0;
}

int token_command(int argc, char **argv)
{
    struct token_options options = {.ttl_seconds = TTL_DEFAULT_SECONDS};
    struct auth_error error;
    struct clock clock;
    int status = parse_token_options(argc, argv, &options);
    if (status != EXIT_SUCCESS)
        return status;
    if (options.help) {
        printf("%s%s", USAGE, HELP);
        return EXIT_SUCCESS;
    }
    struct jwt_signer *signer = open_token_signer(&options, &error);
    if (!signer) {
        fprintf(stderr, "rollcall token: %s\n", error.text);
        return EXIT_FAILURE;
    }
    clock_advance(&clock);
    struct batch model = {
        .signer = signer,
        .options = &options,
        .claims = {.scope = options.scope,
                   .issuer = options.issuer,
                   .audience = options.audience,
                   .issued_at_wall_ms = clock.wall_ms,
                   .expires_at_wall_ms = clock.wall_ms + (int64_t)(options.ttl_seconds * 1000)}};
    bool ok = print_tokens(&model);
    jwt_signer_free(&signer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#include "app/commands/check_command.h"

#include "check/check.h"
#include "log/log.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_HOLDS = 0, EXIT_VIOLATED = 1, EXIT_CANNOT = 2 };

enum { SECONDS_MAX = 3600, SHOWN_DEFAULT = 100, COUNT_MAX = 1000000 };

static const char USAGE[] =
    "usage: rollcall check --state URL [--window SECONDS] [--patience SECONDS] "
    "[--limit N] [--rate KEYS] [--ca-file FILE] [--certificate FILE --key FILE]\n";

static const char HELP[] =
    "\n"
    "Verifies the invariants of routing and presence on a live Redis without disturbing it. Each violation\n"
    "is checked again, so that a change in progress raises no false alarm.\n"
    "\n"
    "  --state URL         redis://HOST:PORT[/DB], redis-cluster://HOST:PORT,HOST:PORT or\n"
    "                      redis-sentinel://HOST:PORT,HOST:PORT/MASTER[/DB]\n"
    "  --window SECONDS    the gateways' presence.expiry_window_seconds (default: as in Redis, else 15)\n"
    "  --patience SECONDS  how long a violation must last to count (default: the window plus 2)\n"
    "  --limit N           print at most N violations (default 100)\n"
    "  --rate KEYS         check at most this many keys per second (default 5000)\n"
    "  --ca-file FILE      certificates to trust if the URL asks for TLS, PEM\n"
    "  --certificate FILE  certificate to show a Redis that asks for one, PEM\n"
    "  --key FILE          its private key, PEM\n"
    "  --help              this text\n"
    "\n"
    "Exit status: 0 all invariants hold, 1 violations (each is printed), 2 they could not be checked.\n";

struct check_arguments {
    struct blocking_redis_options redis;
    int64_t window_ms;
    int64_t patience_ms;
    size_t limit;
    size_t rate;
    bool help;
};

static int report_check_failure(const char *why)
{
    fprintf(stderr, "rollcall check: %s\n", why);
    return EXIT_CANNOT;
}

static bool parse_check_seconds(const char *text, int64_t *out_ms)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end || !isfinite(seconds) || seconds <= 0 || seconds > SECONDS_MAX)
        return false;
    *out_ms = (int64_t)(seconds * 1000);
    return true;
}

static bool parse_check_count(const char *text, size_t *out)
{
    char *end;
    errno = 0;
    long long count = strtoll(text, &end, 10);
    if (errno || end == text || *end || count < 1 || count > COUNT_MAX)
        return false;
    *out = (size_t)count;
    return true;
}

static bool parse_check_option(struct check_arguments *arguments, int option)
{
    switch (option) {
    case 's':
        arguments->redis.url = optarg;
        return true;
    case 'c':
        arguments->redis.ca_file = optarg;
        return true;
    case 'o':
        arguments->redis.certificate_file = optarg;
        return true;
    case 'k':
        arguments->redis.key_file = optarg;
        return true;
    case 'w':
        return parse_check_seconds(optarg, &arguments->window_ms);
    case 'p':
        return parse_check_seconds(optarg, &arguments->patience_ms);
    case 'l':
        return parse_check_count(optarg, &arguments->limit);
    case 'r':
        return parse_check_count(optarg, &arguments->rate);
    case 'h':
        arguments->help = true;
        return true;
    default:
        return false;
    }
}

static int report_check(const struct check *check, size_t limit)
{
    const struct violations *violations = &check->context.violations;
    violations_print(violations, limit, stdout);
    printf("%zu keys, %zu users, %zu connections, %zu other keys: ", check->keys,
           check->context.users, check->context.connections, check->foreign);
    if (violations->count == 0) {
        puts("all invariants hold");
        return EXIT_HOLDS;
    }
    printf("%zu violations\n", violations->count + violations->more);
    return EXIT_VIOLATED;
}

static int run_check(const struct check_arguments *arguments)
{
    struct blocking_redis redis;
    char why[BLOCKING_REDIS_WHY_MAX];
    struct check *check = calloc(1, sizeof(*check));
    if (!check)
        return report_check_failure("out of memory");
    log_init(LOG_LEVEL_ERROR, false); /* this command reports the errors of the client itself */
    if (!blocking_redis_open(&redis, &arguments->redis, why)) {
        free(check);
        return report_check_failure(why);
    }
    check->context.redis = &redis;
    check->context.window_ms = arguments->window_ms;
    check->keys_a_second = arguments->rate;
    check->patience_ms = arguments->patience_ms;
    int status = check_run(check) ? report_check(check, arguments->limit)
                                  : report_check_failure(check->context.why);
    blocking_redis_close(&redis);
    violations_free(&check->context.violations);
    free(check);
    return status;
}

int check_command(int argc, char **argv)
{
    static const struct option OPTIONS[] = {{"state", required_argument, NULL, 's'},
                                            {"ca-file", required_argument, NULL, 'c'},
                                            {"window", required_argument, NULL, 'w'},
                                            {"patience", required_argument, NULL, 'p'},
                                            {"limit", required_argument, NULL, 'l'},
                                            {"rate", required_argument, NULL, 'r'},
                                            {"certificate", required_argument, NULL, 'o'},
                                            {"key", required_argument, NULL, 'k'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct check_arguments arguments = {.limit = SHOWN_DEFAULT, .rate = CHECK_KEYS_A_SECOND};
    bool valid = true;
    int option;
    while (valid && (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1)
        valid = parse_check_option(&arguments, option);
    if (valid && arguments.help)
        return printf("%s%s", USAGE, HELP) < 0;
    if (valid && !arguments.redis.url)
        return report_check_failure("--state is missing: name the Redis of the gateways, such as "
                                    "--state redis://127.0.0.1:6379");
    valid &= !arguments.redis.certificate_file == !arguments.redis.key_file;
    if (!valid || optind != argc) {
        fputs(USAGE, stderr);
        return EXIT_CANNOT;
    }
    return run_check(&arguments);
}

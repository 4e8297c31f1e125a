#include "app/commands/token_command.h"

#include "auth/jwt.h"
#include "auth/keys/dev_keys.h"
#include "base/buffer.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 16, STATUS_USAGE = 2 };

struct fixture {
    char data_dir[64];
    struct buffer output; /* of the last run */
};

static int make_directory(void **state)
{
    static struct fixture fixture;
    snprintf(fixture.data_dir, sizeof(fixture.data_dir), P_tmpdir "/rollcall-token-XXXXXX");
    *state = &fixture;
    return mkdtemp(fixture.data_dir) ? 0 : -1;
}

static int remove_directory(void **state)
{
    struct fixture *fixture = *state;
    char path[128];
    snprintf(path, sizeof(path), "%s/" DEV_KEYS_PRIVATE_NAME, fixture->data_dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/" DEV_KEYS_PUBLIC_NAME, fixture->data_dir);
    unlink(path);
    buffer_free(&fixture->output);
    return rmdir(fixture->data_dir);
}

static void read_output(FILE *file, struct buffer *out)
{
    char piece[4096];
    size_t got;
    buffer_clear(out);
    rewind(file);
    while ((got = fread(piece, 1, sizeof(piece), file)) > 0)
        buffer_append(out, piece, got);
}

/* Runs the command with `arguments` (NULL ends them) and keeps its output. */
static int run_token_command(struct fixture *fixture, const char *const *arguments)
{
    char *argv[ARGUMENTS_MAX] = {(char *)"token"};
    int argc = 1;
    for (; arguments[argc - 1]; argc++)
        argv[argc] = (char *)arguments[argc - 1];
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    int status = token_command(argc, argv);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    read_output(file, &fixture->output);
    fclose(file);
    return status;
}

#define RUN(fixture, ...) run_token_command((fixture), (const char *const[]){__VA_ARGS__, NULL})

/* Verifies one line of the output with the public half of the dev key, `later_ms` from now. */
static enum jwt_result verify_token_later(struct fixture *fixture, struct slice token,
                                          int64_t later_ms, struct identity *out)
{
    char path[128];
    struct auth_error error;
    struct clock clock;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    snprintf(path, sizeof(path), "%s/" DEV_KEYS_PUBLIC_NAME, fixture->data_dir);
    struct key_set *keys = key_set_load(path, &error);
    assert_non_null(keys);
    clock_advance(&clock);
    enum jwt_result result = jwt_verify(keys, &policy, token, clock.wall_ms + later_ms, out);
    key_set_release(&keys);
    return result;
}

static enum jwt_result verify_token(struct fixture *fixture, struct slice token,
                                    struct identity *out)
{
    return verify_token_later(fixture, token, 0, out);
}

static void token_is_signed_with_the_dev_key(void **state)
{
    struct fixture *fixture = *state;
    struct identity identity;
    struct slice token;
    assert_int_equal(RUN(fixture, "alice", "--scope", "deliver", "--data-dir", fixture->data_dir),
                     0);
    struct slice rest = slice_split(buffer_slice(&fixture->output), '\n', &token);
    assert_int_equal(rest.len, 0);
    assert_int_equal(verify_token(fixture, token, &identity), JWT_OK);
    assert_true(slice_is(identity_user(&identity), "alice"));
    assert_int_equal(identity.scopes, IDENTITY_SCOPE_DELIVER);
}

/* More than one batch, so that the order across threads is tested. */
static void count_prints_numbered_users_in_order(void **state)
{
    struct fixture *fixture = *state;
    char expected[16];
    struct identity identity;
    assert_int_equal(RUN(fixture, "u", "--count", "600", "--data-dir", fixture->data_dir), 0);
    struct slice rest = buffer_slice(&fixture->output);
    for (int i = 0; i < 600; i++) {
        struct slice token;
        rest = slice_split(rest, '\n', &token);
        if (i % 97 && i != 599)
            continue;
        assert_int_equal(verify_token(fixture, token, &identity), JWT_OK);
        snprintf(expected, sizeof(expected), "u%d", i);
        assert_true(slice_is(identity_user(&identity), expected));
    }
    assert_int_equal(rest.len, 0);
}

static void token_expires_after_its_ttl(void **state)
{
    struct fixture *fixture = *state;
    struct identity identity;
    struct slice token;
    assert_int_equal(RUN(fixture, "alice", "--ttl", "30.5", "--data-dir", fixture->data_dir), 0);
    slice_split(buffer_slice(&fixture->output), '\n', &token);
    assert_int_equal(verify_token(fixture, token, &identity), JWT_OK);
    assert_int_equal(verify_token_later(fixture, token, 31 * 1000, &identity), JWT_EXPIRED);
}

static void wrong_arguments_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const cases[][4] = {
        {NULL},
        {"", NULL},
        {"a\nb", NULL},
        {"a", "b", NULL},
        {"a", "--ttl", NULL},
        {"a", "--ttl", "0", NULL},
        {"a", "--ttl", "nan", NULL},
        {"a", "--ttl", "1h", NULL},
        {"a", "--count", "0", NULL},
        {"a", "--count", "1000001", NULL},
        {"a", "--scope", "\xff", NULL},
        {"a", "--key=x", "--data-dir=y", NULL},
        {"a", "--unknown", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(run_token_command(fixture, cases[i]), STATUS_USAGE);
        assert_int_equal(fixture->output.len, 0);
    }
    assert_int_equal(RUN(fixture, "a", "--key", "/nonexistent"), 1);
    assert_int_equal(RUN(fixture, "--help"), 0);
    assert_non_null(memmem(fixture->output.data, fixture->output.len, "--data-dir", 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(token_is_signed_with_the_dev_key, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(count_prints_numbered_users_in_order, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(token_expires_after_its_ttl, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(wrong_arguments_are_refused, make_directory,
                                        remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "auth/keys/dev_keys.h"

#include "auth/jwt.h"
#include "auth/jwt_sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char parent[64];
    char data_dir[128];
};

static int make_parent(void **state)
{
    static struct fixture fixture;
    snprintf(fixture.parent, sizeof(fixture.parent), P_tmpdir "/rollcall-dev-keys-XXXXXX");
    if (!mkdtemp(fixture.parent))
        return -1;
    snprintf(fixture.data_dir, sizeof(fixture.data_dir), "%s/data", fixture.parent);
    *state = &fixture;
    return 0;
}

static int remove_parent(void **state)
{
    struct fixture *fixture = *state;
    char path[256];
    snprintf(path, sizeof(path), "%s/" DEV_KEYS_PRIVATE_NAME, fixture->data_dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/" DEV_KEYS_PUBLIC_NAME, fixture->data_dir);
    unlink(path);
    rmdir(fixture->data_dir);
    return rmdir(fixture->parent); /* fails if a file is left over */
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 0777;
}

static ino_t file_number(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* Returns whether the public file verifies a token of the private key. */
static bool pair_fits(const struct dev_keys *keys)
{
    struct auth_error error;
    struct identity identity;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    struct jwt_sign_claims claims = {.user = SLICE("alice"), .expires_at_wall_ms = 5000};
    struct buffer token = BUFFER_INIT;
    struct jwt_signer *signer = jwt_signer_load(keys->private_path, &error);
    struct key_set *set = key_set_load(keys->public_path, &error);
    assert_non_null(signer);
    assert_non_null(set);
    assert_true(jwt_sign(signer, &claims, &token));
    bool fits = jwt_verify(set, &policy, buffer_slice(&token), 1000, &identity) == JWT_OK;
    buffer_free(&token);
    jwt_signer_free(&signer);
    key_set_release(&set);
    return fits;
}

static void new_pair_matches(void **state)
{
    struct fixture *fixture = *state;
    struct dev_keys keys;
    struct auth_error error;
    assert_true(dev_keys_ensure(fixture->data_dir, &keys, &error));
    assert_int_equal(mode_of(fixture->data_dir), 0700);
    assert_int_equal(mode_of(keys.private_path), 0600);
    assert_true(pair_fits(&keys));
}

static void existing_pair_is_reused(void **state)
{
    struct fixture *fixture = *state;
    struct dev_keys keys;
    struct auth_error error;
    assert_true(dev_keys_ensure(fixture->data_dir, &keys, &error));
    ino_t before = file_number(keys.private_path);
    assert_true(dev_keys_ensure(fixture->data_dir, &keys, &error));
    assert_int_equal(file_number(keys.private_path), before);
}

static void damaged_public_half_is_restored(void **state)
{
    struct fixture *fixture = *state;
    struct dev_keys keys;
    struct auth_error error;
    assert_true(dev_keys_ensure(fixture->data_dir, &keys, &error));
    FILE *file = fopen(keys.public_path, "w");
    assert_non_null(file);
    fputs("{\"keys\":[", file);
    fclose(file);
    assert_true(dev_keys_ensure(fixture->data_dir, &keys, &error));
    assert_true(pair_fits(&keys));
}

/* Runs in a child process: makes or finds the pair and reports its private key. */
static void ensure_keys_in_child(const struct fixture *fixture, int report_to)
{
    struct dev_keys keys;
    struct auth_error error;
    if (!dev_keys_ensure(fixture->data_dir, &keys, &error))
        _exit(1);
    ino_t number = file_number(keys.private_path);
    bool reported = write(report_to, &number, sizeof(number)) == sizeof(number);
    _exit(reported && pair_fits(&keys) ? 0 : 1);
}

static void racing_processes_get_the_same_pair(void **state)
{
    struct fixture *fixture = *state;
    struct dev_keys keys;
    struct auth_error error;
    enum { RUNNERS = 4 };
    pid_t children[RUNNERS];
    int reports[2];
    assert_int_equal(pipe(reports), 0);
    for (int i = 0; i < RUNNERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            ensure_keys_in_child(fixture, reports[1]);
    }
    for (int i = 0; i < RUNNERS; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_true(dev_keys_ensure(fixture->data_dir, &keys, &error));
    for (int i = 0; i < RUNNERS; i++) {
        ino_t number;
        assert_int_equal(read(reports[0], &number, sizeof(number)), sizeof(number));
        assert_int_equal(number, file_number(keys.private_path));
    }
    close(reports[0]);
    close(reports[1]);
}

static void failure_names_its_cause(void **state)
{
    struct fixture *fixture = *state;
    struct dev_keys keys;
    struct auth_error error;
    char path[256];
    snprintf(path, sizeof(path), "%s/missing/data", fixture->parent);
    assert_false(dev_keys_ensure(path, &keys, &error));
    assert_non_null(strstr(error.text, path));
    assert_int_equal(mkdir(fixture->data_dir, 0700), 0);
    snprintf(path, sizeof(path), "%s/" DEV_KEYS_PRIVATE_NAME, fixture->data_dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("not a key\n", file);
    fclose(file);
    assert_false(dev_keys_ensure(fixture->data_dir, &keys, &error));
    assert_non_null(strstr(error.text, "expected a private key in PEM"));
    assert_null(strstr(error.text, "not a key"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(new_pair_matches, make_parent, remove_parent),
        cmocka_unit_test_setup_teardown(existing_pair_is_reused, make_parent, remove_parent),
        cmocka_unit_test_setup_teardown(damaged_public_half_is_restored, make_parent,
                                        remove_parent),
        cmocka_unit_test_setup_teardown(racing_processes_get_the_same_pair, make_parent,
                                        remove_parent),
        cmocka_unit_test_setup_teardown(failure_names_its_cause, make_parent, remove_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The shared files, as AWS's tools write them and as people edit them. */
#include "aws/aws_file.h"
#include "aws/aws_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct files {
    char folder[32];
    char credentials[64];
    char config[64];
    struct aws_environment environment;
    struct buffer text;
    struct aws_key_text keys;
    const char *error;
};

static int set_up(void **state)
{
    static struct files files;
    files = (struct files){.folder = "/tmp/rollcall-aws-XXXXXX"};
    assert_non_null(mkdtemp(files.folder));
    snprintf(files.credentials, sizeof(files.credentials), "%s/credentials", files.folder);
    snprintf(files.config, sizeof(files.config), "%s/config", files.folder);
    files.environment.credentials_file = files.credentials;
    files.environment.config_file = files.config;
    *state = &files;
    return 0;
}

static int tear_down(void **state)
{
    struct files *files = *state;
    aws_wipe(&files->text);
    unlink(files->credentials);
    unlink(files->config);
    assert_int_equal(rmdir(files->folder), 0);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static bool read_profile(struct files *files, const char *profile)
{
    files->environment.profile = profile;
    files->error = NULL;
    return aws_profile_read(&files->environment, &files->text, &files->keys, &files->error);
}

static void test_profiles_of_the_credentials_file_are_read(void **state)
{
    struct files *files = *state;
    write_file(files->credentials, "# comment\r\n[default]\r\naws_access_key_id = AKIA1\r\n"
                                   "aws_secret_access_key=se/c=ret\r\n\r\n"
                                   "[ other ]\naws_access_key_id=AKIA2 # mine\n"
                                   "  aws_secret_access_key=nested\n; more\n"
                                   "aws_secret_access_key = s2\naws_session_token = t2");
    assert_true(read_profile(files, NULL));
    assert_null(files->error);
    assert_true(slice_is(files->keys.access_key_id, "AKIA1"));
    assert_true(slice_is(files->keys.secret_access_key, "se/c=ret"));
    assert_int_equal(files->keys.session_token.len, 0);
    assert_true(read_profile(files, "other"));
    assert_true(slice_is(files->keys.access_key_id, "AKIA2"));
    assert_true(slice_is(files->keys.secret_access_key, "s2"));
    assert_true(slice_is(files->keys.session_token, "t2"));
}

static void test_config_file_is_read_if_the_credentials_file_has_no_keys(void **state)
{
    struct files *files = *state;
    write_file(files->config,
               "[default]\nregion = here\naws_access_key_id=A\naws_secret_access_key=a\n"
               "[profile one]\naws_access_key_id=B\naws_secret_access_key=b\n"
               "[one]\naws_access_key_id=C\naws_secret_access_key=c\n");
    assert_true(read_profile(files, NULL));
    assert_true(slice_is(files->keys.access_key_id, "A"));
    assert_true(read_profile(files, "one"));
    assert_true(slice_is(files->keys.access_key_id, "B"));
    write_file(files->credentials, "[one]\naws_access_key_id=D\naws_secret_access_key=d\n");
    assert_true(read_profile(files, "one"));
    assert_true(slice_is(files->keys.access_key_id, "D"));
}

static void test_missing_default_is_not_configured_but_a_missing_named_one_is_an_error(void **state)
{
    struct files *files = *state;
    assert_false(read_profile(files, NULL));
    assert_true(read_profile(files, "one"));
    assert_string_equal(files->error, "there is no profile named as AWS_PROFILE");
    write_file(files->config, "[default]\nregion=here\n[profile one]\nregion=here\n");
    assert_false(read_profile(files, NULL));
    assert_true(read_profile(files, "one"));
    assert_string_equal(files->error, "the profile of AWS_PROFILE has no keys");
}

static void test_profile_that_needs_another_program_is_said_to_be_unsupported(void **state)
{
    struct files *files = *state;
    write_file(files->config, "[default]\ncredential_process = /bin/x\n[profile r]\nrole_arn=arn\n"
                              "[profile s]\nsso_start_url=https://x\n");
    static const char *const profiles[] = {NULL, "r", "s"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(read_profile(files, profiles[i]));
        assert_string_equal(files->error,
                            "the profile has no keys but role_arn, credential_process or sso_…, "
                            "which are not supported");
    }
}

static void test_files_in_the_home_folder_are_found(void **state)
{
    struct files *files = *state;
    char folder[64];
    char path[128];
    snprintf(folder, sizeof(folder), "%s/.aws", files->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path, sizeof(path), "%s/credentials", folder);
    write_file(path, "[default]\naws_access_key_id=H\naws_secret_access_key=h\n");
    files->environment = (struct aws_environment){.home = files->folder};
    assert_true(read_profile(files, NULL));
    assert_true(slice_is(files->keys.access_key_id, "H"));
    files->environment = (struct aws_environment){0};
    assert_false(read_profile(files, NULL));
    unlink(path);
    rmdir(folder);
}

static void test_pipe_folder_and_large_file_are_not_read(void **state)
{
    struct files *files = *state;
    struct buffer text = BUFFER_INIT;
    static char large[AWS_FILE_BYTES_MAX + 2];
    assert_int_equal(mkfifo(files->credentials, 0600), 0);
    assert_false(aws_file_read(files->credentials, &text));
    assert_false(aws_file_read(files->folder, &text));
    memset(large, 'x', sizeof(large) - 1);
    write_file(files->config, large);
    assert_false(aws_file_read(files->config, &text));
    large[AWS_FILE_BYTES_MAX] = '\0';
    write_file(files->config, large);
    assert_true(aws_file_read(files->config, &text));
    assert_int_equal(text.len, AWS_FILE_BYTES_MAX);
    aws_wipe(&text);
}

static void test_garbage_is_no_profile(void **state)
{
    struct files *files = *state;
    static const char *const garbage[] = {"[",
                                          "[]",
                                          "]",
                                          "=",
                                          "[default",
                                          "[default]=\n=",
                                          "[default]\n\n[",
                                          "aws_access_key_id=A\naws_secret_access_key=a"};
    for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++) {
        write_file(files->credentials, garbage[i]);
        write_file(files->config, garbage[i]);
        assert_false(read_profile(files, NULL));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_profiles_of_the_credentials_file_are_read),
        TEST(test_config_file_is_read_if_the_credentials_file_has_no_keys),
        TEST(test_missing_default_is_not_configured_but_a_missing_named_one_is_an_error),
        TEST(test_profile_that_needs_another_program_is_said_to_be_unsupported),
        TEST(test_files_in_the_home_folder_are_found),
        TEST(test_pipe_folder_and_large_file_are_not_read),
        TEST(test_garbage_is_no_profile),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}

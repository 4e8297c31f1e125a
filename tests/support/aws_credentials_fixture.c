#include "support/aws_credentials_fixture.h"

#include "text/time_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURN_MS = 5, TURNS_MAX = 6000, IDLE_TURNS = 20, ANSWER_BYTES_MAX = 2048 };

/* Added to the system's clocks; the hook that advances a loop has no argument. */
static int64_t passed_ms;
static struct aws_credentials_fixture fixture_of_test;
static char answers[SCRIPT_SERVER_EXCHANGES_MAX][ANSWER_BYTES_MAX];
static size_t answers_used;

static void advance_fixture_clock(struct clock *clock)
{
    clock_advance(clock);
    clock->now_ms += passed_ms;
    clock->wall_ms += passed_ms;
}

static void clear_aws_variables(void)
{
    static const char *const names[] = {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_ENDPOINT_URL_STS",
        "AWS_ENDPOINT_URL",
        "AWS_PROFILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_CONFIG_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "AWS_CA_BUNDLE",
        "SSL_CERT_FILE",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unsetenv(names[i]);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
}

int aws_credentials_fixture_set_up(void **state)
{
    struct aws_credentials_fixture *fixture = &fixture_of_test;
    memset(fixture, 0, sizeof(*fixture));
    passed_ms = 0;
    answers_used = 0;
    clear_aws_variables();
    strcpy(fixture->folder, "/tmp/rollcall-aws-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    setenv("HOME", fixture->folder, 1);
    script_server_start(&fixture->server);
    assert_true(loop_init(&fixture->loop));
    fixture->loop.advance = advance_fixture_clock;
    fixture->http = http_client_make(&fixture->loop, 4);
    assert_non_null(fixture->http);
    *state = fixture;
    return 0;
}

static void remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    char path[512];
    while ((entry = readdir(entries))) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(entries);
    rmdir(folder);
}

int aws_credentials_fixture_tear_down(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    if (fixture->log_fd) /* the test failed meanwhile */
        aws_credentials_fixture_end_log(fixture);
    aws_credentials_free(&fixture->credentials);
    assert_null(fixture->credentials);
    http_client_free(&fixture->http);
    loop_free(&fixture->loop);
    script_server_stop(&fixture->server);
    remove_folder(fixture->folder);
    return 0;
}

static void on_fixture_changed(void *arg)
{
    struct aws_credentials_fixture *fixture = arg;
    fixture->changes++;
}

bool aws_credentials_fixture_make(struct aws_credentials_fixture *fixture)
{
    struct aws_credentials_options options = {.loop = &fixture->loop,
                                              .http = fixture->http,
                                              .region = "eu-central-1",
                                              .on_changed = on_fixture_changed,
                                              .arg = fixture};
    fixture->credentials = aws_credentials_make(&options);
    return fixture->credentials != NULL;
}

void aws_credentials_fixture_await(struct aws_credentials_fixture *fixture, size_t changes)
{
    for (int i = 0; i < TURNS_MAX && fixture->changes < changes; i++) {
        loop_turn(&fixture->loop, TURN_MS);
        script_server_serve(&fixture->server);
    }
    assert_int_equal(fixture->changes, changes);
}

void aws_credentials_fixture_idle(struct aws_credentials_fixture *fixture)
{
    for (int i = 0; i < IDLE_TURNS; i++) {
        loop_turn(&fixture->loop, TURN_MS);
        script_server_serve(&fixture->server);
    }
}

void aws_credentials_fixture_pass(struct aws_credentials_fixture *fixture, int64_t duration_ms)
{
    (void)fixture;
    passed_ms += duration_ms;
}

const char *aws_credentials_fixture_file(struct aws_credentials_fixture *fixture, const char *name,
                                         const char *text)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

const char *aws_credentials_fixture_time(struct aws_credentials_fixture *fixture,
                                         int64_t from_now_ms)
{
    static char text[TIME_TEXT_LEN + 1];
    struct clock clock;
    (void)fixture;
    advance_fixture_clock(&clock);
    time_text_write(text, clock.wall_ms + from_now_ms);
    text[TIME_TEXT_LEN] = '\0';
    return text;
}

void aws_credentials_fixture_capture_log(struct aws_credentials_fixture *fixture)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/log", fixture->folder);
    fixture->stderr_fd = dup(STDERR_FILENO);
    fixture->log_fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fixture->log_fd > 0);
    dup2(fixture->log_fd, STDERR_FILENO);
}

const char *aws_credentials_fixture_end_log(struct aws_credentials_fixture *fixture)
{
    static char log[32 * 1024];
    dup2(fixture->stderr_fd, STDERR_FILENO);
    close(fixture->stderr_fd);
    ssize_t got = pread(fixture->log_fd, log, sizeof(log) - 1, 0);
    close(fixture->log_fd);
    fixture->log_fd = 0;
    log[got > 0 ? got : 0] = '\0';
    return log;
}

void aws_credentials_fixture_answer(struct aws_credentials_fixture *fixture, const char *status,
                                    const char *body)
{
    assert_true(answers_used < SCRIPT_SERVER_EXCHANGES_MAX);
    char *answer = answers[answers_used++];
    snprintf(answer, ANSWER_BYTES_MAX, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status,
             strlen(body), body);
    script_server_then(&fixture->server, answer);
}

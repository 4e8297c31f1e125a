/*
 * Credentials on a loop whose clock a test moves, with an environment of the test's own and a scripted server that
 * plays STS, a container's endpoint or the metadata service.
 */
#ifndef ROLLCALL_TESTS_AWS_CREDENTIALS_FIXTURE_H
#define ROLLCALL_TESTS_AWS_CREDENTIALS_FIXTURE_H

#include "aws/aws_credentials.h"
#include "support/script_server.h"

struct aws_credentials_fixture {
    struct loop loop;
    struct http_client *http;
    struct script_server server;
    struct aws_credentials *credentials;
    size_t changes; /* calls of on_changed */
    char folder[64];
    int log_fd;    /* of the captured log; 0: none */
    int stderr_fd; /* kept meanwhile */
};

/* Clears the variables of AWS, and starts everything but the credentials. Hooks of cmocka; *state is the fixture. */
int aws_credentials_fixture_set_up(void **state);
int aws_credentials_fixture_tear_down(void **state);

/* Makes the credentials of region eu-central-1 from the environment as it is. Returns false when out of memory. */
bool aws_credentials_fixture_make(struct aws_credentials_fixture *fixture);

/* Turns loop and server until on_changed was called `changes` times in all; fails the test if it is not. */
void aws_credentials_fixture_await(struct aws_credentials_fixture *fixture, size_t changes);

/* A few turns, for what must not happen. */
void aws_credentials_fixture_idle(struct aws_credentials_fixture *fixture);

/* Moves the loop's clock. */
void aws_credentials_fixture_pass(struct aws_credentials_fixture *fixture, int64_t duration_ms);

/* Writes a file into the fixture's folder and returns its path, valid until the next call. */
const char *aws_credentials_fixture_file(struct aws_credentials_fixture *fixture, const char *name,
                                         const char *text);

/* Returns "2026-…Z" for `from_now_ms` from the loop's wall clock, valid until the next call. */
const char *aws_credentials_fixture_time(struct aws_credentials_fixture *fixture,
                                         int64_t from_now_ms);

/* From here on the log goes into a file of the fixture's folder, until the next function. */
void aws_credentials_fixture_capture_log(struct aws_credentials_fixture *fixture);

/* Ends that and returns the captured text, valid until the next call. */
const char *aws_credentials_fixture_end_log(struct aws_credentials_fixture *fixture);

/* Makes the server answer the next request with this status and body. The answer lives as long as the fixture. */
void aws_credentials_fixture_answer(struct aws_credentials_fixture *fixture, const char *status,
                                    const char *body);

#endif

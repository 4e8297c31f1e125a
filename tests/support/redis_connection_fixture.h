/*
 * One connection to a real Redis server on a loop of its own. It sends commands and counts the replies.
 * It is the state of a cmocka test.
 */
#ifndef ROLLCALL_TESTS_REDIS_CONNECTION_FIXTURE_H
#define ROLLCALL_TESTS_REDIS_CONNECTION_FIXTURE_H

#include "redis/redis_connection.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <stdbool.h>
#include <stdint.h>

enum { REDIS_CONNECTION_FIXTURE_SOON_MS = 30000 };

struct redis_connection_fixture {
    struct worker_loop worker;
    struct redis_connection_context context;
    struct redis_connection *connection;
    struct redis_server server;
    enum redis_problem awaited_problem;
    unsigned pushes;
    unsigned sent;
    unsigned answered;
    /* Of the replies to redis_connection_fixture_echo(): */
    unsigned without_reply;
    unsigned in_disorder;
    unsigned errors;
    char last[128]; /* the last reply as text; "nothing" for NULL */
};

int redis_connection_fixture_set_up(void **state);
int redis_connection_fixture_tear_down(void **state);

/* Starts a server and connects to it; or connects to this address. */
void redis_connection_fixture_open(struct redis_connection_fixture *fixture,
                                   const char *const *options);
void redis_connection_fixture_open_at(struct redis_connection_fixture *fixture, const char *host,
                                      uint16_t port);

void redis_connection_fixture_await_problem(struct redis_connection_fixture *fixture,
                                            enum redis_problem problem, int64_t limit_ms);
void redis_connection_fixture_await_answers(struct redis_connection_fixture *fixture);

/* Sends a command. Returns false when the connection refuses it. */
bool redis_connection_fixture_send(struct redis_connection_fixture *fixture,
                                   const struct slice *args, size_t count, redis_reply_done done);

/* A completion that stores the reply in `last`. */
void on_connection_fixture_reply(void *arg, const struct resp_value *reply);

/* Sends "ECHO <number>", counting from 0, and checks that the replies are in order. */
bool redis_connection_fixture_echo(struct redis_connection_fixture *fixture);

/* Sends a command, its arguments separated by spaces. Waits for the reply and returns it as text. */
const char *redis_connection_fixture_run(struct redis_connection_fixture *fixture,
                                         const char *line);

#endif

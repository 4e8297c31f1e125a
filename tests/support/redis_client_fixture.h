/*
 * A Redis client on a loop of its own. It sends commands given as text ("SET a 1") and counts replies and
 * changes of availability.
 *
 * It is the state of a cmocka test. In a group whose set-up is redis_cluster_set_up() it uses that cluster.
 */
#ifndef ROLLCALL_TESTS_REDIS_CLIENT_FIXTURE_H
#define ROLLCALL_TESTS_REDIS_CLIENT_FIXTURE_H

#include "redis/redis_client.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <stdbool.h>
#include <stdint.h>

enum { REDIS_CLIENT_FIXTURE_SOON_MS = 30000 };

struct redis_client_fixture {
    struct worker_loop worker;
    struct redis_client *client;
    struct redis_observer observer;
    struct redis_server server;   /* in tests with one server */
    struct redis_server *cluster; /* in tests with a cluster */
    bool awaited_availability;
    unsigned available_reports;
    unsigned unavailable_reports;
    unsigned sent;
    unsigned answered;
    unsigned without_reply;
    unsigned errors;
    char last[256]; /* the last reply as text; "nothing" for NULL */
};

int redis_client_fixture_set_up(void **state);
int redis_client_fixture_tear_down(void **state);

/* Makes the client. The URL is `url_start`, a colon and `port`. */
void redis_client_fixture_open(struct redis_client_fixture *fixture, const char *url_start,
                               uint16_t port);

/* The same with the whole URL. */
void redis_client_fixture_open_url(struct redis_client_fixture *fixture, const char *url);

/* Starts a server (or uses the cluster), makes the client, and waits until Redis is available. */
void redis_client_fixture_open_single(struct redis_client_fixture *fixture);
void redis_client_fixture_open_cluster(struct redis_client_fixture *fixture);

void redis_client_fixture_await_available(struct redis_client_fixture *fixture, bool available,
                                          int64_t limit_ms);

/* Sends a command whose key is its second argument; redis_client_fixture_run() also waits for the reply and
 * returns it as text. */
void redis_client_fixture_start(struct redis_client_fixture *fixture, const char *line);
const char *redis_client_fixture_run(struct redis_client_fixture *fixture, const char *line);
const char *redis_client_fixture_eval(struct redis_client_fixture *fixture,
                                      const struct redis_script *script, const char *key,
                                      const char *argument);

/* Whether every command is answered. */
bool redis_client_fixture_is_done(const struct redis_client_fixture *fixture);
void redis_client_fixture_await_answers(struct redis_client_fixture *fixture);

#endif

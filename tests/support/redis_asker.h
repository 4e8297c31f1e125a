/*
 * A client of Redis on a loop of its own, for tests of the client: it asks with lines of text ("SET a 1") and
 * counts what it is told and answered.
 *
 * It is the state of a cmocka test. In a group whose set-up is redis_cluster_set_up() it finds that cluster.
 */
#ifndef ROLLCALL_TESTS_REDIS_ASKER_H
#define ROLLCALL_TESTS_REDIS_ASKER_H

#include "redis/redis_client.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <stdbool.h>
#include <stdint.h>

enum { REDIS_ASKER_SOON_MS = 5000 };

struct redis_asker {
    struct worker_loop worker;
    struct redis_client *client;
    struct redis_observer listener;
    struct redis_server server;   /* of tests with one */
    struct redis_server *cluster; /* of tests with many */
    bool wanted;
    unsigned told_available;
    unsigned told_unavailable;
    unsigned asked;
    unsigned answered;
    unsigned without_reply;
    unsigned errors;
    char last[256]; /* the last answer; "nothing" where none came */
};

int redis_asker_set_up(void **state);
int redis_asker_tear_down(void **state);

/* Makes the client. `place` is a URL up to its last port, which is `port`. */
void redis_asker_open(struct redis_asker *asker, const char *place, uint16_t port);

/* Starts a server, makes the client, and waits until it reaches it; the same with the cluster. */
void redis_asker_open_single(struct redis_asker *asker);
void redis_asker_open_cluster(struct redis_asker *asker);

void redis_asker_await_available(struct redis_asker *asker, bool available, int64_t limit_ms);

/* Sends a command, whose key is its second word; redis_asker_ask() waits for the answer as well. */
void redis_asker_start(struct redis_asker *asker, const char *line);
const char *redis_asker_ask(struct redis_asker *asker, const char *line);
const char *redis_asker_eval(struct redis_asker *asker, const struct redis_script *script,
                             const char *key, const char *argument);

/* Whether every command has its answer. */
bool redis_asker_is_done(const struct redis_asker *asker);
void redis_asker_await_answers(struct redis_asker *asker);

#endif

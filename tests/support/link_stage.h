/*
 * One link to a real Redis on a loop of its own, for tests of the link: it asks, and counts how it is answered.
 * It is the state of a cmocka test.
 */
#ifndef ROLLCALL_TESTS_LINK_STAGE_H
#define ROLLCALL_TESTS_LINK_STAGE_H

#include "redis/redis_connection.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <stdbool.h>
#include <stdint.h>

enum { LINK_STAGE_SOON_MS = 5000 };

struct link_stage {
    struct worker_loop worker;
    struct redis_connection_context links;
    struct redis_connection *link;
    struct redis_server server;
    enum redis_problem wanted;
    unsigned pushes;
    unsigned asked;
    unsigned answered;
    /* of the answers to numbers: */
    unsigned without_reply;
    unsigned in_disorder;
    unsigned errors;
    char last[128]; /* the last text; "nothing" where none came */
};

int link_stage_set_up(void **state);
int link_stage_tear_down(void **state);

/* Starts a server and makes the link to it; or makes the link to any place. */
void link_stage_open(struct link_stage *stage, const char *const *options);
void link_stage_open_at(struct link_stage *stage, const char *host, uint16_t port);

void link_stage_await_problem(struct link_stage *stage, enum redis_problem problem,
                              int64_t limit_ms);
void link_stage_await_answers(struct link_stage *stage);

/* Sends a command; false when the link does not take it. */
bool link_stage_send(struct link_stage *stage, const struct slice *words, size_t count,
                     void (*done)(void *arg, const struct resp_value *reply));

/* Keeps the text of an answer in `last`. */
void link_stage_take(void *arg, const struct resp_value *reply);

/* Sends "ECHO <number>", counting from 0; the numbers must come back in order. */
bool link_stage_echo(struct link_stage *stage);

/* Sends a line of words and waits for the text of the answer. */
const char *link_stage_ask(struct link_stage *stage, const char *line);

#endif

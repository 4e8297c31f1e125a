/*
 * HTTP requests of a simulated application: one at a time, on one connection, as users with their tokens.
 */
#ifndef ROLLCALL_SIM_PROCESSES_REQUESTER_H
#define ROLLCALL_SIM_PROCESSES_REQUESTER_H

#include "world/population.h"

enum { REQUESTER_ANSWER_BYTES = 4096 };

struct requester {
    uint32_t address; /* of the gateways */
    uint16_t port;
    int fd; /* -1: not connected */
    char answer[REQUESTER_ANSWER_BYTES];
    size_t len;
};

/* Tries until the fleet does it or refuses it, which takes minutes at most. Returns whether it did. `body` "": none. */
bool requester_ask(struct requester *self, const struct user *user, const char *method,
                   const char *path, const char *body);

void requester_close(struct requester *self);

#endif

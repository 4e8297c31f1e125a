/*
 * The handshake on a new connection, without I/O: login, protocol version, database, and whether the server
 * is ready to serve.
 *
 *   HELLO 3 [AUTH user password] [SETNAME name]   → [SELECT database] PING
 *     when the server has no HELLO (before Redis 6, some proxies)
 *   [AUTH [user] password] [CLIENT SETNAME name] [SELECT database] PING      in version 2
 *
 * The PING detects a server that is still loading, or one that only echoes (a socket can even connect to
 * itself, when nothing listens on a port that the system hands out).
 */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_HANDSHAKE_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_HANDSHAKE_H

#include "redis/protocol/redis_problem.h"
#include "redis/protocol/resp.h"

#include <stdbool.h>

/* Our login and name on Redis. Borrowed strings. */
struct redis_identity {
    const char *user;     /* empty: the default user */
    const char *password; /* empty: none */
    const char *name;     /* of the connection, seen in CLIENT LIST; no spaces. Empty: none */
    unsigned database;
    bool alone; /* the only server: refuse a replica, or a server of a cluster */
};

enum { REDIS_HANDSHAKE_STEPS_MAX = 4 };

enum redis_step {
    REDIS_STEP_HELLO,
    REDIS_STEP_AUTH,
    REDIS_STEP_NAME,
    REDIS_STEP_SELECT,
    REDIS_STEP_PING
};

struct redis_handshake {
    const struct redis_identity *identity;
    enum redis_step steps[REDIS_HANDSHAKE_STEPS_MAX]; /* sent and unanswered, in order */
    unsigned step;
    unsigned step_count;
    bool version_2;
};

/* Starts, and appends the first commands to `out`. */
void redis_handshake_begin(struct redis_handshake *handshake, const struct redis_identity *identity,
                           struct buffer *out);

enum redis_handshake_result {
    REDIS_HANDSHAKE_RUNNING,
    REDIS_HANDSHAKE_DONE,
    REDIS_HANDSHAKE_FAILED
};

/* Takes the next reply; may append more commands. After REDIS_HANDSHAKE_FAILED *problem is the reason. */
enum redis_handshake_result redis_handshake_answer(struct redis_handshake *handshake,
                                                   const struct resp_value *reply,
                                                   struct buffer *out, enum redis_problem *problem);

#endif

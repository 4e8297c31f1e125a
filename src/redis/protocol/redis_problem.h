/*
 * Why Redis does not serve, in kinds that show an operator what to do.
 *
 * Either the connection has a problem (it broke or could not be made), or a connected server replies with
 * errors; such a problem comes and goes while the connection stays.
 */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_PROBLEM_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_PROBLEM_H

#include "redis/protocol/resp.h"

#include <stdbool.h>

enum redis_problem {
    REDIS_FINE,
    REDIS_NOT_TRIED,
    REDIS_NAME_UNKNOWN,
    REDIS_UNREACHABLE,
    REDIS_DISTRUSTED,
    REDIS_SILENT,
    REDIS_BROKEN_OFF,
    REDIS_NOT_UNDERSTOOD,
    REDIS_LOGIN_REFUSED,
    REDIS_CROWDED,
    REDIS_LOADING,
    REDIS_READ_ONLY,
    REDIS_OUT_OF_MEMORY,
    REDIS_WRITES_REFUSED,
    REDIS_BUSY,
    REDIS_CLUSTER_DOWN,
    REDIS_CLUSTER_OFF,
    REDIS_CLUSTER_ON,
    REDIS_HANDSHAKE_REFUSED,
    REDIS_SENTINELS_SILENT,
    REDIS_SENTINEL_OFF,
    REDIS_MASTER_UNKNOWN,
};

/* The problem that an error reply reports; REDIS_FINE for all other replies. */
enum redis_problem redis_problem_of(const struct resp_value *reply);

/* Whether only a new connection can help: this one reaches the wrong server, or has no login. */
bool redis_problem_needs_reconnect(enum redis_problem problem);

/* One word for logs and status pages: "login_refused". */
const char *redis_problem_name(enum redis_problem problem);

/* A clause for people: "it refused the user name or password". */
const char *redis_problem_text(enum redis_problem problem);

#endif

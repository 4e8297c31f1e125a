/* The scripts of the state store (lua/), each behind the preludes it needs. Terminated texts. */
#ifndef ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_SCRIPTS_H
#define ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_SCRIPTS_H

/* Of users, behind time.lua and prelude.lua; those of the second list behind expiry.lua too. The third stand
 * alone. */
#define REDIS_STATE_USER_SCRIPTS(X)                                                                \
    X(OPEN) X(CLOSE) X(IDLE) X(CALL) X(READ) X(ROUTES) X(RENEW) X(LEASES)
#define REDIS_STATE_EXPIRY_SCRIPTS(X) X(EXPIRE) X(REAP)
#define REDIS_STATE_OTHER_SCRIPTS(X) X(INDEX) X(DUE) X(CROWD) X(HELD) X(GATEWAY) X(GATEWAYS)

#define REDIS_STATE_SCRIPTS(X)                                                                     \
    REDIS_STATE_USER_SCRIPTS(X) REDIS_STATE_EXPIRY_SCRIPTS(X) REDIS_STATE_OTHER_SCRIPTS(X)

#define REDIS_STATE_DECLARE(name) extern const char REDIS_STATE_LUA_##name[];
REDIS_STATE_SCRIPTS(REDIS_STATE_DECLARE)
#undef REDIS_STATE_DECLARE

enum redis_state_script {
#define REDIS_STATE_NUMBER(name) REDIS_STATE_##name,
    REDIS_STATE_SCRIPTS(REDIS_STATE_NUMBER)
#undef REDIS_STATE_NUMBER
        REDIS_STATE_SCRIPT_COUNT
};

#endif

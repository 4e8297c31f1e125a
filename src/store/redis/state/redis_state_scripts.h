/* The Lua scripts of the state store (store/redis/lua/) as zero-terminated texts, each with the preludes it needs. */
#ifndef ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_SCRIPTS_H
#define ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_SCRIPTS_H

/* The first list includes time.lua and user_prelude.lua, the second expire_prelude.lua too, the third no prelude. */
#define REDIS_STATE_USER_SCRIPTS(X)                                                                \
    X(OPEN) X(CLOSE) X(IDLE) X(IN_CALL) X(READ) X(ROUTES) X(RENEW) X(LEASES)
#define REDIS_STATE_EXPIRY_SCRIPTS(X) X(EXPIRE) X(REAP)
#define REDIS_STATE_OTHER_SCRIPTS(X)                                                               \
    X(LEASE_INDEX)                                                                                 \
    X(OVERDUE) X(ONLINE_SETS) X(GATEWAY_CONNECTIONS) X(GATEWAY_RECORD) X(GATEWAY_LIST)

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

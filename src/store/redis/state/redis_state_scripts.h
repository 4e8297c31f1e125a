/* The Lua scripts of the state store (store/redis/lua/) as zero-terminated texts, each with the preludes it needs. */
#ifndef ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_SCRIPTS_H
#define ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_SCRIPTS_H

/* The first list has the arguments that user_prelude.lua describes and, but for RENEW, RENEW_SLOTS and READ, includes it; the
 * second includes expire_prelude.lua too, the third has arguments of its own. A prelude costs several microseconds in
 * every run of a script, so the frequent scripts need none, or do what is frequent before it. */
#define REDIS_STATE_USER_SCRIPTS(X)                                                                \
    X(OPEN) X(CLOSE) X(SETTLE) X(IDLE) X(IN_CALL) X(READ) X(RENEW) X(RENEW_SLOTS) X(LEASES)
#define REDIS_STATE_EXPIRY_SCRIPTS(X) X(REAP)
#define REDIS_STATE_OTHER_SCRIPTS(X)                                                               \
    X(HISTORY) X(REAP_SCAN) X(GATEWAY_CONNECTIONS) X(GATEWAY_RECORD) X(GATEWAY_LIST)

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

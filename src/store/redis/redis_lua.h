/* The Lua scripts of budgets, typing, social graphs, calls and parked sessions (store/redis/lua/) as zero-terminated
 * texts. Those that store times include time.lua. */
#ifndef ROLLCALL_STORE_REDIS_REDIS_LUA_H
#define ROLLCALL_STORE_REDIS_REDIS_LUA_H

extern const char REDIS_LUA_BUDGET[];
extern const char REDIS_LUA_TYPING[];
extern const char REDIS_LUA_GRAPH[];
extern const char REDIS_LUA_CALLS[];
extern const char REDIS_LUA_CALL_CLAIM[];
extern const char REDIS_LUA_RECOVERY[];

#endif

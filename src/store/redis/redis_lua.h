/* The scripts in store/lua/ that keep typing, graphs, calls and parked sessions, those with times behind
 * time.lua; as terminated texts. */
#ifndef ROLLCALL_STORE_REDIS_REDIS_LUA_H
#define ROLLCALL_STORE_REDIS_REDIS_LUA_H

extern const char REDIS_LUA_TYPING[];
extern const char REDIS_LUA_GRAPH[];
extern const char REDIS_LUA_CALLS[];
extern const char REDIS_LUA_CLAIM[];
extern const char REDIS_LUA_RECOVERY[];

#endif

/* The scripts in store/lua/ that keep typing, circles and calls, as terminated texts. */
#ifndef ROLLCALL_STORE_REDIS_LUA_H
#define ROLLCALL_STORE_REDIS_LUA_H

extern const char REDIS_LUA_TYPING[];
extern const char REDIS_LUA_CIRCLE[];
extern const char REDIS_LUA_CALLS[];
extern const char REDIS_LUA_CLAIM[];

#endif

/* The Lua scripts of `rollcall check`, from check/lua/, each after the prelude. Terminated texts. */
#ifndef ROLLCALL_CHECK_CHECK_SCRIPTS_H
#define ROLLCALL_CHECK_CHECK_SCRIPTS_H

extern const char CHECK_SCRIPT_CALL[];
extern const char CHECK_SCRIPT_CONNECTION[];
extern const char CHECK_SCRIPT_GATEWAY[];
extern const char CHECK_SCRIPT_INDEX[];
extern const char CHECK_SCRIPT_ONLINE_SETS[];
extern const char CHECK_SCRIPT_PLAIN[];
extern const char CHECK_SCRIPT_SERVER[];
extern const char CHECK_SCRIPT_USER[];

#endif

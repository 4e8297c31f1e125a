/* The library cmsgpack of scripts: pack() and unpack() of arrays of texts, which is what our scripts keep. */
#ifndef ROLLCALL_SIM_REDIS_MODEL_MODEL_MSGPACK_H
#define ROLLCALL_SIM_REDIS_MODEL_MODEL_MSGPACK_H

struct lua_State;

void model_msgpack_register(struct lua_State *lua);

#endif

#include "redis_model/model_msgpack.h"

#include "base/buffer.h"

#include <lua5.1/lauxlib.h>
#include <lua5.1/lua.h>

/* How a count is written that does not fit into the first byte. */
static void write_count(struct buffer *out, size_t count, size_t fixed_max, unsigned char fixed,
                        unsigned char wide)
{
    if (count <= fixed_max) {
        buffer_append_byte(out, (char)(fixed | count));
        return;
    }
    buffer_append_byte(out, (char)wide);
    buffer_append_byte(out, (char)(count >> 8));
    buffer_append_byte(out, (char)count);
}

static void write_packed_text(struct buffer *out, const char *text, size_t len)
{
    if (len > 31 && len <= 255) {
        buffer_append_byte(out, (char)0xd9);
        buffer_append_byte(out, (char)len);
    } else {
        write_count(out, len, 31, 0xa0, 0xda);
    }
    buffer_append(out, text, len);
}

static int lua_pack(lua_State *lua)
{
    struct buffer out = BUFFER_INIT;
    luaL_checktype(lua, 1, LUA_TTABLE);
    size_t count = lua_objlen(lua, 1);
    write_count(&out, count, 15, 0x90, 0xdc);
    for (size_t i = 0; i < count; i++) {
        size_t len;
        lua_rawgeti(lua, 1, (int)i + 1);
        const char *text = lua_tolstring(lua, -1, &len);
        if (text)
            write_packed_text(&out, text, len);
        lua_pop(lua, 1);
    }
    lua_pushlstring(lua, out.data, out.len);
    buffer_free(&out);
    return 1;
}

/* Returns the count behind a first byte; 0 bytes were left: 0. */
static size_t read_packed_count(const unsigned char **at, unsigned char fixed_mask)
{
    unsigned char first = *(*at)++;
    size_t count = 0;
    if (first == 0xd9) {
        count = *(*at)++;
    } else if (first == 0xda || first == 0xdc) {
        count = (size_t)(*at)[0] << 8 | (*at)[1];
        *at += 2;
    } else {
        count = first & fixed_mask;
    }
    return count;
}

static int lua_unpack(lua_State *lua)
{
    size_t len;
    const unsigned char *at = (const unsigned char *)luaL_checklstring(lua, 1, &len);
    if (len == 0)
        return luaL_error(lua, "Missing bytes in input.");
    size_t count = read_packed_count(&at, 0x0f);
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        size_t text_len = read_packed_count(&at, 0x1f);
        lua_pushlstring(lua, (const char *)at, text_len);
        lua_rawseti(lua, -2, (int)i + 1);
        at += text_len;
    }
    return 1;
}

void model_msgpack_register(struct lua_State *lua)
{
    static const luaL_Reg functions[] = {{"pack", lua_pack}, {"unpack", lua_unpack}, {NULL, NULL}};
    luaL_register(lua, "cmsgpack", functions);
    lua_pop(lua, 1);
}

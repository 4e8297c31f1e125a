#include "redis_model/model_scripts.h"

#include "memory/pool.h"
#include "redis_model/model_call.h"
#include "redis_model/model_msgpack.h"

#include <lua5.1/lauxlib.h>
#include <lua5.1/lua.h>
#include <lua5.1/lualib.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

enum { CALL_ARGUMENTS_FEW = 32, ERROR_TEXT_MAX = 512 };

/* ---- from Lua to replies ---- */

static void reply_lua_value(struct model_call *call, lua_State *lua);

/* A table with a field `ok` or `err` is a status or an error. Returns whether it was one. */
static bool reply_lua_tagged(struct model_call *call, lua_State *lua, const char *field, char mark)
{
    lua_getfield(lua, -1, field);
    bool is_tagged = lua_type(lua, -1) == LUA_TSTRING;
    if (is_tagged) {
        buffer_append_byte(call->out, mark);
        for (const char *at = lua_tostring(lua, -1); *at; at++)
            buffer_append_byte(call->out, *at == '\r' || *at == '\n' ? ' ' : *at);
        buffer_append_text(call->out, "\r\n");
    }
    lua_pop(lua, 1);
    return is_tagged;
}

/* An array ends at the first nil. */
static void reply_lua_table(struct model_call *call, lua_State *lua)
{
    size_t count = 0;
    if (reply_lua_tagged(call, lua, "err", '-') || reply_lua_tagged(call, lua, "ok", '+'))
        return;
    for (;; count++) {
        lua_rawgeti(lua, -1, (int)count + 1);
        bool is_end = lua_isnil(lua, -1);
        lua_pop(lua, 1);
        if (is_end)
            break;
    }
    model_reply_array(call, count);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(lua, -1, (int)i + 1);
        reply_lua_value(call, lua);
        lua_pop(lua, 1);
    }
}

/* Writes the value on top of the stack, which stays there. */
static void reply_lua_value(struct model_call *call, lua_State *lua)
{
    struct slice text;
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text.data = lua_tolstring(lua, -1, &text.len);
        model_reply_bulk(call, text);
        break;
    case LUA_TNUMBER:
        model_reply_int(call, (int64_t)lua_tonumber(lua, -1));
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(lua, -1))
            model_reply_int(call, 1);
        else
            model_reply_null(call);
        break;
    case LUA_TTABLE:
        luaL_checkstack(lua, 4, "nested too deeply");
        reply_lua_table(call, lua);
        break;
    default:
        model_reply_null(call);
    }
}

/* ---- from replies to Lua ---- */

static void push_text(lua_State *lua, struct slice text)
{
    lua_pushlstring(lua, text.data ? text.data : "", text.len);
}

static void push_tagged(lua_State *lua, const char *field, struct slice text)
{
    lua_newtable(lua);
    push_text(lua, text);
    lua_setfield(lua, -2, field);
}

/* Reads the number at the start of a line. Returns the line's end. */
static const char *read_line_number(const char *at, long long *number)
{
    bool is_negative = *at == '-';
    *number = 0;
    for (at += is_negative; *at >= '0' && *at <= '9'; at++)
        *number = *number * 10 + (*at - '0');
    if (is_negative)
        *number = -*number;
    return *at == '\r' ? at : strstr(at, "\r\n");
}

/* Pushes the reply (of version 2) that begins at `at`. Returns the first byte behind it. */
static const char *push_reply(lua_State *lua, const char *at)
{
    char kind = *at++;
    long long number;
    const char *line_end = read_line_number(at, &number), *next = line_end + 2;
    struct slice line = {at, (size_t)(line_end - at)};
    switch (kind) {
    case ':':
        lua_pushnumber(lua, (lua_Number)number);
        return next;
    case '+':
        push_tagged(lua, "ok", line);
        return next;
    case '-':
        push_tagged(lua, "err", line);
        return next;
    case '$':
        if (number < 0)
            lua_pushboolean(lua, 0);
        else
            push_text(lua, (struct slice){next, (size_t)number});
        return number < 0 ? next : next + number + 2;
    default: /* an array */
        if (number < 0) {
            lua_pushboolean(lua, 0);
            return next;
        }
        luaL_checkstack(lua, 4, "nested too deeply");
        lua_createtable(lua, (int)number, 0);
        for (long long i = 0; i < number; i++) {
            next = push_reply(lua, next);
            lua_rawseti(lua, -2, (int)i + 1);
        }
        return next;
    }
}

/* ---- redis.call ---- */

/* The functions that call have the model as their first upvalue. */
static struct redis_model *get_lua_model(lua_State *lua)
{
    return lua_touserdata(lua, lua_upvalueindex(1));
}

/* printf would be a twentieth of a simulation. */
static void push_integer(lua_State *lua, int64_t number)
{
    char digits[24], *at = digits + sizeof(digits);
    uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        *--at = '-';
    lua_pushlstring(lua, at, (size_t)(digits + sizeof(digits) - at));
}

/* Numbers become texts as Redis makes them: with 17 digits. */
static struct slice read_call_argument(lua_State *lua, int index)
{
    struct slice text;
    if (lua_type(lua, index) == LUA_TNUMBER) {
        char digits[64];
        lua_Number number = lua_tonumber(lua, index);
        if (number == (lua_Number)(int64_t)number && number < 1e18 && number > -1e18)
            push_integer(lua, (int64_t)number);
        else
            lua_pushlstring(lua, digits, (size_t)snprintf(digits, sizeof(digits), "%.17g", number));
        lua_replace(lua, index);
    }
    text.data = lua_tolstring(lua, index, &text.len);
    return text;
}

static bool read_call_arguments(lua_State *lua, struct slice *args, int count)
{
    for (int i = 0; i < count; i++) {
        args[i] = read_call_argument(lua, i + 1);
        if (!args[i].data)
            return false;
    }
    return true;
}

/* Leaves the reply on the stack. Returns whether it is an error. */
static bool execute_lua_call(lua_State *lua)
{
    int count = lua_gettop(lua);
    struct redis_model *model = get_lua_model(lua);
    struct buffer *out = &model->script_reply;
    struct slice few[CALL_ARGUMENTS_FEW], *args = few;
    if (count > CALL_ARGUMENTS_FEW && !(args = malloc((size_t)count * sizeof(*args))))
        abort();
    buffer_clear(out);
    if (count == 0 || !read_call_arguments(lua, args, count))
        buffer_append_text(out,
                           "-ERR Lua redis lib command arguments must be strings or integers\r\n");
    else
        model_call_execute(model, NULL, args, (size_t)count, out, 2);
    buffer_append_byte(out, '\0');
    bool failed = out->data[0] == '-';
    push_reply(lua, out->data);
    if (args != few)
        free(args);
    return failed;
}

static int lua_redis_call(lua_State *lua)
{
    if (execute_lua_call(lua))
        return lua_error(lua);
    return 1;
}

static int lua_redis_pcall(lua_State *lua)
{
    execute_lua_call(lua);
    return 1;
}

static int lua_error_reply(lua_State *lua)
{
    size_t len;
    const char *text = luaL_checklstring(lua, 1, &len);
    push_tagged(lua, "err", (struct slice){text, len});
    return 1;
}

static int lua_status_reply(lua_State *lua)
{
    size_t len;
    const char *text = luaL_checklstring(lua, 1, &len);
    push_tagged(lua, "ok", (struct slice){text, len});
    return 1;
}

static void digest_text(struct slice text, char digest[MODEL_DIGEST_TEXT + 1])
{
    unsigned char bytes[SHA_DIGEST_LENGTH];
    SHA1((const unsigned char *)text.data, text.len, bytes);
    for (size_t i = 0; i < SHA_DIGEST_LENGTH; i++)
        snprintf(digest + 2 * i, 3, "%02x", bytes[i]);
}

static int lua_sha1hex(lua_State *lua)
{
    char digest[MODEL_DIGEST_TEXT + 1];
    struct slice text;
    text.data = luaL_checklstring(lua, 1, &text.len);
    digest_text(text, digest);
    lua_pushstring(lua, digest);
    return 1;
}

/* Scripts may not make global variables. */
static int lua_refuse_global(lua_State *lua)
{
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                      luaL_checkstring(lua, 2));
}

/* ---- the interpreter ---- */

static void register_library(struct redis_model *model)
{
    static const luaL_Reg functions[] = {
        {"call", lua_redis_call},         {"pcall", lua_redis_pcall},
        {"error_reply", lua_error_reply}, {"status_reply", lua_status_reply},
        {"sha1hex", lua_sha1hex},         {NULL, NULL}};
    lua_State *lua = model->lua;
    lua_pushlightuserdata(lua, model);
    luaI_openlib(lua, "redis", functions, 1);
    lua_pop(lua, 1);
    model_msgpack_register(lua);
    lua_newtable(lua); /* the metatable of the globals */
    lua_pushcfunction(lua, lua_refuse_global);
    lua_setfield(lua, -2, "__newindex");
    lua_pushcfunction(lua, lua_refuse_global);
    lua_setfield(lua, -2, "__index");
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    lua_insert(lua, -2);
    lua_setmetatable(lua, -2);
    lua_pop(lua, 1);
}

static void open_lua_libraries(lua_State *lua)
{
    static const luaL_Reg libraries[] = {{"", luaopen_base},
                                         {LUA_TABLIBNAME, luaopen_table},
                                         {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_MATHLIBNAME, luaopen_math}};
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        lua_pushcfunction(lua, libraries[i].func);
        lua_pushstring(lua, libraries[i].name);
        lua_call(lua, 1, 0);
    }
}

static void *allocate_for_lua(void *arg, void *data, size_t before, size_t bytes)
{
    (void)arg;
    if (bytes > 0)
        return pool_resize(data, before, bytes);
    pool_give(data, before);
    return NULL;
}

void model_scripts_init(struct redis_model *model)
{
    model->lua = lua_newstate(allocate_for_lua, NULL);
    if (!model->lua)
        abort();
    open_lua_libraries(model->lua);
    register_library(model);
    model->scripts = model_value_make(MODEL_HASH);
}

void model_scripts_free(struct redis_model *model)
{
    lua_close(model->lua);
    buffer_free(&model->script_reply);
    model_value_free(model->scripts);
}

/* ---- running ---- */

static void set_lua_array(lua_State *lua, const char *name, const struct slice *texts, size_t count)
{
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        push_text(lua, texts[i]);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_pushstring(lua, name); /* past the metatable */
    lua_insert(lua, -2);
    lua_rawset(lua, LUA_GLOBALSINDEX);
}

/* Replies the error that is on top of the stack: a table with `err`, or a text of Lua's own. */
static void reply_lua_error(struct model_call *call, lua_State *lua)
{
    if (lua_istable(lua, -1)) {
        reply_lua_value(call, lua);
        return;
    }
    char text[ERROR_TEXT_MAX];
    snprintf(text, sizeof(text), "ERR %s", lua_isstring(lua, -1) ? lua_tostring(lua, -1) : "error");
    for (char *at = text; *at; at++)
        if (*at == '\r' || *at == '\n')
            *at = ' ';
    model_reply_error(call, text);
}

/* Compiled scripts are kept in the registry under their digest. Returns false with an error on the stack. */
static bool push_script(lua_State *lua, const char *digest, struct slice source)
{
    lua_getfield(lua, LUA_REGISTRYINDEX, digest);
    if (lua_isfunction(lua, -1))
        return true;
    lua_pop(lua, 1);
    if (luaL_loadbuffer(lua, source.data, source.len, "@user_script") != 0)
        return false;
    lua_pushvalue(lua, -1);
    lua_setfield(lua, LUA_REGISTRYINDEX, digest);
    return true;
}

static void run_script(struct model_call *call, const char *digest, struct slice source)
{
    lua_State *lua = call->model->lua;
    int64_t keys;
    if (!model_call_int(call, 2, &keys))
        return;
    if (keys < 0 || (size_t)keys > call->count - 3) {
        model_reply_error(call, keys < 0
                                    ? "ERR Number of keys can't be negative"
                                    : "ERR Number of keys can't be greater than number of args");
        return;
    }
    call->model->script_session = call->session;
    set_lua_array(lua, "KEYS", call->args + 3, (size_t)keys);
    set_lua_array(lua, "ARGV", call->args + 3 + keys, call->count - 3 - (size_t)keys);
    if (push_script(lua, digest, source) && lua_pcall(lua, 0, 1, 0) == 0)
        reply_lua_value(call, lua);
    else
        reply_lua_error(call, lua);
    lua_settop(lua, 0);
}

static void keep_script(struct redis_model *model, const char *digest, struct slice source)
{
    bool added;
    struct model_member *script = model_member_add(model->scripts, slice_of(digest), &added);
    if (added)
        model_member_set_text(script, source);
}

/* Every new connection of the product's client sends each script once more. */
static const char *find_digest(struct redis_model *model, struct slice source)
{
    uint64_t hash = XXH3_64bits(source.data, source.len) | 1;
    struct model_digest *digest = &model->digests[hash / 2 % MODEL_DIGESTS_KEPT];
    if (digest->hash != hash)
        digest_text(source, digest->text);
    digest->hash = hash;
    return digest->text;
}

static void run_eval(struct model_call *call)
{
    const char *digest = find_digest(call->model, call->args[1]);
    keep_script(call->model, digest, call->args[1]);
    run_script(call, digest, call->args[1]);
}

static void run_evalsha(struct model_call *call)
{
    struct model_member *script = model_member_find(call->model->scripts, call->args[1]);
    if (!script) {
        model_reply_error(call, "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    char digest[MODEL_DIGEST_TEXT + 1] = "";
    memcpy(digest, script->name.data, script->name.len);
    run_script(call, digest, script->text);
}

static void run_script_command(struct model_call *call)
{
    char digest[MODEL_DIGEST_TEXT + 1];
    struct model_value *scripts = call->model->scripts;
    if (model_slice_is_word(call->args[1], "LOAD") && call->count == 3) {
        digest_text(call->args[2], digest);
        keep_script(call->model, digest, call->args[2]);
        model_reply_bulk(call, slice_of(digest));
    } else if (model_slice_is_word(call->args[1], "EXISTS")) {
        model_reply_array(call, call->count - 2);
        for (size_t i = 2; i < call->count; i++)
            model_reply_int(call, model_member_find(scripts, call->args[i]) != NULL);
    } else if (model_slice_is_word(call->args[1], "FLUSH")) {
        while (scripts->count > 0)
            model_member_remove(scripts, scripts->members[0]);
        model_reply_ok(call);
    } else {
        model_reply_error(call, "ERR unknown subcommand or wrong number of arguments");
    }
}

const struct model_command model_script_commands[] = {
    {"EVAL", run_eval, 3, 0, MODEL_NO_SCRIPT | MODEL_COUNTED_KEYS},
    {"EVALSHA", run_evalsha, 3, 0, MODEL_NO_SCRIPT | MODEL_COUNTED_KEYS},
    {"EVAL_RO", run_eval, 3, 0, MODEL_NO_SCRIPT | MODEL_COUNTED_KEYS},
    {"SCRIPT", run_script_command, 2, 0, MODEL_NO_SCRIPT | MODEL_NO_KEYS},
    {0},
};

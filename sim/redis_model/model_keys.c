/* Commands on keys of any type, and on strings. */
#include "redis_model/model_call.h"

#include "base/container.h"

#include <fnmatch.h>
#include <stdio.h>

static void run_get(struct model_call *call)
{
    bool ok;
    struct model_value *value = model_call_read(call, 1, MODEL_STRING, &ok);
    if (value)
        model_reply_bulk(call, value->text);
    else if (ok)
        model_reply_null(call);
}

static void run_mget(struct model_call *call)
{
    model_reply_array(call, call->count - 1);
    for (size_t i = 1; i < call->count; i++) {
        struct model_key *key = model_key_find(call->model, call->args[i]);
        if (key && key->value->type == MODEL_STRING)
            model_reply_bulk(call, key->value->text);
        else
            model_reply_null(call);
    }
}

struct set_options {
    bool only_new;
    bool only_existing;
    bool keeps_time;
    int64_t ttl_us; /* 0: none */
};

/* Replies the error and returns false. */
static bool read_set_options(struct model_call *call, struct set_options *options)
{
    for (size_t i = 3; i < call->count; i++) {
        struct slice word = call->args[i];
        bool in_ms = model_slice_is_word(word, "PX");
        if (model_slice_is_word(word, "NX")) {
            options->only_new = true;
        } else if (model_slice_is_word(word, "XX")) {
            options->only_existing = true;
        } else if (model_slice_is_word(word, "KEEPTTL")) {
            options->keeps_time = true;
        } else if ((in_ms || model_slice_is_word(word, "EX")) && i + 1 < call->count) {
            if (!model_call_int(call, ++i, &options->ttl_us))
                return false;
            if (options->ttl_us <= 0) {
                model_reply_error(call, "ERR invalid expire time in 'set' command");
                return false;
            }
            options->ttl_us *= in_ms ? 1000 : 1000000;
        } else {
            model_reply_error(call, MODEL_SYNTAX);
            return false;
        }
    }
    return true;
}

static void run_set(struct model_call *call)
{
    struct set_options options = {0};
    if (!read_set_options(call, &options))
        return;
    struct model_key *key = model_key_find(call->model, call->args[1]);
    if (key ? options.only_new : options.only_existing) {
        model_reply_null(call);
        return;
    }
    int64_t expires_us = key && options.keeps_time ? key->expires_us : 0;
    if (key)
        model_key_remove(call->model, key);
    key = model_key_make(call->model, call->args[1], MODEL_STRING);
    model_string_set(key->value, call->args[2]);
    key->expires_us = options.ttl_us ? call->model->now_us + options.ttl_us : expires_us;
    model_reply_ok(call);
}

static void run_del(struct model_call *call)
{
    int64_t removed = 0;
    for (size_t i = 1; i < call->count; i++) {
        struct model_key *key = model_key_find(call->model, call->args[i]);
        if (!key)
            continue;
        model_key_remove(call->model, key);
        removed++;
    }
    model_reply_int(call, removed);
}

static void run_exists(struct model_call *call)
{
    int64_t found = 0;
    for (size_t i = 1; i < call->count; i++)
        found += model_key_find(call->model, call->args[i]) != NULL;
    model_reply_int(call, found);
}

static void run_type(struct model_call *call)
{
    struct model_key *key = model_key_find(call->model, call->args[1]);
    model_reply_status(call, key ? model_type_name(key->value->type) : "none");
}

/* Replies the error and returns false. */
static bool expire_condition_holds(struct model_call *call, const struct model_key *key,
                                   int64_t expires_us, bool *holds)
{
    int64_t before_us = key->expires_us;
    *holds = true;
    for (size_t i = 3; i < call->count; i++) {
        struct slice word = call->args[i];
        if (model_slice_is_word(word, "NX"))
            *holds &= before_us == 0;
        else if (model_slice_is_word(word, "XX"))
            *holds &= before_us != 0;
        else if (model_slice_is_word(word, "GT"))
            *holds &= before_us != 0 && expires_us > before_us;
        else if (model_slice_is_word(word, "LT"))
            *holds &= before_us == 0 || expires_us < before_us;
        else
            return false;
    }
    return true;
}

static void set_expiry(struct model_call *call, int64_t unit_us, bool is_absolute)
{
    int64_t amount;
    bool holds;
    if (!model_call_int(call, 2, &amount))
        return;
    struct model_key *key = model_key_find(call->model, call->args[1]);
    if (!key) {
        model_reply_int(call, 0);
        return;
    }
    int64_t expires_us = amount * unit_us + (is_absolute ? 0 : call->model->now_us);
    if (!expire_condition_holds(call, key, expires_us, &holds)) {
        model_reply_error(call, "ERR Unsupported option");
        return;
    }
    if (holds && expires_us <= call->model->now_us)
        model_key_remove(call->model, key);
    else if (holds)
        key->expires_us = expires_us;
    model_reply_int(call, holds);
}

static void run_expire(struct model_call *call)
{
    set_expiry(call, 1000000, false);
}

static void run_pexpire(struct model_call *call)
{
    set_expiry(call, 1000, false);
}

static void run_pexpireat(struct model_call *call)
{
    set_expiry(call, 1000, true);
}

static void run_persist(struct model_call *call)
{
    struct model_key *key = model_key_find(call->model, call->args[1]);
    model_reply_int(call, key && key->expires_us);
    if (key)
        key->expires_us = 0;
}

static void reply_ttl(struct model_call *call, int64_t unit_us)
{
    struct model_key *key = model_key_find(call->model, call->args[1]);
    int64_t now_ms = call->model->now_us / 1000;
    if (!key)
        model_reply_int(call, -2);
    else if (!key->expires_us)
        model_reply_int(call, -1);
    else if (unit_us == 1000)
        model_reply_int(call, key->expires_us / 1000 - now_ms);
    else
        model_reply_int(call, (key->expires_us / 1000 - now_ms + 500) / 1000);
}

static void run_ttl(struct model_call *call)
{
    reply_ttl(call, 1000000);
}

static void run_pttl(struct model_call *call)
{
    reply_ttl(call, 1000);
}

static void run_incrby(struct model_call *call)
{
    int64_t by = 1, before = 0;
    char text[32];
    bool ok;
    if (call->count > 2 && !model_call_int(call, 2, &by))
        return;
    struct model_value *value = model_call_read(call, 1, MODEL_STRING, &ok);
    if (!ok)
        return;
    if (value && !resp_parse_integer(value->text, &before)) {
        model_reply_error(call, MODEL_NOT_INTEGER);
        return;
    }
    if (__builtin_add_overflow(before, by, &before)) {
        model_reply_error(call, "ERR increment or decrement would overflow");
        return;
    }
    if (!value)
        value = model_key_make(call->model, call->args[1], MODEL_STRING)->value;
    snprintf(text, sizeof(text), "%lld", (long long)before);
    model_string_set(value, slice_of(text));
    model_reply_int(call, before);
}

struct key_search {
    struct model_call *call;
    struct slice pattern;
    struct buffer found;
    size_t count;
};

static void visit_key(struct table_node *node, void *arg)
{
    struct key_search *search = arg;
    const struct model_key *key = CONTAINER_OF(node, const struct model_key, node);
    struct model_call reply = {.out = &search->found, .resp = search->call->resp};
    char pattern[256], name[256];
    bool has_expired = key->expires_us && key->expires_us <= search->call->model->now_us;
    snprintf(pattern, sizeof(pattern), "%.*s", SLICE_FORMAT(search->pattern));
    snprintf(name, sizeof(name), "%.*s", SLICE_FORMAT(key->name));
    if (has_expired || fnmatch(pattern, name, 0) != 0)
        return;
    model_reply_bulk(&reply, key->name);
    search->count++;
}

static void reply_keys(struct model_call *call, struct slice pattern)
{
    struct key_search search = {.call = call, .pattern = pattern};
    table_each(&call->model->keys, visit_key, &search);
    model_reply_array(call, search.count);
    buffer_append_slice(call->out, buffer_slice(&search.found));
    buffer_free(&search.found);
}

static void run_keys(struct model_call *call)
{
    reply_keys(call, call->args[1]);
}

/* One page has all keys: COUNT is only a hint. */
static void run_scan(struct model_call *call)
{
    model_reply_array(call, 2);
    model_reply_bulk(call, SLICE("0"));
    reply_keys(call, SLICE("*"));
}

const struct model_command model_key_commands[] = {
    {"GET", run_get, 2, 2, 0},
    {"MGET", run_mget, 2, 0, MODEL_ALL_KEYS},
    {"SET", run_set, 3, 0, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {"DEL", run_del, 2, 0, MODEL_WRITES | MODEL_ALL_KEYS},
    {"UNLINK", run_del, 2, 0, MODEL_WRITES | MODEL_ALL_KEYS},
    {"KEYS", run_keys, 2, 2, MODEL_NO_KEYS},
    {"SCAN", run_scan, 2, 4, MODEL_NO_KEYS},
    {"EXISTS", run_exists, 2, 0, MODEL_ALL_KEYS},
    {"TYPE", run_type, 2, 2, 0},
    {"EXPIRE", run_expire, 3, 0, MODEL_WRITES},
    {"PEXPIRE", run_pexpire, 3, 0, MODEL_WRITES},
    {"PEXPIREAT", run_pexpireat, 3, 0, MODEL_WRITES},
    {"PERSIST", run_persist, 2, 2, MODEL_WRITES},
    {"TTL", run_ttl, 2, 2, 0},
    {"PTTL", run_pttl, 2, 2, 0},
    {"INCR", run_incrby, 2, 2, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {"INCRBY", run_incrby, 3, 3, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {0},
};

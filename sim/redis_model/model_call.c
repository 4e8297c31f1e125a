#include "redis_model/model_call.h"

#include "base/container.h"
#include "redis_model/model_tracking.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ---- keys ---- */

static void free_model_key(struct model_key *key)
{
    model_value_free(key->value);
    free((char *)key->name.data);
    free(key);
}

void model_key_remove(struct redis_model *model, struct model_key *key)
{
    table_remove(&model->keys, &key->node);
    model_tracking_invalidate(model, key->name);
    free_model_key(key);
}

struct model_key *model_key_find(struct redis_model *model, struct slice name)
{
    struct table_node *node = table_find(&model->keys, name);
    struct model_key *key = node ? CONTAINER_OF(node, struct model_key, node) : NULL;
    if (!key || !key->expires_us || key->expires_us > model->now_us)
        return key;
    model_key_remove(model, key);
    return NULL;
}

struct model_key *model_key_make(struct redis_model *model, struct slice name, enum model_type type)
{
    struct model_key *key = calloc(1, sizeof(*key));
    char *copy = malloc(name.len + 1);
    if (!key || !copy)
        abort();
    if (name.len)
        memcpy(copy, name.data, name.len);
    key->name = (struct slice){copy, name.len};
    key->value = model_value_make(type);
    table_insert(&model->keys, &key->node, key->name);
    return key;
}

struct model_value *model_call_read(struct model_call *call, size_t argument, enum model_type type,
                                    bool *ok)
{
    struct model_key *key = model_key_find(call->model, call->args[argument]);
    *ok = !key || key->value->type == type;
    if (!*ok)
        model_reply_error(call, MODEL_WRONG_TYPE);
    return key && *ok ? key->value : NULL;
}

struct model_value *model_call_write(struct model_call *call, size_t argument, enum model_type type,
                                     bool *ok)
{
    struct model_value *value = model_call_read(call, argument, type, ok);
    if (value || !*ok)
        return value;
    return model_key_make(call->model, call->args[argument], type)->value;
}

void model_call_drop_if_empty(struct model_call *call, size_t argument)
{
    struct model_key *key = model_key_find(call->model, call->args[argument]);
    if (key && key->value->type != MODEL_STRING && key->value->count == 0)
        model_key_remove(call->model, key);
}

void model_call_remove_members(struct model_call *call, enum model_type type)
{
    int64_t removed = 0;
    bool ok;
    struct model_value *value = model_call_read(call, 1, type, &ok);
    if (!ok)
        return;
    for (size_t i = 2; value && i < call->count; i++) {
        struct model_member *member = model_member_find(value, call->args[i]);
        if (!member)
            continue;
        model_member_remove(value, member);
        removed++;
    }
    model_call_drop_if_empty(call, 1);
    model_reply_int(call, removed);
}

void model_call_count_members(struct model_call *call, enum model_type type)
{
    bool ok;
    struct model_value *value = model_call_read(call, 1, type, &ok);
    if (ok)
        model_reply_int(call, value ? (int64_t)value->count : 0);
}

/* ---- arguments ---- */

struct model_keys model_call_keys(const struct model_call *call,
                                  const struct model_command *command)
{
    int64_t counted;
    if (command->flags & MODEL_NO_KEYS || call->count < 2)
        return (struct model_keys){0};
    if (command->flags & MODEL_ALL_KEYS)
        return (struct model_keys){1, call->count - 1};
    if (!(command->flags & MODEL_COUNTED_KEYS))
        return (struct model_keys){1, 1};
    bool is_count = call->count > 3 && resp_parse_integer(call->args[2], &counted) && counted > 0 &&
                    (size_t)counted <= call->count - 3;
    return (struct model_keys){3, is_count ? (size_t)counted : 0};
}

bool model_slice_is_word(struct slice text, const char *word)
{
    return text.len > 0 && (text.data[0] | ' ') == (word[0] | ' ') &&
           strncasecmp(text.data, word, text.len) == 0 && word[text.len] == '\0';
}

bool model_call_int(struct model_call *call, size_t argument, int64_t *out)
{
    if (resp_parse_integer(call->args[argument], out))
        return true;
    model_reply_error(call, MODEL_NOT_INTEGER);
    return false;
}

bool model_parse_double(struct slice text, double *out)
{
    char copy[64], *end;
    if (text.len == 0 || text.len >= sizeof(copy) || text.data[0] == ' ')
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *out = strtod(copy, &end);
    return *end == '\0' && !isnan(*out);
}

bool model_call_double(struct model_call *call, size_t argument, double *out)
{
    if (model_parse_double(call->args[argument], out))
        return true;
    model_reply_error(call, MODEL_NOT_FLOAT);
    return false;
}

bool model_parse_bound(struct slice text, double *bound, bool *exclusive)
{
    *exclusive = text.len > 0 && text.data[0] == '(';
    return model_parse_double(*exclusive ? slice_after(text, 1) : text, bound);
}

/* ---- replies ---- */

/* A mark, a number and the end of the line: formatting it by printf would be a tenth of a simulation. */
static void reply_number(struct model_call *call, char mark, int64_t value)
{
    buffer_append_byte(call->out, mark);
    buffer_append_int(call->out, value);
    buffer_append(call->out, "\r\n", 2);
}

void model_reply_error(struct model_call *call, const char *text)
{
    buffer_append_byte(call->out, '-');
    buffer_append_text(call->out, text);
    buffer_append(call->out, "\r\n", 2);
}

void model_reply_status(struct model_call *call, const char *text)
{
    buffer_append_byte(call->out, '+');
    buffer_append_text(call->out, text);
    buffer_append(call->out, "\r\n", 2);
}

void model_reply_ok(struct model_call *call)
{
    buffer_append(call->out, "+OK\r\n", 5);
}

void model_reply_int(struct model_call *call, int64_t value)
{
    reply_number(call, ':', value);
}

void model_reply_bulk(struct model_call *call, struct slice text)
{
    reply_number(call, '$', (int64_t)text.len);
    buffer_append_slice(call->out, text);
    buffer_append(call->out, "\r\n", 2);
}

void model_reply_number_text(struct model_call *call, int64_t value)
{
    int64_t digits = value < 0 ? 2 : 1;
    for (int64_t left = value / 10; left != 0; left /= 10)
        digits++;
    reply_number(call, '$', digits);
    buffer_append_int(call->out, value);
    buffer_append(call->out, "\r\n", 2);
}

void model_reply_null(struct model_call *call)
{
    buffer_append_text(call->out, call->resp == 3 ? "_\r\n" : "$-1\r\n");
}

void model_reply_null_array(struct model_call *call)
{
    buffer_append_text(call->out, call->resp == 3 ? "_\r\n" : "*-1\r\n");
}

void model_reply_array(struct model_call *call, size_t count)
{
    reply_number(call, '*', (int64_t)count);
}

void model_reply_map(struct model_call *call, size_t pairs)
{
    if (call->resp == 3)
        reply_number(call, '%', (int64_t)pairs);
    else
        model_reply_array(call, 2 * pairs);
}

void model_reply_set(struct model_call *call, size_t count)
{
    reply_number(call, call->resp == 3 ? '~' : '*', (int64_t)count);
}

void model_reply_score(struct model_call *call, double score)
{
    char text[64];
    if (isinf(score))
        snprintf(text, sizeof(text), "%s", score > 0 ? "inf" : "-inf");
    else if (score == floor(score) && fabs(score) < 1e17)
        snprintf(text, sizeof(text), "%.0f", score);
    else
        snprintf(text, sizeof(text), "%.17g", score);
    if (call->resp == 3)
        buffer_printf(call->out, ",%s\r\n", text);
    else
        model_reply_bulk(call, slice_of(text));
}

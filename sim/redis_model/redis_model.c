#include "redis_model/redis_model.h"

#include "base/container.h"
#include "redis_model/model_call.h"
#include "redis_model/model_cluster.h"
#include "redis_model/model_scripts.h"
#include "redis_model/model_tracking.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { ERROR_TEXT_MAX = 160, NAME_SHOWN_MAX = 64, FOUND_COMMANDS = 512 };

static const struct model_command *const command_tables[] = {
    model_key_commands,        model_hash_commands,    model_set_commands,
    model_sorted_set_commands, model_list_commands,    model_script_commands,
    model_server_commands,     model_channel_commands, model_cluster_commands,
};

/* ---- life ---- */

static bool match_model_key(const struct table_node *node, struct slice name)
{
    return slice_equal(CONTAINER_OF(node, const struct model_key, node)->name, name);
}

void redis_model_init(struct redis_model *model, int64_t now_us, uint64_t seed)
{
    *model = (struct redis_model){.now_us = now_us, .random = seed};
    if (!table_init(&model->keys, seed, match_model_key))
        abort();
    list_init(&model->sessions);
    model_tracking_init(model);
    model_scripts_init(model);
}

static void remove_model_key(struct table_node *node, void *arg)
{
    model_key_remove(arg, CONTAINER_OF(node, struct model_key, node));
}

void redis_model_clear(struct redis_model *model)
{
    table_each(&model->keys, remove_model_key, model);
    while (model->scripts->count > 0)
        model_member_remove(model->scripts, model->scripts->members[0]);
}

static void copy_model_key(struct table_node *node, void *arg)
{
    const struct model_key *key = CONTAINER_OF(node, struct model_key, node);
    struct model_key *copy = model_key_make(arg, key->name, key->value->type);
    model_value_copy(copy->value, key->value);
    copy->expires_us = key->expires_us;
}

void redis_model_copy(struct redis_model *model, const struct redis_model *from)
{
    table_each((struct table *)&from->keys, copy_model_key, model);
}

struct eviction {
    struct redis_model *model;
    unsigned percent;
};

/* Which keys go follows from their names, so that the order of the table does not matter. */
static void evict_model_key(struct table_node *node, void *arg)
{
    const struct eviction *eviction = arg;
    struct model_key *key = CONTAINER_OF(node, struct model_key, node);
    uint64_t drawn = eviction->model->random;
    for (size_t i = 0; i < key->name.len; i++)
        drawn = (drawn ^ (unsigned char)key->name.data[i]) * 0x100000001b3;
    if (key->expires_us && drawn / 256 % 100 < eviction->percent)
        model_key_remove(eviction->model, key);
}

void redis_model_evict(struct redis_model *model, unsigned percent)
{
    struct eviction eviction = {model, percent};
    table_each(&model->keys, evict_model_key, &eviction);
}

void redis_model_free(struct redis_model *model)
{
    redis_model_clear(model);
    table_free(&model->keys);
    table_free(&model->tracked);
    model_scripts_free(model);
}

void redis_session_open(struct redis_session *session, struct redis_model *model)
{
    *session = (struct redis_session){.model = model,
                                      .resp = 2,
                                      .channels = model_value_make(MODEL_SET),
                                      .shard_channels = model_value_make(MODEL_SET),
                                      .tracked = model_value_make(MODEL_SET)};
    list_append(&model->sessions, &session->place);
}

void redis_session_close(struct redis_session *session)
{
    list_remove(&session->place);
    model_value_free(session->channels);
    model_value_free(session->shard_channels);
    model_tracking_stop(session);
    model_value_free(session->tracked);
    model_request_free(&session->request);
    buffer_free(&session->in);
    buffer_free(&session->out);
    buffer_free(&session->queued);
    buffer_free(&session->pushes);
}

/* ---- executing ---- */

static const struct model_command *search_command(struct slice name)
{
    for (size_t table = 0; table < sizeof(command_tables) / sizeof(command_tables[0]); table++)
        for (const struct model_command *at = command_tables[table]; at->name; at++)
            if (model_slice_is_word(name, at->name))
                return at;
    return NULL;
}

/* Remembers where it found a name, as the same few are looked for all the time. */
static const struct model_command *find_command(struct slice name)
{
    static const struct model_command *found[FOUND_COMMANDS];
    size_t at = name.len;
    for (size_t i = 0; i < name.len && i < NAME_SHOWN_MAX; i++)
        at = at * 31 + (size_t)(name.data[i] | ' ');
    at %= FOUND_COMMANDS;
    if (!found[at] || !model_slice_is_word(name, found[at]->name))
        found[at] = search_command(name);
    return found[at];
}

/* Returns NULL when the command may be executed. */
static const char *find_refusal(const struct model_call *call, const struct model_command *command,
                                char text[ERROR_TEXT_MAX])
{
    const struct redis_model *model = call->model;
    bool fits = (int)call->count >= command->arguments_min &&
                (command->arguments_max == 0 || (int)call->count <= command->arguments_max);
    if (!fits) {
        int len = snprintf(text, ERROR_TEXT_MAX, "ERR wrong number of arguments for '%s' command",
                           command->name);
        for (int i = 0; i < len; i++)
            text[i] = i > 30 ? (char)tolower(text[i]) : text[i];
        return text;
    }
    if (!call->session && command->flags & MODEL_NO_SCRIPT)
        return "ERR This Redis command is not allowed from script";
    const char *redirection = model->cluster ? model_cluster_refuse(call, command, text) : NULL;
    if (redirection)
        return redirection;
    if (model->is_loading && !(command->flags & MODEL_WHILE_LOADING))
        return "LOADING Redis is loading the dataset in memory";
    if (model->is_replica && command->flags & MODEL_WRITES)
        return "READONLY You can't write against a read only replica.";
    if (model->is_full && command->flags & MODEL_NEEDS_MEMORY)
        return "OOM command not allowed when used memory > 'maxmemory'.";
    return NULL;
}

void model_call_execute(struct redis_model *model, struct redis_session *session,
                        const struct slice *args, size_t count, struct buffer *out, int resp)
{
    struct model_call call = {model, session, args, count, out, resp};
    const struct model_command *command = find_command(args[0]);
    char text[ERROR_TEXT_MAX];
    model->commands++;
    if (!command) {
        snprintf(text, sizeof(text), "ERR unknown command '%.*s'",
                 (int)(args[0].len < NAME_SHOWN_MAX ? args[0].len : NAME_SHOWN_MAX), args[0].data);
        model_reply_error(&call, text);
        return;
    }
    const char *refusal = find_refusal(&call, command, text);
    if (refusal) {
        model_reply_error(&call, refusal);
        return;
    }
    command->run(&call);
    model_tracking_executed(&call, command);
}

/* ---- transactions ---- */

static void run_queued_commands(struct redis_session *session)
{
    struct slice left = buffer_slice(&session->queued);
    buffer_printf(&session->out, "*%zu\r\n", session->queued_count);
    struct model_request request = {0};
    while (left.len > 0) {
        size_t len = model_request_read(&request, left);
        model_call_execute(session->model, session, request.args, request.count, &session->out,
                           session->resp);
        left = slice_after(left, len);
    }
    model_request_free(&request);
}

static void end_multi(struct redis_session *session)
{
    buffer_clear(&session->queued);
    session->queued_count = 0;
    session->in_multi = session->multi_failed = false;
}

static void run_exec(struct redis_session *session)
{
    if (session->multi_failed)
        buffer_append_text(&session->out,
                           "-EXECABORT Transaction discarded because of previous errors.\r\n");
    else
        run_queued_commands(session);
    end_multi(session);
}

static void queue_command(struct redis_session *session, const struct slice *args, size_t count)
{
    struct model_call call = {session->model, session, args, count, &session->out, session->resp};
    const struct model_command *command = find_command(args[0]);
    char text[ERROR_TEXT_MAX];
    const char *refusal = command ? find_refusal(&call, command, text) : "ERR unknown command";
    if (refusal) {
        session->multi_failed = true;
        model_reply_error(&call, refusal);
        return;
    }
    resp_write_command(&session->queued, args, count);
    session->queued_count++;
    model_reply_status(&call, "QUEUED");
}

/* ---- receiving ---- */

static void run_session_command(struct redis_session *session, const struct slice *args,
                                size_t count)
{
    bool was_asking = session->is_asking;
    if (model_slice_is_word(args[0], "MULTI") && !session->in_multi) {
        session->in_multi = true;
        buffer_append_text(&session->out, "+OK\r\n");
    } else if (model_slice_is_word(args[0], "EXEC") && session->in_multi) {
        run_exec(session);
    } else if (model_slice_is_word(args[0], "DISCARD") && session->in_multi) {
        end_multi(session);
        buffer_append_text(&session->out, "+OK\r\n");
    } else if (session->in_multi) {
        queue_command(session, args, count);
    } else {
        model_call_execute(session->model, session, args, count, &session->out, session->resp);
    }
    if (was_asking && !session->in_multi) /* for one command */
        session->is_asking = false;
}

void redis_session_receive(struct redis_session *session, struct slice bytes)
{
    buffer_append_slice(&session->in, bytes);
    model_tracking_expire(session->model);
    struct slice left = buffer_slice(&session->in);
    while (left.len > 0 && !session->is_closing) {
        size_t len = model_request_read(&session->request, left);
        if (len == 0)
            break;
        if (len == SIZE_MAX) {
            session->is_closing = true;
            buffer_append_text(&session->out, "-ERR Protocol error\r\n");
            return;
        }
        run_session_command(session, session->request.args, session->request.count);
        model_tracking_flush(session->model);
        left = slice_after(left, len);
    }
    buffer_consume(&session->in, session->in.len - left.len);
}

/* Publishing and subscribing, sharded and not. In version 3 of the protocol what is published arrives as a push. */
#include "base/container.h"
#include "redis_model/model_call.h"

static void write_message(struct redis_session *session, const char *kind, struct slice channel,
                          struct slice payload)
{
    struct model_call call = {.out = &session->out, .resp = session->resp};
    buffer_append_text(&session->out, session->resp == 3 ? ">3\r\n" : "*3\r\n");
    model_reply_bulk(&call, slice_of(kind));
    model_reply_bulk(&call, channel);
    model_reply_bulk(&call, payload);
}

/* Returns how many sessions received it. */
static int64_t publish(struct redis_model *model, struct slice channel, struct slice payload,
                       bool is_sharded)
{
    int64_t receivers = 0;
    for (struct list *at = model->sessions.next; at != &model->sessions; at = at->next) {
        struct redis_session *session = CONTAINER_OF(at, struct redis_session, place);
        struct model_value *channels = is_sharded ? session->shard_channels : session->channels;
        if (!model_member_find(channels, channel))
            continue;
        write_message(session, is_sharded ? "smessage" : "message", channel, payload);
        receivers++;
    }
    return receivers;
}

static void run_publish(struct model_call *call)
{
    model_reply_int(call, publish(call->model, call->args[1], call->args[2], false));
}

static void run_spublish(struct model_call *call)
{
    model_reply_int(call, publish(call->model, call->args[1], call->args[2], true));
}

static void confirm(struct model_call *call, const char *kind, struct slice channel, size_t count)
{
    buffer_append_text(call->out, call->resp == 3 ? ">3\r\n" : "*3\r\n");
    model_reply_bulk(call, slice_of(kind));
    if (channel.data)
        model_reply_bulk(call, channel);
    else
        model_reply_null(call);
    model_reply_int(call, (int64_t)count);
}

static void subscribe(struct model_call *call, struct model_value *channels, const char *kind)
{
    bool added;
    for (size_t i = 1; i < call->count; i++) {
        model_member_add(channels, call->args[i], &added);
        confirm(call, kind, call->args[i], channels->count);
    }
}

static void unsubscribe(struct model_call *call, struct model_value *channels, const char *kind)
{
    for (size_t i = 1; i < call->count; i++) {
        struct model_member *member = model_member_find(channels, call->args[i]);
        if (member)
            model_member_remove(channels, member);
        confirm(call, kind, call->args[i], channels->count);
    }
    if (call->count > 1)
        return;
    if (channels->count == 0)
        confirm(call, kind, SLICE_NONE, 0);
    while (channels->count > 0) {
        struct buffer name = BUFFER_INIT;
        buffer_append_slice(&name, channels->members[0]->name);
        model_member_remove(channels, channels->members[0]);
        confirm(call, kind, buffer_slice(&name), channels->count);
        buffer_free(&name);
    }
}

static void run_subscribe(struct model_call *call)
{
    subscribe(call, call->session->channels, "subscribe");
}

static void run_unsubscribe(struct model_call *call)
{
    unsubscribe(call, call->session->channels, "unsubscribe");
}

static void run_ssubscribe(struct model_call *call)
{
    subscribe(call, call->session->shard_channels, "ssubscribe");
}

static void run_sunsubscribe(struct model_call *call)
{
    unsubscribe(call, call->session->shard_channels, "sunsubscribe");
}

static int64_t count_subscribers(const struct redis_model *model, struct slice channel, bool shard)
{
    int64_t count = 0;
    for (struct list *at = model->sessions.next; at != &model->sessions; at = at->next) {
        struct redis_session *session = CONTAINER_OF(at, struct redis_session, place);
        count +=
            model_member_find(shard ? session->shard_channels : session->channels, channel) != NULL;
    }
    return count;
}

static void run_pubsub(struct model_call *call)
{
    bool shard = model_slice_is_word(call->args[1], "SHARDNUMSUB");
    if (!shard && !model_slice_is_word(call->args[1], "NUMSUB")) {
        model_reply_error(call, "ERR unknown subcommand");
        return;
    }
    model_reply_array(call, 2 * (call->count - 2));
    for (size_t i = 2; i < call->count; i++) {
        model_reply_bulk(call, call->args[i]);
        model_reply_int(call, count_subscribers(call->model, call->args[i], shard));
    }
}

const struct model_command model_channel_commands[] = {
    {"PUBSUB", run_pubsub, 2, 0, MODEL_NO_KEYS},
    {"PUBLISH", run_publish, 3, 3, MODEL_NO_KEYS},
    {"SPUBLISH", run_spublish, 3, 3, MODEL_SHARD_CHANNELS},
    {"SUBSCRIBE", run_subscribe, 2, 0, MODEL_NO_SCRIPT | MODEL_NO_KEYS},
    {"UNSUBSCRIBE", run_unsubscribe, 1, 0, MODEL_NO_SCRIPT | MODEL_NO_KEYS},
    {"SSUBSCRIBE", run_ssubscribe, 2, 0, MODEL_NO_SCRIPT | MODEL_ALL_KEYS | MODEL_SHARD_CHANNELS},
    {"SUNSUBSCRIBE", run_sunsubscribe, 1, 0,
     MODEL_NO_SCRIPT | MODEL_ALL_KEYS | MODEL_SHARD_CHANNELS},
    {0},
};

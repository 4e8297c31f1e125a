#include "app/gateway/gateway_messages.h"

#include "app/ledger_choice.h"

static void on_message_sent(void *arg, struct slice chat, struct slice user)
{
    typing_end(arg, chat, user);
}

static void on_message_read(void *arg, struct slice chat, struct slice user,
                            const struct ledger_cursor_outcome *outcome)
{
    chat_publish_receipt(arg, chat, user, outcome->read_sequence, &outcome->hidden_from);
}

static bool compose_feed(struct gateway_messages *messages)
{
    const struct gateway_messages_parts *parts = &messages->parts;
    struct gateway_feed_parts feed = {
        .config = parts->config,
        .loop = parts->loop,
        .random = parts->random,
        .metrics = parts->metrics,
        .client = parts->client,
        .started_at_ms = parts->started_at_ms,
        .replays = parts->replays,
    };
    messages->fanout = (struct fanout){
        .retry = &parts->config->fanout.retry,
        .clock = &parts->loop->clock,
        .wheel = &parts->loop->wheel,
        .ledger = parts->client,
        .delivery = parts->delivery,
        .metrics = parts->metrics,
    };
    return fanout_init(&messages->fanout, parts->hash_seed) &&
           gateway_feed_make(&messages->feed, &feed, fanout_on_item, &messages->fanout);
}

bool gateway_messages_make(struct gateway_messages *messages,
                           const struct gateway_messages_parts *parts)
{
    messages->parts = *parts;
    parts->client->time_limit_ms = parts->config->gateway.timeouts.durability_rpc_ms;
    if (!compose_feed(messages))
        return false;
    messages->plane = (struct message_plane){
        .config = parts->config,
        .clock = &parts->loop->clock,
        .random = parts->random,
        .ledger = parts->client,
        .feed = messages->feed.producer,
        .metrics = parts->metrics,
        .on_sent = on_message_sent,
        .on_sent_arg = parts->typing,
        .on_read = on_message_read,
        .on_read_arg = parts->chats,
    };
    return message_plane_init(&messages->plane, parts->hash_seed);
}

void gateway_messages_start(struct gateway_messages *messages)
{
    ledger_expiry_start(&messages->expiry, messages->parts.loop, messages->parts.client);
}

void gateway_messages_tick(struct gateway_messages *messages)
{
    gateway_feed_tick(&messages->feed);
}

void gateway_messages_sample(struct gateway_messages *messages)
{
    ledger_choice_sample(messages->parts.ledger, messages->parts.config, messages->parts.metrics);
    gateway_feed_sample(&messages->feed);
}

bool gateway_messages_idle(struct gateway_messages *messages)
{
    return message_plane_idle(&messages->plane) && gateway_feed_leave(&messages->feed);
}

void gateway_messages_stop(struct gateway_messages *messages)
{
    messages->plane.stopped = true;
    messages->fanout.stopped = true;
    gateway_feed_stop(&messages->feed);
}

void gateway_messages_free(struct gateway_messages *messages)
{
    message_plane_free(&messages->plane);
    fanout_free(&messages->fanout);
    gateway_feed_free(&messages->feed);
}

#include "routing/fanout.h"

#include "base/backoff.h"
#include "base/container.h"
#include "base/id_list.h"
#include "ledger/ledger_messages.h"

#include <assert.h>
#include <stdlib.h>

/* A cached chat. */
struct fanout_chat {
    struct table_node node;
    struct list recent;
    struct fanout *fanout;
    struct list waiting;    /* items in FEED_ITEM_ARRIVED and FEED_ITEM_READING, in order */
    bool reading;           /* a read of the members is in flight */
    uint64_t version;       /* of the members; 0: unknown */
    struct id_list members; /* owned */
    uint8_t id_len;
    char id[];
};

static struct slice fanout_chat_id(const struct fanout_chat *chat)
{
    return (struct slice){chat->id, chat->id_len};
}

static bool fanout_chat_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(fanout_chat_id(CONTAINER_OF(node, struct fanout_chat, node)), key);
}

static struct feed_item *fanout_first_item(const struct list *list)
{
    return CONTAINER_OF(list->next, struct feed_item, link);
}

bool fanout_init(struct fanout *fanout, uint64_t seed)
{
    list_init(&fanout->recent);
    list_init(&fanout->retrying);
    fanout->member_count = 0;
    return table_init(&fanout->chats, seed, fanout_chat_matches);
}

/* Only these changes of stage are legal (fanout.h). */
static void fanout_set_item_stage(struct feed_item *item, enum feed_item_stage stage)
{
    enum feed_item_stage before = item->stage;
    switch (stage) {
    case FEED_ITEM_ARRIVED:
        assert(before == FEED_ITEM_ARRIVED || before == FEED_ITEM_RETRYING);
        break;
    case FEED_ITEM_READING:
    case FEED_ITEM_SENDING:
        assert(before == FEED_ITEM_ARRIVED || before == FEED_ITEM_READING);
        break;
    case FEED_ITEM_RETRYING:
        assert(before != FEED_ITEM_RETRYING);
        break;
    }
    (void)before;
    item->stage = stage;
}

/* ---- the cache of chats ---- */

static void fanout_chat_drop_members(struct fanout_chat *chat)
{
    chat->fanout->member_count -= chat->members.count;
    id_list_free(&chat->members);
    chat->version = 0;
}

static void fanout_chat_free(struct fanout_chat *chat)
{
    fanout_chat_drop_members(chat);
    list_remove(&chat->recent);
    table_remove(&chat->fanout->chats, &chat->node);
    free(chat);
}

static void fanout_evict_chats(struct fanout *fanout)
{
    struct list *at = fanout->recent.next;
    while (at != &fanout->recent &&
           (fanout->chats.size > FANOUT_CHATS_MAX || fanout->member_count > FANOUT_MEMBERS_MAX)) {
        struct fanout_chat *chat = CONTAINER_OF(at, struct fanout_chat, recent);
        at = at->next;
        if (!chat->reading && list_empty(&chat->waiting))
            fanout_chat_free(chat);
    }
}

static struct fanout_chat *fanout_find_or_make_chat(struct fanout *fanout, struct slice id)
{
    struct table_node *node = table_find(&fanout->chats, id);
    if (node) {
        struct fanout_chat *known = CONTAINER_OF(node, struct fanout_chat, node);
        list_remove(&known->recent);
        list_append(&fanout->recent, &known->recent);
        return known;
    }
    struct fanout_chat *made = calloc(1, sizeof(*made) + id.len);
    if (!made)
        return NULL;
    made->fanout = fanout;
    made->id_len = (uint8_t)id.len;
    memcpy(made->id, id.data, id.len);
    list_init(&made->waiting);
    list_append(&fanout->recent, &made->recent);
    table_insert(&fanout->chats, &made->node, id);
    return made;
}

/* ---- retrying ---- */

/* Never runs after the loop's last turn, since the timing wheel does not. */
static void on_fanout_retry_due(struct wheel_timer *timer)
{
    struct feed_item *item = CONTAINER_OF(timer, struct feed_item, timer);
    list_remove(&item->link);
    fanout_on_item(item->consumer->on_item_arg, item);
}

static void fanout_skip_item(struct fanout *fanout, struct feed_item *item)
{
    metrics_count(fanout->metrics, METRIC_FANOUT_SKIPPED);
    feed_settle(item, FEED_SKIPPED, NULL);
}

static void fanout_retry_or_skip_item(struct fanout *fanout, struct feed_item *item)
{
    const struct config_retry *limits = fanout->retry;
    list_remove(&item->link);
    if (++item->attempts >= limits->max_attempts) {
        fanout_skip_item(fanout, item);
        return;
    }
    metrics_count(fanout->metrics, METRIC_FANOUT_RETRY_COUNT);
    fanout_set_item_stage(item, FEED_ITEM_RETRYING);
    list_append(&fanout->retrying, &item->link);
    item->timer.fire = on_fanout_retry_due;
    int64_t delay_ms = backoff_without_jitter_ms(item->attempts - 1, limits->initial_backoff_ms,
                                                 limits->max_backoff_ms);
    wheel_set(fanout->wheel, &item->timer, fanout->clock->now_ms + delay_ms);
}

/* ---- delivering ---- */

static void on_fanout_delivered(void *arg, enum delivery_result result)
{
    struct feed_item *item = arg;
    struct fanout *fanout = item->consumer->on_item_arg;
    if (result == DELIVERY_FAILED) {
        fanout_retry_or_skip_item(fanout, item);
        return;
    }
    if (result == DELIVERY_SKIPPED) {
        fanout_skip_item(fanout, item);
        return;
    }
    metrics_count(fanout->metrics, METRIC_FANOUT_EVENTS);
    metrics_latency(fanout->metrics, LATENCY_DELIVERY,
                    (fanout->clock->wall_ms - item->event.sent_at_ms) * 1000);
    feed_settle(item, FEED_DONE, NULL);
}

static void fanout_chat_deliver_item(struct fanout_chat *chat, struct feed_item *item)
{
    struct fanout *fanout = chat->fanout;
    const struct feed_event *event = &item->event;
    struct message message = {.type = MESSAGE_MESSAGE,
                              .chat_message = {
                                  .chat_id = event->chat,
                                  .message_id = event->message_id,
                                  .sequence = (int64_t)event->sequence,
                                  .sender_id = ledger_message_sender(event->sender),
                                  .body = event->body,
                                  .sent_at_ms = event->sent_at_ms,
                              }};
    list_remove(&item->link);
    fanout_set_item_stage(item, FEED_ITEM_SENDING);
    delivery_send_then(fanout->delivery, chat->members.ids, chat->members.count, &message,
                       event->has_except ? &event->except : NULL, on_fanout_delivered, item);
}

/* An event without a version may be newer than the cached members, so it needs members that were read
 * after it arrived. */
static bool fanout_chat_members_are_new_enough(const struct fanout_chat *chat,
                                               const struct feed_item *item)
{
    if (item->event.members_version == 0)
        return chat->version && item->stage == FEED_ITEM_READING;
    return chat->version >= item->event.members_version;
}

static void on_fanout_members_read(void *arg, const struct ledger_chat_outcome *outcome);

static void fanout_chat_deliver_or_read(struct fanout_chat *chat)
{
    while (!chat->reading && !list_empty(&chat->waiting)) {
        struct feed_item *item = fanout_first_item(&chat->waiting);
        if (fanout_chat_members_are_new_enough(chat, item)) {
            fanout_chat_deliver_item(chat, item);
            continue;
        }
        chat->reading = true;
        for (struct list *at = chat->waiting.next; at != &chat->waiting; at = at->next)
            fanout_set_item_stage(CONTAINER_OF(at, struct feed_item, link), FEED_ITEM_READING);
        ledger_chat_get(chat->fanout->ledger, fanout_chat_id(chat), SLICE_NONE, false,
                        on_fanout_members_read, chat);
    }
}

/* An item that arrived during the read may need newer members, which are then read. An item that arrived
 * before the read and still needs newer members is retried: the ledger's replica lags behind. */
static void fanout_chat_deliver_waiting(struct fanout_chat *chat)
{
    while (!list_empty(&chat->waiting)) {
        struct feed_item *item = fanout_first_item(&chat->waiting);
        if (fanout_chat_members_are_new_enough(chat, item))
            fanout_chat_deliver_item(chat, item);
        else if (item->stage == FEED_ITEM_READING)
            fanout_retry_or_skip_item(chat->fanout, item);
        else
            break;
    }
    fanout_chat_deliver_or_read(chat);
}

static void on_fanout_members_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct fanout_chat *chat = arg;
    struct fanout *fanout = chat->fanout;
    const struct ledger_chat *read = &outcome->chat;
    struct id_list members;
    chat->reading = false;
    if (fanout->stopped)
        return;
    if (outcome->status == LEDGER_OK && id_list_copy(&members, read->members, read->member_count)) {
        fanout_chat_drop_members(chat);
        chat->members = members;
        chat->version = read->members_version;
        fanout->member_count += members.count;
        fanout_chat_deliver_waiting(chat);
    } else if (outcome->status == LEDGER_NOT_FOUND || outcome->status == LEDGER_INVALID) {
        while (!list_empty(&chat->waiting))
            feed_settle(fanout_first_item(&chat->waiting), FEED_POISON, "there is no such chat");
    } else {
        while (!list_empty(&chat->waiting))
            fanout_retry_or_skip_item(fanout, fanout_first_item(&chat->waiting));
    }
    fanout_evict_chats(fanout);
}

void fanout_on_item(void *arg, struct feed_item *item)
{
    struct fanout *fanout = arg;
    fanout_set_item_stage(item, FEED_ITEM_ARRIVED);
    struct fanout_chat *chat = fanout_find_or_make_chat(fanout, item->event.chat);
    if (!chat) {
        fanout_retry_or_skip_item(fanout, item);
        return;
    }
    list_append(&chat->waiting, &item->link);
    fanout_chat_deliver_or_read(chat);
    fanout_evict_chats(fanout);
}

/* ---- freeing ---- */

static void fanout_settle_and_free_chat(struct table_node *node, void *arg)
{
    (void)arg;
    struct fanout_chat *chat = CONTAINER_OF(node, struct fanout_chat, node);
    while (!list_empty(&chat->waiting))
        feed_settle(fanout_first_item(&chat->waiting), FEED_SKIPPED, NULL);
    fanout_chat_free(chat);
}

void fanout_free(struct fanout *fanout)
{
    while (!list_empty(&fanout->retrying)) {
        struct feed_item *item = fanout_first_item(&fanout->retrying);
        wheel_cancel(fanout->wheel, &item->timer);
        feed_settle(item, FEED_SKIPPED, NULL);
    }
    table_each(&fanout->chats, fanout_settle_and_free_chat, NULL);
    table_free(&fanout->chats);
}

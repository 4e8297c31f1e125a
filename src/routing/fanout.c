#include "routing/fanout.h"

#include "base/container.h"

#include <stdlib.h>

/* A chat as fan-out knows it. */
struct fanout_chat {
    struct table_node node;
    struct list recent;
    struct fanout *fanout;
    struct list waiting; /* items that need the members */
    bool looking;        /* the members are being read */
    uint64_t version;    /* of the members; 0: not known */
    struct slice *members;
    size_t member_count;
    uint8_t id_len;
    char id[];
};

static struct slice chat_id(const struct fanout_chat *chat)
{
    return (struct slice){chat->id, chat->id_len};
}

static bool chat_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(chat_id(CONTAINER_OF(node, struct fanout_chat, node)), key);
}

static struct feed_item *first_item(const struct list *list)
{
    return CONTAINER_OF(list->next, struct feed_item, link);
}

bool fanout_init(struct fanout *fanout, uint64_t seed)
{
    list_init(&fanout->recent);
    list_init(&fanout->retrying);
    fanout->member_count = 0;
    return table_init(&fanout->chats, seed, chat_matches);
}

/* ---- chats that are remembered ---- */

static void forget_members(struct fanout_chat *chat)
{
    chat->fanout->member_count -= chat->member_count;
    free(chat->members);
    chat->members = NULL;
    chat->member_count = 0;
    chat->version = 0;
}

static void free_chat(struct fanout_chat *chat)
{
    forget_members(chat);
    list_remove(&chat->recent);
    table_remove(&chat->fanout->chats, &chat->node);
    free(chat);
}

static bool is_busy(const struct fanout_chat *chat)
{
    return chat->looking || !list_empty(&chat->waiting);
}

/* Busy ones stay, whatever the bound says: the feed bounds them. */
static void forget_surplus(struct fanout *fanout)
{
    struct list *at = fanout->recent.next;
    while (at != &fanout->recent &&
           (fanout->chats.size > FANOUT_CHATS_MAX || fanout->member_count > FANOUT_MEMBERS_MAX)) {
        struct fanout_chat *chat = CONTAINER_OF(at, struct fanout_chat, recent);
        at = at->next;
        if (!is_busy(chat))
            free_chat(chat);
    }
}

static struct fanout_chat *have_chat(struct fanout *fanout, struct slice id)
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

/* One allocation: the slices, then the bytes they point to. */
static bool keep_members(struct fanout_chat *chat, const struct ledger_chat *read)
{
    size_t bytes = 0;
    for (size_t i = 0; i < read->member_count; i++)
        bytes += read->members[i].len;
    struct slice *members = malloc(read->member_count * sizeof(*members) + bytes + 1);
    if (!members)
        return false;
    char *at = (char *)(members + read->member_count);
    for (size_t i = 0; i < read->member_count; i++) {
        members[i] = (struct slice){at, read->members[i].len};
        memcpy(at, read->members[i].data, read->members[i].len);
        at += read->members[i].len;
    }
    forget_members(chat);
    chat->members = members;
    chat->member_count = read->member_count;
    chat->version = read->members_version;
    chat->fanout->member_count += read->member_count;
    return true;
}

/* ---- trying again ---- */

/* Called by the wheel, so never after the loop's last turn. */
static void retry(struct wheel_timer *timer)
{
    struct feed_item *item = CONTAINER_OF(timer, struct feed_item, timer);
    list_remove(&item->link);
    fanout_consume(item->owner, item);
}

/* Doubled for each attempt after the first, which a hundred of them must not overflow. */
static int64_t backoff_ms(const struct config_retry *limits, uint32_t attempts)
{
    int64_t wait_ms = limits->initial_backoff_ms;
    while (--attempts > 0 && wait_ms < limits->max_backoff_ms)
        wait_ms *= 2;
    return wait_ms < limits->max_backoff_ms ? wait_ms : limits->max_backoff_ms;
}

static void try_again_or_skip(struct fanout *fanout, struct feed_item *item, size_t recipients)
{
    const struct config_retry *limits = fanout->retry;
    list_remove(&item->link);
    if (++item->attempts >= limits->max_attempts) {
        metrics_add(fanout->metrics, METRIC_FANOUT_SKIPPED, recipients ? (int64_t)recipients : 1);
        feed_settle(fanout->feed, item, FEED_SKIPPED, NULL);
        return;
    }
    metrics_count(fanout->metrics, METRIC_FANOUT_RETRY_COUNT);
    list_append(&fanout->retrying, &item->link);
    item->owner = fanout;
    item->timer.fire = retry;
    wheel_set(fanout->wheel, &item->timer,
              fanout->clock->now_ms + backoff_ms(limits, item->attempts));
}

/* ---- delivering ---- */

static void delivered(void *arg, bool sent)
{
    struct feed_item *item = arg;
    struct fanout *fanout = item->owner;
    if (!sent) {
        try_again_or_skip(fanout, item, 0);
        return;
    }
    metrics_latency(fanout->metrics, LATENCY_DELIVERY,
                    (fanout->clock->wall_ms - item->event.sent_at_ms) * 1000);
    feed_settle(fanout->feed, item, FEED_DONE, NULL);
}

static void deliver(struct fanout_chat *chat, struct feed_item *item)
{
    struct fanout *fanout = chat->fanout;
    const struct feed_event *event = &item->event;
    struct message message = {.type = MESSAGE_MESSAGE,
                              .chat_message = {
                                  .chat_id = event->chat,
                                  .message_id = event->message_id,
                                  .sequence = (int64_t)event->sequence,
                                  .sender_id = event->sender,
                                  .body = event->body,
                                  .sent_at_ms = event->sent_at_ms,
                              }};
    list_remove(&item->link);
    item->owner = fanout;
    delivery_send_then(fanout->delivery, chat->members, chat->member_count, &message,
                       event->has_except ? &event->except : NULL, delivered, item);
}

/* An event of which no version is known may be newer than the members that are: those will do that were asked
 * for after it came. */
static bool are_members_good_for(const struct fanout_chat *chat, const struct feed_item *item)
{
    if (item->event.members_version == 0)
        return chat->version && item->owner == chat;
    return chat->version >= item->event.members_version;
}

static void look(struct fanout_chat *chat);

static void pump(struct fanout_chat *chat)
{
    while (!chat->looking && !list_empty(&chat->waiting)) {
        struct feed_item *item = first_item(&chat->waiting);
        if (are_members_good_for(chat, item))
            deliver(chat, item);
        else
            look(chat);
    }
}

/* What came while the members were being read may need newer ones, which pump() reads. What was there
 * before and still needs newer ones asked a store that lags behind itself. */
static void deliver_waiting(struct fanout_chat *chat)
{
    while (!list_empty(&chat->waiting)) {
        struct feed_item *item = first_item(&chat->waiting);
        if (are_members_good_for(chat, item))
            deliver(chat, item);
        else if (item->owner == chat)
            try_again_or_skip(chat->fanout, item, 0);
        else
            break;
    }
    pump(chat);
}

static void bury_waiting(struct fanout_chat *chat, const char *reason)
{
    while (!list_empty(&chat->waiting))
        feed_settle(chat->fanout->feed, first_item(&chat->waiting), FEED_POISON, reason);
}

static void retry_waiting(struct fanout_chat *chat)
{
    while (!list_empty(&chat->waiting))
        try_again_or_skip(chat->fanout, first_item(&chat->waiting), 0);
}

static void looked(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct fanout_chat *chat = arg;
    chat->looking = false;
    if (chat->fanout->stopped)
        return;
    if (outcome->status == LEDGER_OK && keep_members(chat, &outcome->chat))
        deliver_waiting(chat);
    else if (outcome->status == LEDGER_NOT_FOUND || outcome->status == LEDGER_INVALID)
        bury_waiting(chat, "there is no such chat");
    else
        retry_waiting(chat);
    forget_surplus(chat->fanout);
}

static void look(struct fanout_chat *chat)
{
    chat->looking = true;
    for (struct list *at = chat->waiting.next; at != &chat->waiting; at = at->next)
        CONTAINER_OF(at, struct feed_item, link)->owner = chat; /* it was here before the look */
    ledger_chat_get(chat->fanout->ledger, chat_id(chat), SLICE_NONE, looked, chat);
}

void fanout_consume(void *arg, struct feed_item *item)
{
    struct fanout *fanout = arg;
    struct fanout_chat *chat = have_chat(fanout, item->event.chat);
    if (!chat) {
        try_again_or_skip(fanout, item, 0);
        return;
    }
    item->owner = NULL;
    list_append(&chat->waiting, &item->link);
    pump(chat);
    forget_surplus(fanout);
}

/* ---- the end ---- */

static void give_back_and_free(struct table_node *node, void *arg)
{
    struct fanout *fanout = arg;
    struct fanout_chat *chat = CONTAINER_OF(node, struct fanout_chat, node);
    while (!list_empty(&chat->waiting))
        feed_settle(fanout->feed, first_item(&chat->waiting), FEED_SKIPPED, NULL);
    free_chat(chat);
}

void fanout_free(struct fanout *fanout)
{
    while (!list_empty(&fanout->retrying)) {
        struct feed_item *item = first_item(&fanout->retrying);
        wheel_cancel(fanout->wheel, &item->timer);
        feed_settle(fanout->feed, item, FEED_SKIPPED, NULL);
    }
    table_each(&fanout->chats, give_back_and_free, fanout);
    table_free(&fanout->chats);
}

#include "webhooks/webhook_undelivered.h"

#include "base/container.h"
#include "base/id_list.h"
#include "text/json.h"

#include <stdlib.h>

enum { RESOLUTION_RETRY_MS = 1000 };

/* A chat whose members are being looked for. */
struct resolution {
    struct webhook_queue *queue;
    struct id_list members;
    bool *present; /* one per member */
    size_t chat_len;
    char chat[];
};

static struct webhook_event *undelivered_event_of(struct list *item)
{
    return CONTAINER_OF(item, struct webhook_event, item);
}

void webhook_undelivered_prepare(struct webhook_queue *queue, struct webhook_event *event)
{
    const struct clock *clock = &queue->parts.loop->clock;
    int64_t since_ms = event->time_ms > queue->lane.opened_at_wall_ms
                           ? event->time_ms
                           : queue->lane.opened_at_wall_ms;
    int64_t left_ms = since_ms + WEBHOOK_UNDELIVERED_MS - clock->wall_ms;
    if (left_ms > WEBHOOK_UNDELIVERED_MS)
        left_ms = WEBHOOK_UNDELIVERED_MS; /* another machine's clock is ahead */
    event->state = WEBHOOK_EVENT_UNRESOLVED;
    event->due_at_ms = clock->now_ms + (left_ms > 0 ? left_ms : 0);
}

/* ---- the outcome for one event ---- */

/* Copies the sender's id into `out`. The data is the ledger's own, so it has one. */
static struct slice read_event_sender(struct slice data, char out[LEDGER_ID_BYTES_MAX])
{
    struct json json;
    struct slice key, sender = SLICE_NONE;
    char *copy = malloc(data.len + 1);
    if (!copy)
        return SLICE_NONE;
    memcpy(copy, data.data, data.len);
    json_init(&json, copy, data.len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (slice_is(key, "sender_id") && json_peek(&json) == JSON_STRING)
            json_string(&json, &sender);
        else
            json_skip(&json);
    }
    if (sender.len > LEDGER_ID_BYTES_MAX)
        sender = SLICE_NONE;
    if (sender.len)
        memcpy(out, sender.data, sender.len);
    free(copy);
    return (struct slice){out, sender.len};
}

static void finish_event(struct webhook_event *event, const struct resolution *resolution)
{
    char sender_bytes[LEDGER_ID_BYTES_MAX];
    struct slice sender = read_event_sender(event->data, sender_bytes);
    struct buffer data = BUFFER_INIT;
    size_t absent = 0;
    buffer_append(&data, event->data.data, event->data.len - 1);
    json_write_key(&data, SLICE("user_ids"));
    json_write_array(&data);
    for (size_t i = 0; i < resolution->members.count; i++)
        if (!resolution->present[i] && !slice_equal(resolution->members.ids[i], sender)) {
            json_write_string(&data, resolution->members.ids[i]);
            absent++;
        }
    json_write_array_end(&data);
    json_write_object_end(&data);
    if (data.failed) {
        buffer_free(&data);
        event->state = WEBHOOK_EVENT_UNRESOLVED;
        return;
    }
    event->state = absent ? WEBHOOK_EVENT_READY : WEBHOOK_EVENT_TAKEN;
    event->due_at_ms = 0;
    event->replaced_data = buffer_detach(&data, &event->data.len);
    event->data.data = event->replaced_data;
}

/* ---- one chat ---- */

static void free_resolution(struct resolution **resolution)
{
    id_list_free(&(*resolution)->members);
    free((*resolution)->present);
    free(*resolution);
    *resolution = NULL;
}

enum resolution_result { RESOLUTION_KNOWN, RESOLUTION_NO_CHAT, RESOLUTION_FAILED };

static void apply_resolution(struct webhook_event *event, const struct resolution *resolution,
                             enum resolution_result result)
{
    switch (result) {
    case RESOLUTION_KNOWN:
        finish_event(event, resolution);
        break;
    case RESOLUTION_NO_CHAT:
        event->state = WEBHOOK_EVENT_TAKEN;
        break;
    case RESOLUTION_FAILED:
        event->state = WEBHOOK_EVENT_UNRESOLVED;
        event->due_at_ms = resolution->queue->parts.loop->clock.now_ms + RESOLUTION_RETRY_MS;
        break;
    }
}

/* Ends a resolution for all events of its chat that waited for it. */
static void end_resolution(struct resolution *resolution, enum resolution_result result)
{
    struct webhook_queue *queue = resolution->queue;
    struct slice chat = {resolution->chat, resolution->chat_len};
    struct list *events = &queue->lane.events;
    for (struct list *at = events->next; at != events; at = at->next) {
        struct webhook_event *event = undelivered_event_of(at);
        if (event->state == WEBHOOK_EVENT_RESOLVING && slice_equal(event->subject, chat))
            apply_resolution(event, resolution, result);
    }
    queue->resolutions--;
    free_resolution(&resolution);
    if (!queue->lane.is_open) {
        webhook_lane_close(&queue->lane); /* frees what was being resolved */
        return;
    }
    webhook_lane_pump(&queue->lane);
    webhook_queue_proceed(queue);
}

static int compare_member_ids(const void *a, const void *b)
{
    return id_list_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static void on_members_routed(void *arg, enum state_status status,
                              const struct state_routes *routes)
{
    struct resolution *resolution = arg;
    const struct id_list *members = &resolution->members;
    if (status != STATE_OK) {
        end_resolution(resolution, RESOLUTION_FAILED);
        return;
    }
    for (size_t i = 0; i < routes->count; i++)
        for (size_t j = 0; j < routes->items[i].count; j++) {
            const struct slice *found = bsearch(&routes->items[i].users[j], members->ids,
                                                members->count, sizeof(*found), compare_member_ids);
            if (found)
                resolution->present[found - members->ids] = true;
        }
    end_resolution(resolution, RESOLUTION_KNOWN);
}

static void on_undelivered_chat_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct resolution *resolution = arg;
    const struct ledger_chat *chat = &outcome->chat;
    if (outcome->status == LEDGER_NOT_FOUND) {
        end_resolution(resolution, RESOLUTION_NO_CHAT);
        return;
    }
    if (outcome->status != LEDGER_OK || resolution->queue->stopped ||
        !id_list_copy(&resolution->members, chat->members, chat->member_count) ||
        !(resolution->present = calloc(chat->member_count + 1, sizeof(bool)))) {
        end_resolution(resolution, RESOLUTION_FAILED);
        return;
    }
    state_routes(resolution->queue->parts.store, resolution->members.ids, resolution->members.count,
                 on_members_routed, resolution);
}

/* Lets all events of the chat that are due wait for one resolution. */
static void begin_resolution(struct webhook_queue *queue, struct slice chat)
{
    struct resolution *resolution = malloc(sizeof(*resolution) + chat.len);
    int64_t now_ms = queue->parts.loop->clock.now_ms;
    struct list *events = &queue->lane.events;
    if (!resolution)
        return; /* the timer tries again */
    *resolution = (struct resolution){.queue = queue, .chat_len = chat.len};
    memcpy(resolution->chat, chat.data, chat.len);
    for (struct list *at = events->next; at != events; at = at->next) {
        struct webhook_event *event = undelivered_event_of(at);
        if (event->state == WEBHOOK_EVENT_UNRESOLVED && event->due_at_ms <= now_ms &&
            slice_equal(event->subject, chat))
            event->state = WEBHOOK_EVENT_RESOLVING;
    }
    queue->resolutions++;
    ledger_chat_get(queue->parts.ledger, (struct slice){resolution->chat, chat.len}, SLICE_NONE,
                    false, on_undelivered_chat_read, resolution);
}

/* Ledger completions never run from inside the operation, so the list does not change during the walk. */
void webhook_undelivered_resolve(struct webhook_queue *queue)
{
    int64_t now_ms = queue->parts.loop->clock.now_ms;
    struct list *events = &queue->lane.events;
    if (queue->stopped || !queue->is_held)
        return;
    for (struct list *at = events->next; at != events; at = at->next) {
        struct webhook_event *event = undelivered_event_of(at);
        if (queue->resolutions >= WEBHOOK_RESOLUTIONS_MAX)
            return;
        if (event->state == WEBHOOK_EVENT_UNRESOLVED && event->due_at_ms <= now_ms)
            begin_resolution(queue, event->subject);
    }
}

#include "typing/typing_plane.h"

#include "log/log.h"
#include "routing/chat_topic.h"
#include "typing/typing_event.h"

#include <stdlib.h>
#include <string.h>

/* What a device remembers of one chat it typed in. */
struct typing_notice {
    struct typing_notice *next; /* of the same endpoint, the newest first */
    struct typing_update *update;
    struct ulid conn_id;
    int64_t taken_at_ms; /* the last update that was taken */
    bool typing;
    bool told; /* that updates are dropped */
    uint8_t chat_id_len;
    char chat_id[];
};

/* A user in a chat, with memory of its own: what is under way to the store. */
struct typing_update {
    struct typing_plane *plane;
    struct typing_notice *notice; /* NULL: the device has left, or stopped */
    struct ulid conn_id;
    void (*done)(void *arg, enum typing_verdict verdict, int64_t retry_after_ms);
    void *arg;
    struct slice chat_id;
    struct slice user_id;
    char bytes[];
};

static int64_t interval_ms(const struct typing_plane *plane)
{
    return 1000 / (int64_t)plane->config->typing.rate_per_second;
}

static struct typing_update *make_update(struct typing_plane *plane, struct slice chat_id,
                                         struct slice user_id)
{
    struct typing_update *update = malloc(sizeof(*update) + chat_id.len + user_id.len);
    if (!update)
        return NULL;
    *update = (struct typing_update){.plane = plane,
                                     .chat_id = {update->bytes, chat_id.len},
                                     .user_id = {update->bytes + chat_id.len, user_id.len}};
    memcpy(update->bytes, chat_id.data, chat_id.len);
    memcpy(update->bytes + chat_id.len, user_id.data, user_id.len);
    return update;
}

/* ---- telling all gateways ---- */

static void publish(struct typing_plane *plane, struct slice chat_id, struct slice user_id,
                    bool typing)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    typing_event_write(&payload, chat_id, user_id, typing, plane->clock->wall_ms);
    if (!payload.failed)
        bus_publish(plane->bus, chat_topic_name(name, chat_id, CHAT_TOPIC_TYPING),
                    buffer_slice(&payload));
    buffer_free(&payload);
}

static void stopped(void *arg, enum state_status status, bool was_typing)
{
    struct typing_update *update = arg;
    if (status == STATE_OK && was_typing)
        publish(update->plane, update->chat_id, update->user_id, false);
    free(update);
}

/* `conn_id` NULL: on all the user's devices. */
static void stop(struct typing_plane *plane, struct slice chat_id, struct slice user_id,
                 const struct ulid *conn_id)
{
    struct typing_update *update = make_update(plane, chat_id, user_id);
    if (update)
        typing_store_stop(plane->store, update->chat_id, update->user_id, conn_id, stopped, update);
}

/* ---- what a device remembers ---- */

static struct typing_notice **find(struct endpoint *endpoint, struct slice chat_id)
{
    struct typing_notice **at = &endpoint->typing_notices;
    while (*at && !slice_equal((struct slice){(*at)->chat_id, (*at)->chat_id_len}, chat_id))
        at = &(*at)->next;
    return at;
}

/* What is under way ends when it comes back. */
static void abandon_update(struct typing_notice *notice)
{
    if (notice->update)
        notice->update->notice = NULL;
    notice->update = NULL;
}

/* Ends the typing it stands for and frees it. */
static void free_notice(struct typing_plane *plane, struct endpoint *endpoint,
                        struct typing_notice **at)
{
    struct typing_notice *notice = *at;
    *at = notice->next;
    abandon_update(notice);
    if (notice->typing)
        stop(plane, (struct slice){notice->chat_id, notice->chat_id_len},
             route_user(endpoint->route), &notice->conn_id);
    free(notice);
}

static void make_room(struct typing_plane *plane, struct endpoint *endpoint)
{
    struct typing_notice **at = &endpoint->typing_notices;
    for (int i = 0; *at && i < TYPING_CHATS_PER_DEVICE_MAX - 1; i++)
        at = &(*at)->next;
    while (*at)
        free_notice(plane, endpoint, at);
}

static struct typing_notice *enter(struct typing_plane *plane, struct endpoint *endpoint,
                                   struct slice chat_id)
{
    struct typing_notice *known = *find(endpoint, chat_id);
    if (known)
        return known;
    make_room(plane, endpoint);
    struct typing_notice *notice = malloc(sizeof(*notice) + chat_id.len);
    if (!notice)
        return NULL;
    *notice = (struct typing_notice){.next = endpoint->typing_notices,
                                     .taken_at_ms = INT64_MIN / 2,
                                     .chat_id_len = (uint8_t)chat_id.len};
    memcpy(notice->chat_id, chat_id.data, chat_id.len);
    endpoint->typing_notices = notice;
    return notice;
}

/* ---- updates ---- */

bool typing_is_too_soon(const struct typing_plane *plane, const struct endpoint *endpoint,
                        struct slice chat_id, int64_t *retry_after_ms)
{
    const struct typing_notice *notice = *find((struct endpoint *)endpoint, chat_id);
    if (!notice)
        return false;
    int64_t wait_ms = notice->taken_at_ms + interval_ms(plane) - plane->clock->now_ms;
    *retry_after_ms = notice->update ? interval_ms(plane) : wait_ms;
    return notice->update || wait_ms > 0;
}

enum typing_verdict typing_drop(struct typing_plane *plane, struct endpoint *endpoint,
                                struct slice chat_id)
{
    struct typing_notice *notice = *find(endpoint, chat_id);
    bool told = notice && notice->told;
    if (notice)
        notice->told = true;
    metrics_count(plane->metrics, METRIC_TYPING_LIMITED);
    return told ? TYPING_DROPPED : TYPING_TOO_SOON;
}

static enum typing_verdict taken(struct typing_update *update)
{
    struct typing_notice *notice = update->notice;
    metrics_count(update->plane->metrics, METRIC_TYPING_UPDATES);
    if (notice) {
        notice->taken_at_ms = update->plane->clock->now_ms;
        notice->typing = true;
        notice->told = false;
        publish(update->plane, update->chat_id, update->user_id, true);
    } else {
        stop(update->plane, update->chat_id, update->user_id, &update->conn_id);
    }
    return TYPING_TAKEN;
}

static enum typing_verdict limited(struct typing_update *update)
{
    bool told = update->notice && update->notice->told;
    if (update->notice)
        update->notice->told = true;
    metrics_count(update->plane->metrics, METRIC_TYPING_LIMITED);
    return told ? TYPING_DROPPED : TYPING_TOO_SOON;
}

static void started(void *arg, enum state_status status, const struct typing_outcome *outcome)
{
    struct typing_update *update = arg;
    enum typing_verdict verdict = TYPING_FAILED;
    if (update->notice)
        update->notice->update = NULL;
    if (status == STATE_OK)
        verdict = outcome->result == TYPING_LIMITED ? limited(update) : taken(update);
    update->done(update->arg, verdict, status == STATE_OK ? outcome->retry_after_ms : 0);
    free(update);
}

void typing_start(struct typing_plane *plane, struct endpoint *endpoint, const struct ulid *conn_id,
                  struct slice chat_id,
                  void (*done)(void *arg, enum typing_verdict verdict, int64_t retry_after_ms),
                  void *arg)
{
    struct typing_update *update = make_update(plane, chat_id, route_user(endpoint->route));
    struct typing_notice *notice = update ? enter(plane, endpoint, update->chat_id) : NULL;
    if (!notice || notice->update) {
        done(arg, notice ? typing_drop(plane, endpoint, chat_id) : TYPING_FAILED,
             interval_ms(plane));
        free(update);
        return;
    }
    update->conn_id = *conn_id;
    update->done = done;
    update->arg = arg;
    update->notice = notice;
    notice->update = update;
    notice->conn_id = *conn_id;
    typing_store_start(plane->store, update->chat_id, update->user_id, conn_id, started, update);
}

void typing_stop(struct typing_plane *plane, struct endpoint *endpoint, struct slice chat_id)
{
    struct typing_notice *notice = *find(endpoint, chat_id);
    if (!notice)
        return;
    abandon_update(notice);
    if (!notice->typing)
        return;
    notice->typing = false;
    stop(plane, chat_id, route_user(endpoint->route), &notice->conn_id);
}

void typing_leave(struct typing_plane *plane, struct endpoint *endpoint)
{
    while (endpoint->typing_notices)
        free_notice(plane, endpoint, &endpoint->typing_notices);
}

void typing_ended(struct typing_plane *plane, struct slice chat_id, struct slice user_id)
{
    stop(plane, chat_id, user_id, NULL);
}

void typing_received(struct typing_plane *plane, struct slice chat_id, struct slice payload)
{
    char text[TYPING_EVENT_BYTES_MAX];
    struct typing_event event;
    if (payload.len <= sizeof(text))
        memcpy(text, payload.data, payload.len);
    if (payload.len > sizeof(text) || !typing_event_parse(text, payload.len, &event)) {
        log_warn("bad_typing_event", "chat=%s", log_quote(chat_id));
        return;
    }
    typing_view_heard(&plane->rooms, chat_id, event.user_id, event.typing, event.timestamp_ms);
}

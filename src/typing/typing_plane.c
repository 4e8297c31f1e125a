#include "typing/typing_plane.h"

#include "log/log.h"
#include "routing/chat_topic.h"
#include "typing/typing_event.h"

#include <stdlib.h>
#include <string.h>

/* What an endpoint records about one chat that its device typed in. */
struct typing_notice {
    struct typing_notice *next; /* of the same endpoint, the newest first */
    struct typing_update *update;
    struct ulid conn_id;
    int64_t accepted_at_ms; /* the last update that was accepted */
    bool typing;
    bool told; /* that updates are dropped */
    uint8_t chat_id_len;
    char chat_id[];
};

/* A pending operation of the store about a user in a chat; it outlives the endpoint. */
struct typing_update {
    struct typing_plane *plane;
    struct typing_notice *notice; /* NULL: the device left or stopped meanwhile */
    struct ulid conn_id;
    typing_verdict_done done;
    void *arg;
    struct slice chat_id;
    struct slice user_id;
    char bytes[];
};

static int64_t typing_interval_ms(const struct typing_plane *plane)
{
    return 1000 / (int64_t)plane->config->typing.rate_per_second;
}

static struct typing_update *typing_update_make(struct typing_plane *plane, struct slice chat_id,
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

/* ---- to the store and to all gateways ---- */

static void typing_publish(const struct typing_update *update, bool typing)
{
    struct typing_plane *plane = update->plane;
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    typing_event_write(&payload, update->chat_id, update->user_id, typing, plane->clock->wall_ms);
    if (!payload.failed)
        bus_publish(plane->bus, chat_topic_name(name, update->chat_id, CHAT_TOPIC_TYPING),
                    buffer_slice(&payload));
    buffer_free(&payload);
}

static void on_typing_removed(void *arg, enum state_status status, bool was_typing)
{
    struct typing_update *update = arg;
    if (status == STATE_OK && was_typing)
        typing_publish(update, false);
    free(update);
}

/* Removes the notice of one connection, or, if `conn_id` is NULL, those of all the user's devices. */
static void typing_remove(struct typing_plane *plane, struct slice chat_id, struct slice user_id,
                          const struct ulid *conn_id)
{
    struct typing_update *update = typing_update_make(plane, chat_id, user_id);
    if (update)
        typing_store_stop(plane->store, update->chat_id, update->user_id, conn_id,
                          on_typing_removed, update);
}

/* ---- notices ---- */

static struct typing_notice **typing_notice_find(struct endpoint *endpoint, struct slice chat_id)
{
    struct typing_notice **at = &endpoint->typing_notices;
    while (*at && !slice_equal((struct slice){(*at)->chat_id, (*at)->chat_id_len}, chat_id))
        at = &(*at)->next;
    return at;
}

/* A start that is still pending is taken back when the store has answered. */
static void typing_notice_abandon_update(struct typing_notice *notice)
{
    if (notice->update)
        notice->update->notice = NULL;
    notice->update = NULL;
}

/* Ends the typing of this notice and frees it. */
static void typing_notice_free(struct typing_plane *plane, struct endpoint *endpoint,
                               struct typing_notice **at)
{
    struct typing_notice *notice = *at;
    *at = notice->next;
    typing_notice_abandon_update(notice);
    if (notice->typing)
        typing_remove(plane, (struct slice){notice->chat_id, notice->chat_id_len},
                      route_user(endpoint->route), &notice->conn_id);
    free(notice);
}

/* Returns the notice of this chat. If it is new, the oldest notices beyond the limit are ended. */
static struct typing_notice *typing_notice_enter(struct typing_plane *plane,
                                                 struct endpoint *endpoint, struct slice chat_id)
{
    struct typing_notice *known = *typing_notice_find(endpoint, chat_id);
    if (known)
        return known;
    struct typing_notice **at = &endpoint->typing_notices;
    for (int i = 0; *at && i < TYPING_CHATS_PER_DEVICE_MAX - 1; i++)
        at = &(*at)->next;
    while (*at)
        typing_notice_free(plane, endpoint, at);
    struct typing_notice *notice = malloc(sizeof(*notice) + chat_id.len);
    if (!notice)
        return NULL;
    *notice = (struct typing_notice){.next = endpoint->typing_notices,
                                     .accepted_at_ms = INT64_MIN / 2,
                                     .chat_id_len = (uint8_t)chat_id.len};
    memcpy(notice->chat_id, chat_id.data, chat_id.len);
    endpoint->typing_notices = notice;
    return notice;
}

/* Counts a dropped update; `notice` may be NULL. */
static enum typing_verdict typing_notice_drop(struct typing_plane *plane,
                                              struct typing_notice *notice)
{
    bool told = notice && notice->told;
    if (notice)
        notice->told = true;
    metrics_count(plane->metrics, METRIC_TYPING_LIMITED);
    return told ? TYPING_DROPPED : TYPING_TOO_SOON;
}

/* ---- updates ---- */

bool typing_is_too_soon(const struct typing_plane *plane, const struct endpoint *endpoint,
                        struct slice chat_id, int64_t *retry_after_ms)
{
    const struct typing_notice *notice = *typing_notice_find((struct endpoint *)endpoint, chat_id);
    if (!notice)
        return false;
    int64_t wait_ms = notice->accepted_at_ms + typing_interval_ms(plane) - plane->clock->now_ms;
    *retry_after_ms = notice->update ? typing_interval_ms(plane) : wait_ms;
    return notice->update || wait_ms > 0;
}

bool typing_is_noted(const struct endpoint *endpoint, struct slice chat_id)
{
    return *typing_notice_find((struct endpoint *)endpoint, chat_id) != NULL;
}

enum typing_verdict typing_drop(struct typing_plane *plane, struct endpoint *endpoint,
                                struct slice chat_id)
{
    return typing_notice_drop(plane, *typing_notice_find(endpoint, chat_id));
}

/* Publishes an accepted start, or takes it back if the device stopped meanwhile. */
static void on_typing_update_stored(void *arg, enum state_status status,
                                    const struct typing_outcome *outcome)
{
    struct typing_update *update = arg;
    struct typing_plane *plane = update->plane;
    struct typing_notice *notice = update->notice;
    enum typing_verdict verdict = TYPING_FAILED;
    if (notice)
        notice->update = NULL;
    if (status == STATE_OK && outcome->result == TYPING_LIMITED) {
        verdict = typing_notice_drop(plane, notice);
    } else if (status == STATE_OK) {
        verdict = TYPING_ACCEPTED;
        metrics_count(plane->metrics, METRIC_TYPING_UPDATES);
        if (notice) {
            notice->accepted_at_ms = plane->clock->now_ms;
            notice->typing = true;
            notice->told = false;
            typing_publish(update, true);
        } else {
            typing_remove(plane, update->chat_id, update->user_id, &update->conn_id);
        }
    }
    update->done(update->arg, verdict, status == STATE_OK ? outcome->retry_after_ms : 0);
    free(update);
}

void typing_start(struct typing_plane *plane, struct endpoint *endpoint, const struct ulid *conn_id,
                  struct slice chat_id, typing_verdict_done done, void *arg)
{
    struct typing_update *update = typing_update_make(plane, chat_id, route_user(endpoint->route));
    struct typing_notice *notice =
        update ? typing_notice_enter(plane, endpoint, update->chat_id) : NULL;
    if (!notice || notice->update) {
        done(arg, notice ? typing_drop(plane, endpoint, chat_id) : TYPING_FAILED,
             typing_interval_ms(plane));
        free(update);
        return;
    }
    update->conn_id = *conn_id;
    update->done = done;
    update->arg = arg;
    update->notice = notice;
    notice->update = update;
    notice->conn_id = *conn_id;
    typing_store_start(plane->store, update->chat_id, update->user_id, conn_id,
                       on_typing_update_stored, update);
}

void typing_stop(struct typing_plane *plane, struct endpoint *endpoint, struct slice chat_id)
{
    struct typing_notice *notice = *typing_notice_find(endpoint, chat_id);
    if (!notice)
        return;
    typing_notice_abandon_update(notice);
    if (!notice->typing)
        return;
    notice->typing = false;
    typing_remove(plane, chat_id, route_user(endpoint->route), &notice->conn_id);
}

void typing_leave(struct typing_plane *plane, struct endpoint *endpoint)
{
    while (endpoint->typing_notices)
        typing_notice_free(plane, endpoint, &endpoint->typing_notices);
}

void typing_end(struct typing_plane *plane, struct slice chat_id, struct slice user_id)
{
    typing_remove(plane, chat_id, user_id, NULL);
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
    typing_view_update(&plane->views, chat_id, event.user_id, event.typing, event.timestamp_ms);
}

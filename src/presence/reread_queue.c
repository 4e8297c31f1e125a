#include "presence/reread_queue.h"

#include "base/container.h"
#include "log/log.h"
#include "presence/presence_event.h"
#include "presence/presence_plane.h"
#include "presence/subscription.h"
#include "presence/visibility/visibility_review.h"

#include <stdlib.h>
#include <string.h>

struct uncertain_user {
    struct list place;
    enum presence_announcement announcement;
    uint8_t user_id_len;
    char user_id[];
};

/* The pending read. The topic of a stale entry may be freed meanwhile, so its user's id is copied. */
struct reread {
    struct presence_plane *plane;
    size_t count;
    size_t text_len;
    struct slice users[REREAD_USERS_PER_READ];
    struct uncertain_user *uncertain[REREAD_USERS_PER_READ]; /* NULL: a stale topic's user */
    char text[REREAD_USERS_PER_READ * USER_ID_BYTES_MAX];
};

void reread_queue_init(struct reread_queue *queue)
{
    *queue = (struct reread_queue){0};
    list_init(&queue->uncertain);
    list_init(&queue->stale);
    list_init(&queue->reviewed);
}

void reread_queue_free(struct reread_queue *queue)
{
    for (struct list *at = queue->uncertain.next, *next; at != &queue->uncertain; at = next) {
        next = at->next;
        free(CONTAINER_OF(at, struct uncertain_user, place));
    }
}

/* ---- entries ---- */

void reread_queue_add_user(struct presence_plane *plane, struct slice user_id,
                           enum presence_announcement announcement)
{
    bool is_full = plane->rereads.uncertain_count >= REREAD_UNCERTAIN_MAX;
    struct uncertain_user *user = is_full ? NULL : malloc(sizeof(*user) + user_id.len);
    if (!user) {
        log_warn("uncertain_user_dropped", "user=%s", log_quote(user_id));
        return;
    }
    *user =
        (struct uncertain_user){.announcement = announcement, .user_id_len = (uint8_t)user_id.len};
    memcpy(user->user_id, user_id.data, user_id.len);
    list_append(&plane->rereads.uncertain, &user->place);
    plane->rereads.uncertain_count++;
}

void reread_queue_add_topic(struct presence_plane *plane, struct topic *topic)
{
    if (!list_empty(&topic->stale))
        return;
    list_append(&plane->rereads.stale, &topic->stale);
    metrics_count(plane->metrics, METRIC_BUS_GAPS);
}

/* ---- one read ---- */

static void reread_queue_read_next(struct presence_plane *plane);

static void reread_put_back(struct reread *reread, size_t index)
{
    struct reread_queue *queue = &reread->plane->rereads;
    if (reread->uncertain[index]) {
        list_append(&queue->uncertain, &reread->uncertain[index]->place);
        queue->uncertain_count++;
        return;
    }
    struct topic *topic = subscription_topic(reread->plane, reread->users[index]);
    if (topic && list_empty(&topic->stale))
        list_append(&queue->reviewed, &topic->stale);
}

/* Skips users without a record: resync.h tells who missed that they left. */
static void reread_publish_user(struct presence_plane *plane, const struct uncertain_user *user,
                                const struct presence *presence)
{
    bool left = presence->status == PRESENCE_OFFLINE;
    if (settle_queue_check(plane, presence) || presence->version <= 0 || presence->unrecorded)
        return;
    presence_publish_change(
        plane, &(struct presence_change){.presence = *presence,
                                         .timestamp_ms = plane->clock->wall_ms,
                                         .announcement = left ? PRESENCE_ANNOUNCE_OFFLINE
                                                              : user->announcement});
}

static void reread_deliver_to_subscribers(struct presence_plane *plane,
                                          const struct presence *presence)
{
    struct topic *topic = subscription_topic(plane, presence->user_id);
    metrics_count(plane->metrics, METRIC_RESYNC_USERS);
    if (!topic || settle_queue_check(plane, presence))
        return;
    struct presence_change change = {.presence = *presence, .timestamp_ms = plane->clock->wall_ms};
    if (presence
            ->unrecorded) /* this version is certain: it is not above the one with which the user left */
        change.presence.version = presence->last_seen_ms == TIME_NONE ? 0 : presence->last_seen_ms;
    size_t told = subscription_deliver(plane, topic, &change);
    metrics_add(plane->metrics, METRIC_RESYNC_TOLD, (int64_t)told);
}

static void on_reread_done(void *arg, enum state_status status, const struct presence *presences,
                           size_t count)
{
    struct reread *reread = arg;
    struct presence_plane *plane = reread->plane;
    plane->rereads.reading = false;
    for (size_t i = 0; i < reread->count; i++) {
        struct uncertain_user *user = reread->uncertain[i];
        if (status != STATE_OK) {
            reread_put_back(reread, i);
            continue;
        }
        if (i < count && user)
            reread_publish_user(plane, user, &presences[i]);
        else if (i < count)
            reread_deliver_to_subscribers(plane, &presences[i]);
        free(user);
    }
    free(reread);
    if (status == STATE_OK)
        reread_queue_read_next(plane);
}

static void reread_fill(struct reread *reread, struct reread_queue *queue)
{
    while (queue->uncertain_readable > 0 && reread->count < REREAD_USERS_PER_READ) {
        struct uncertain_user *user =
            CONTAINER_OF(queue->uncertain.next, struct uncertain_user, place);
        list_remove(&user->place);
        queue->uncertain_count--;
        queue->uncertain_readable--;
        reread->uncertain[reread->count] = user;
        reread->users[reread->count++] = (struct slice){user->user_id, user->user_id_len};
    }
    while (queue->reviewed_readable > 0 && !list_empty(&queue->reviewed) &&
           reread->count < REREAD_USERS_PER_READ) {
        struct topic *topic = CONTAINER_OF(queue->reviewed.next, struct topic, stale);
        struct slice user_id = presence_topic_user(topic_name(topic));
        char *copy = reread->text + reread->text_len;
        list_remove(&topic->stale);
        queue->reviewed_readable--;
        memcpy(copy, user_id.data, user_id.len);
        reread->text_len += user_id.len;
        reread->uncertain[reread->count] = NULL;
        reread->users[reread->count++] = (struct slice){copy, user_id.len};
    }
}

/* Starts the next read of this run. Without memory for it the next run tries again. */
static void reread_queue_read_next(struct presence_plane *plane)
{
    struct reread_queue *queue = &plane->rereads;
    bool has_reviewed = queue->reviewed_readable > 0 && !list_empty(&queue->reviewed);
    if (queue->reading || (queue->uncertain_readable == 0 && !has_reviewed))
        return;
    struct reread *reread = malloc(sizeof(*reread));
    if (!reread)
        return;
    reread->plane = plane;
    reread->count = reread->text_len = 0;
    reread_fill(reread, queue);
    queue->reading = true;
    state_read(plane->store, reread->users, reread->count, on_reread_done, reread);
}

/* ---- one run ---- */

void reread_queue_run(struct presence_plane *plane)
{
    enum { TOPICS_PER_RUN = REREAD_READS_PER_RUN * REREAD_USERS_PER_READ };
    struct reread_queue *queue = &plane->rereads;
    size_t reviewed = 0;
    for (const struct list *at = queue->reviewed.next; at != &queue->reviewed; at = at->next)
        reviewed++;
    /* The next run reads the users of the topics whose visibility reviews start here. */
    for (size_t i = reviewed; i < TOPICS_PER_RUN && !list_empty(&queue->stale); i++) {
        struct topic *topic = CONTAINER_OF(queue->stale.next, struct topic, stale);
        list_remove(&topic->stale);
        list_append(&queue->reviewed, &topic->stale);
        visibility_review_start(plane, presence_topic_user(topic_name(topic)));
    }
    size_t uncertain = resync_is_settled(plane) ? queue->uncertain_count : 0;
    queue->reviewed_readable = reviewed;
    queue->uncertain_readable =
        uncertain < REREAD_USERS_PER_READ ? uncertain : REREAD_USERS_PER_READ;
    reread_queue_read_next(plane);
}

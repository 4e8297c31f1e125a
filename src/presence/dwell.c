#include "presence/dwell.h"

#include "base/container.h"
#include "presence/presence_plane.h"

#include <stdlib.h>
#include <string.h>

struct dwell_user {
    struct table_node node;
    struct list place;
    int64_t until_ms;
    bool held;
    /* What this gateway told last. */
    bool told_connected;
    bool told_in_call;
    /* What the last change seen here said, told or held. */
    bool seen_connected;
    bool must_announce; /* another gateway told something in between */
    uint8_t user_id_len;
    char user_id[];
};

struct dwell_read {
    struct dwell *dwell;
    size_t count;
    struct dwell_user *users[DWELL_READ_MAX];
    struct slice user_ids[DWELL_READ_MAX];
};

static struct slice dwell_user_id(const struct dwell_user *user)
{
    return (struct slice){user->user_id, user->user_id_len};
}

static bool dwell_user_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(dwell_user_id(CONTAINER_OF(node, struct dwell_user, node)), key);
}

static void on_dwell_timer(struct wheel_timer *timer);

bool dwell_init(struct dwell *dwell, struct presence_plane *plane, struct wheel *wheel,
                uint64_t hash_seed)
{
    *dwell = (struct dwell){.plane = plane,
                            .wheel = wheel,
                            .min_ms = plane->config->presence.min_dwell_ms,
                            .timer.fire = on_dwell_timer};
    list_init(&dwell->order);
    return table_init(&dwell->users, hash_seed, dwell_user_matches);
}

static void dwell_forget(struct dwell *dwell, struct dwell_user *user)
{
    table_remove(&dwell->users, &user->node);
    free(user);
}

static struct dwell_user *dwell_first(const struct dwell *dwell)
{
    return list_empty(&dwell->order) ? NULL
                                     : CONTAINER_OF(dwell->order.next, struct dwell_user, place);
}

static struct dwell_user *dwell_take_first(struct dwell *dwell)
{
    struct dwell_user *user = dwell_first(dwell);
    list_remove(&user->place);
    return user;
}

void dwell_free(struct dwell *dwell)
{
    if (!dwell->plane)
        return;
    wheel_cancel(dwell->wheel, &dwell->timer);
    while (!list_empty(&dwell->order))
        dwell_forget(dwell, dwell_take_first(dwell));
    table_free(&dwell->users);
}

/* ---- periods ---- */

static void dwell_set_timer(struct dwell *dwell)
{
    const struct dwell_user *first = dwell_first(dwell);
    if (first && !dwell->reading)
        wheel_set(dwell->wheel, &dwell->timer, first->until_ms);
}

static void dwell_begin_period(struct dwell *dwell, struct dwell_user *user)
{
    user->until_ms = dwell->plane->clock->now_ms + dwell->min_ms;
    list_append(&dwell->order, &user->place);
}

static bool dwell_connected(const struct presence *presence)
{
    return presence->status != PRESENCE_OFFLINE;
}

static void dwell_note_told(struct dwell_user *user, const struct presence *presence)
{
    user->told_connected = user->seen_connected = dwell_connected(presence);
    user->told_in_call = presence->in_call;
    user->must_announce = false;
}

static void dwell_hold(struct dwell *dwell, struct dwell_user *user,
                       const struct presence_change *change)
{
    bool connected = dwell_connected(&change->presence);
    bool came_or_left = change->announcement == PRESENCE_ANNOUNCE_ONLINE ||
                        change->announcement == PRESENCE_ANNOUNCE_OFFLINE;
    user->must_announce |= came_or_left && connected == user->seen_connected;
    user->seen_connected = connected;
    user->held = true;
    metrics_count(dwell->plane->metrics, METRIC_PRESENCE_HELD);
}

bool dwell_admit(struct dwell *dwell, const struct presence_change *change)
{
    struct slice user_id = change->presence.user_id;
    struct table_node *node = dwell->users.size ? table_find(&dwell->users, user_id) : NULL;
    if (node) {
        dwell_hold(dwell, CONTAINER_OF(node, struct dwell_user, node), change);
        return false;
    }
    bool is_full = dwell->min_ms == 0 || dwell->users.size >= DWELL_USERS_MAX;
    struct dwell_user *user = is_full ? NULL : calloc(1, sizeof(*user) + user_id.len);
    if (!user)
        return true;
    user->user_id_len = (uint8_t)user_id.len;
    memcpy(user->user_id, user_id.data, user_id.len);
    table_insert(&dwell->users, &user->node, user_id);
    dwell_note_told(user, &change->presence);
    dwell_begin_period(dwell, user);
    if (!wheel_is_set(&dwell->timer))
        dwell_set_timer(dwell);
    return true;
}

/* ---- the end of a period ---- */

static enum presence_announcement dwell_announcement(const struct dwell_user *user,
                                                     const struct presence *presence)
{
    bool connected = dwell_connected(presence);
    if (connected != user->told_connected || user->must_announce)
        return connected ? PRESENCE_ANNOUNCE_ONLINE : PRESENCE_ANNOUNCE_OFFLINE;
    if (connected && presence->in_call != user->told_in_call)
        return presence->in_call ? PRESENCE_ANNOUNCE_IN_CALL : PRESENCE_ANNOUNCE_OUT_OF_CALL;
    return PRESENCE_ANNOUNCE_NOTHING;
}

/* A user unknown to the store has version 0: there is nothing to tell. */
static void dwell_publish(struct dwell *dwell, struct dwell_user *user,
                          const struct presence *presence)
{
    struct presence_change change = {.presence = *presence,
                                     .timestamp_ms = dwell->plane->clock->wall_ms,
                                     .announcement = dwell_announcement(user, presence)};
    if (settle_queue_check(dwell->plane, presence) || presence->version <= 0 ||
        presence->unrecorded) {
        dwell_forget(dwell, user);
        return;
    }
    dwell_note_told(user, presence);
    dwell_begin_period(dwell, user);
    presence_publish_now(dwell->plane, &change);
}

/* A read that fails is repeated, unless the gateway is going to stop. */
static void dwell_retry(struct dwell *dwell, struct dwell_user *user)
{
    if (dwell->min_ms == 0) {
        dwell_forget(dwell, user);
        return;
    }
    user->held = true;
    dwell_begin_period(dwell, user);
}

static void on_dwell_read(void *arg, enum state_status status, const struct presence *presences,
                          size_t count)
{
    struct dwell_read *read = arg;
    struct dwell *dwell = read->dwell;
    for (size_t i = 0; i < read->count; i++) {
        struct dwell_user *user = read->users[i];
        if (status == STATE_OK && i < count)
            dwell_publish(dwell, user, &presences[i]);
        else
            dwell_retry(dwell, user);
    }
    free(read);
    dwell->reading = false;
    dwell_set_timer(dwell);
}

/* Takes the users whose period is over out of the list. Forgets those without a held change; the others are
 * read. A change during the read holds its user again, because the read may be older. */
static void dwell_collect(struct dwell *dwell, struct dwell_read *read)
{
    int64_t now_ms = dwell->plane->clock->now_ms;
    const struct dwell_user *first;
    while ((first = dwell_first(dwell)) && first->until_ms <= now_ms &&
           read->count < DWELL_READ_MAX) {
        struct dwell_user *user = dwell_take_first(dwell);
        if (!user->held) {
            dwell_forget(dwell, user);
            continue;
        }
        user->held = false;
        read->users[read->count] = user;
        read->user_ids[read->count++] = dwell_user_id(user);
    }
}

static void on_dwell_timer(struct wheel_timer *timer)
{
    struct dwell *dwell = CONTAINER_OF(timer, struct dwell, timer);
    struct dwell_read *read = malloc(sizeof(*read));
    if (!read) {
        wheel_set(dwell->wheel, timer, dwell->plane->clock->now_ms + DWELL_RETRY_MS);
        return;
    }
    read->dwell = dwell;
    read->count = 0;
    dwell_collect(dwell, read);
    if (read->count == 0) {
        free(read);
        dwell_set_timer(dwell);
        return;
    }
    dwell->reading = true;
    state_read(dwell->plane->store, read->user_ids, read->count, on_dwell_read, read);
}

/* ---- the end ---- */

void dwell_stop(struct dwell *dwell)
{
    int64_t now_ms = dwell->plane->clock->now_ms;
    dwell->min_ms = 0;
    for (struct list *at = dwell->order.next; at != &dwell->order; at = at->next)
        CONTAINER_OF(at, struct dwell_user, place)->until_ms = now_ms;
    dwell_set_timer(dwell);
}

bool dwell_is_idle(const struct dwell *dwell)
{
    return dwell->users.size == 0;
}

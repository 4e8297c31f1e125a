#include "presence/settle_queue.h"

#include "base/container.h"
#include "log/log.h"
#include "presence/presence_plane.h"

#include <stdlib.h>
#include <string.h>

struct settle_entry {
    struct list place;
    struct presence_plane *plane;
    struct ulid conn_id;
    int64_t left_at_ms; /* 0: the user has not left, but viewers were told a higher version */
    int64_t due_ms; /* monotonic: when the grace ends, or (not left) when a claim may be final */
    bool is_uncertain;
    bool collides; /* viewers were told another state with the store's version */
    uint8_t user_id_len;
    char user_id[];
};

void settle_queue_init(struct settle_queue *queue)
{
    *queue = (struct settle_queue){0};
    list_init(&queue->graced);
    list_init(&queue->ready);
    list_init(&queue->undecided);
}

static void free_settle_entries(struct list *entries)
{
    for (struct list *at = entries->next, *next; at != entries; at = next) {
        next = at->next;
        free(CONTAINER_OF(at, struct settle_entry, place));
    }
    list_init(entries);
}

void settle_queue_free(struct settle_queue *queue)
{
    free_settle_entries(&queue->graced);
    free_settle_entries(&queue->ready);
    free_settle_entries(&queue->undecided);
    queue->count = 0;
}

/* ---- entries ---- */

static struct settle_entry *make_settle_entry(struct presence_plane *plane, struct slice user_id)
{
    struct settle_queue *queue = &plane->settlements;
    bool is_full = queue->count >= SETTLE_QUEUE_MAX;
    struct settle_entry *entry = is_full ? NULL : calloc(1, sizeof(*entry) + user_id.len);
    if (!entry) {
        metrics_count(plane->metrics, METRIC_PRESENCE_CLAIMS_DROPPED);
        return NULL;
    }
    entry->plane = plane;
    entry->user_id_len = (uint8_t)user_id.len;
    memcpy(entry->user_id, user_id.data, user_id.len);
    queue->count++;
    return entry;
}

static struct slice settle_entry_user(const struct settle_entry *entry)
{
    return (struct slice){entry->user_id, entry->user_id_len};
}

static void end_settle_entry(struct settle_entry *entry)
{
    last_known_end_claim(entry->plane->last_known, settle_entry_user(entry));
    entry->plane->settlements.count--;
    free(entry);
}

void settle_queue_add_departure(struct presence_plane *plane, struct slice user_id,
                                const struct ulid *conn_id, int64_t left_at_ms, bool is_uncertain)
{
    struct settle_entry *entry = make_settle_entry(plane, user_id);
    if (!entry)
        return;
    int64_t grace_ms = plane->config->presence.offline_grace_ms;
    entry->conn_id = *conn_id;
    entry->left_at_ms = left_at_ms;
    entry->is_uncertain = is_uncertain;
    entry->due_ms = plane->clock->now_ms + grace_ms;
    list_append(grace_ms ? &plane->settlements.graced : &plane->settlements.ready, &entry->place);
}

/* ---- one claim ---- */

static void settle_queue_send(struct presence_plane *plane);

static void on_claim_settled(void *arg, enum state_status status,
                             const struct state_transition *transition)
{
    struct settle_entry *entry = arg;
    struct presence_plane *plane = entry->plane;
    struct settle_queue *queue = &plane->settlements;
    queue->pending--;
    if (status != STATE_OK) {
        queue->paused = true;
        entry->is_uncertain |= status == STATE_UNKNOWN;
        list_append(&queue->ready, &entry->place);
        return;
    }
    if (transition->undecided) {
        list_append(&queue->undecided, &entry->place);
    } else {
        metrics_count(plane->metrics, METRIC_PRESENCE_CLAIMS_SETTLED);
        presence_settled(plane, transition, entry->is_uncertain);
        end_settle_entry(entry);
    }
    settle_queue_send(plane);
}

/* A gateway that saw a user leave says so first: it knows when that was. */
static bool settle_entry_is_final(const struct settle_entry *entry)
{
    return entry->left_at_ms ? resync_is_settled(entry->plane)
                             : resync_has_been_settled(entry->plane) &&
                                   entry->plane->clock->now_ms >= entry->due_ms;
}

/* Returns when a claim about a user may be final. Where a record is missing, it may have expired because the store's clock
 * was set: nobody notices that at once, but within a window every gateway finds which of its leases are missing. */
static int64_t settle_final_at_ms(const struct presence_plane *plane,
                                  const struct presence *presence)
{
    int64_t lost_at_ms =
        resync_is_disturbed(plane) ? plane->resync.disturbed_at_ms : plane->clock->now_ms;
    return presence->unrecorded ? lost_at_ms + plane->config->presence.expiry_window_ms : 0;
}

static void settle_queue_send_entry(struct presence_plane *plane, struct settle_entry *entry)
{
    struct presence told;
    bool is_known = last_known_find(plane->last_known, settle_entry_user(entry), &told);
    struct state_claim claim = {
        .user_id = settle_entry_user(entry),
        .conn_id = entry->conn_id,
        .left_at_ms = entry->left_at_ms,
        .version_min = is_known ? told.version + entry->collides : 0,
        .was_connected = entry->left_at_ms || (is_known && told.status != PRESENCE_OFFLINE),
        .is_final = settle_entry_is_final(entry),
    };
    plane->settlements.pending++;
    state_settle(plane->store, &claim, on_claim_settled, entry);
}

/* A completion may run at once and come back here: then the loop that sent it goes on. */
static void settle_queue_send(struct presence_plane *plane)
{
    struct settle_queue *queue = &plane->settlements;
    if (queue->is_sending)
        return;
    queue->is_sending = true;
    while (!queue->paused && queue->pending < SETTLE_PENDING_MAX && !list_empty(&queue->ready)) {
        struct settle_entry *entry = CONTAINER_OF(queue->ready.next, struct settle_entry, place);
        list_remove(&entry->place);
        settle_queue_send_entry(plane, entry);
    }
    queue->is_sending = false;
}

bool settle_queue_check(struct presence_plane *plane, const struct presence *presence)
{
    struct presence told;
    if (!last_known_find(plane->last_known, presence->user_id, &told) ||
        !last_known_is_ahead(&told, presence))
        return false;
    if (!last_known_begin_claim(plane->last_known, presence->user_id))
        return true;
    struct settle_entry *entry = make_settle_entry(plane, presence->user_id);
    if (!entry) {
        last_known_end_claim(plane->last_known, presence->user_id);
        return true;
    }
    entry->due_ms = settle_final_at_ms(plane, presence);
    entry->collides = last_known_collides(&told, presence);
    list_append(&plane->settlements.ready, &entry->place);
    return true;
}

/* ---- one run ---- */

void settle_queue_run(struct presence_plane *plane)
{
    struct settle_queue *queue = &plane->settlements;
    queue->paused = false;
    while (!list_empty(&queue->graced)) {
        struct settle_entry *entry = CONTAINER_OF(queue->graced.next, struct settle_entry, place);
        if (entry->due_ms > plane->clock->now_ms)
            break;
        list_remove(&entry->place);
        list_append(&queue->ready, &entry->place);
    }
    for (struct list *at = queue->undecided.next, *next; at != &queue->undecided; at = next) {
        next = at->next;
        if (!settle_entry_is_final(CONTAINER_OF(at, struct settle_entry, place)))
            continue;
        list_remove(at);
        list_append(&queue->ready, at);
    }
    settle_queue_send(plane);
}

#include "calls/call_told.h"

#include "base/container.h"
#include "calls/call_events.h"
#include "calls/call_plane_internal.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

enum { EVENT_FIELDS_MAX = 4096 };

/* A call that rings for a user. */
struct call_ring {
    struct list place;
    struct call_plane *plane;
    int64_t since_ms; /* monotonic */
    struct slice user_id;
    struct slice call_id;
    unsigned tellings; /* how often the user was told that it ended */
    char bytes[];
};

void call_told_init(struct call_told *told, uint64_t hash_seed)
{
    memset(told, 0, sizeof(*told));
    list_init(&told->rings);
    hash_key_init(&told->key, hash_seed);
}

static struct call_ring *call_ring_of(struct list *at)
{
    return CONTAINER_OF(at, struct call_ring, place);
}

static void call_ring_take(struct call_ring *ring)
{
    list_remove(&ring->place);
    ring->plane->told.ring_count--;
}

static void call_ring_free(struct call_ring *ring)
{
    call_ring_take(ring);
    free(ring);
}

void call_told_free(struct call_told *told)
{
    while (!list_empty(&told->rings))
        call_ring_free(call_ring_of(told->rings.next));
}

/* ---- what passes ---- */

static void call_told_add_ring(struct call_plane *plane, struct slice user_id, struct slice call_id)
{
    if (user_id.len > USER_ID_BYTES_MAX || call_id.len > CALL_ID_BYTES_MAX)
        return;
    struct call_ring *ring = malloc(sizeof(*ring) + user_id.len + call_id.len);
    if (!ring)
        return;
    char *at = ring->bytes;
    *ring = (struct call_ring){.plane = plane, .since_ms = plane->presence->clock->now_ms};
    ring->user_id = slice_copy_to(&at, user_id);
    ring->call_id = slice_copy_to(&at, call_id);
    if (plane->told.ring_count >= CALL_TOLD_RINGS_MAX)
        call_ring_free(call_ring_of(plane->told.rings.next));
    list_append(&plane->told.rings, &ring->place);
    plane->told.ring_count++;
}

static void call_told_remove_ring(struct call_told *told, struct slice user_id,
                                  struct slice call_id)
{
    for (struct list *at = told->rings.next; at != &told->rings; at = at->next)
        if (slice_equal(call_ring_of(at)->call_id, call_id) &&
            slice_equal(call_ring_of(at)->user_id, user_id)) {
            call_ring_free(call_ring_of(at));
            return;
        }
}

static uint64_t call_told_hash(const struct call_told *told, struct slice user_id,
                               struct slice call_id)
{
    char both[USER_ID_BYTES_MAX + 1 + CALL_ID_BYTES_MAX];
    if (user_id.len > USER_ID_BYTES_MAX || call_id.len > CALL_ID_BYTES_MAX)
        return 0;
    memcpy(both, user_id.data, user_id.len);
    both[user_id.len] = 0;
    memcpy(both + user_id.len + 1, call_id.data, call_id.len);
    return hash_key_hash(&told->key, (struct slice){both, user_id.len + 1 + call_id.len}) | 1;
}

bool call_told_has_ended(const struct call_plane *plane, struct slice user_id, struct slice call_id)
{
    uint64_t hash = call_told_hash(&plane->told, user_id, call_id);
    for (size_t i = 0; i < CALL_TOLD_ENDS; i++)
        if (plane->told.ends[i] == hash)
            return true;
    return false;
}

struct call_event {
    struct slice call_id;
    struct slice reason;
    char text[EVENT_FIELDS_MAX];
};

/* The parser changes the text, which others still need. */
static bool call_event_parse(struct call_event *event, struct slice fields)
{
    struct json json;
    struct slice key;
    event->call_id = event->reason = SLICE_NONE;
    if (fields.len > sizeof(event->text))
        return false;
    memcpy(event->text, fields.data, fields.len);
    json_init(&json, event->text, fields.len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (slice_is(key, "call_id"))
            json_string(&json, &event->call_id);
        else if (slice_is(key, "reason"))
            json_string(&json, &event->reason);
        else
            json_skip(&json);
    }
    return json_done(&json) && event->call_id.data;
}

/* For the device that answered, the call goes on when it ends elsewhere. */
static bool call_event_is_end(const struct call_event *event, struct slice name)
{
    return slice_is(name, "call_rejected") ||
           (slice_is(name, "call_ended") &&
            !slice_is(event->reason, call_reason_name(CALL_REASON_ANSWERED_ELSEWHERE)));
}

void call_told_note(void *arg, struct slice user_id, struct slice name, struct slice fields)
{
    struct call_plane *plane = arg;
    struct call_told *told = &plane->told;
    struct call_event event;
    if (!router_find(plane->presence->router, user_id) || slice_is(name, "call_signal") ||
        !call_event_parse(&event, fields))
        return;
    call_told_remove_ring(told, user_id, event.call_id);
    if (slice_is(name, "call_incoming"))
        call_told_add_ring(plane, user_id, event.call_id);
    if (!call_event_is_end(&event, name))
        return;
    told->ends[told->next_end] = call_told_hash(told, user_id, event.call_id);
    told->next_end = (told->next_end + 1) % CALL_TOLD_ENDS;
}

/* ---- calls that ring for too long ---- */

/* Asks again a moment later, before the others. */
static void call_ring_ask_again(struct call_ring *ring)
{
    struct call_told *told = &ring->plane->told;
    const struct presence_plane *presence = ring->plane->presence;
    ring->since_ms = presence->clock->now_ms - presence->config->call.ring_timeout_ms;
    list_append(told->rings.next, &ring->place);
    told->ring_count++;
}

/* A call without a record was lost with the store's data. */
static enum call_reason call_ring_reason(const struct call *found)
{
    if (!found)
        return CALL_REASON_DISCONNECTED;
    return found->state == CALL_ENDED ? found->reason : CALL_REASON_ANSWERED_ELSEWHERE;
}

/* The user may have no route now, so the call is kept until the event passes, which removes it, perhaps at once. */
static void call_ring_end(struct call_ring *ring, const struct call *found)
{
    char id[CALL_ID_BYTES_MAX], user[USER_ID_BYTES_MAX];
    struct delivery *delivery = ring->plane->delivery;
    struct slice user_id = {memcpy(user, ring->user_id.data, ring->user_id.len), ring->user_id.len};
    struct call ended = {
        .id = {memcpy(id, ring->call_id.data, ring->call_id.len), ring->call_id.len},
        .reason = call_ring_reason(found),
        .callee.user_id = user_id};
    if (found)
        ended.caller.user_id = found->caller.user_id;
    if (++ring->tellings < CALL_TOLD_TELLINGS_MAX)
        call_ring_ask_again(ring);
    else
        free(ring);
    call_events_ended_for_user(delivery, &ended, user_id,
                               found && found->state == CALL_ACCEPTED ? &found->callee.conn_id
                                                                      : NULL);
}

static void on_call_ring_read(void *arg, const struct call_answer *answer)
{
    struct call_ring *ring = arg;
    bool rings = answer->result == CALL_DONE && answer->call->state == CALL_RINGING;
    bool is_known = answer->result == CALL_DONE || answer->result == CALL_NOT_FOUND;
    if (rings || !is_known)
        call_ring_ask_again(ring);
    else
        call_ring_end(ring, answer->result == CALL_DONE ? answer->call : NULL);
}

/* Those that ring still, or were told just now, wait for the next run. */
void call_told_run(struct call_plane *plane)
{
    struct call_told *told = &plane->told;
    int64_t due_ms = plane->presence->config->call.ring_timeout_ms + CALL_TOLD_LATE_MS;
    size_t count =
        told->ring_count < CALL_TOLD_RINGS_PER_RUN ? told->ring_count : CALL_TOLD_RINGS_PER_RUN;
    if (!resync_is_settled(plane->presence))
        return;
    for (; count > 0 && !list_empty(&told->rings); count--) {
        struct call_ring *ring = call_ring_of(told->rings.next);
        if (plane->presence->clock->now_ms < ring->since_ms + due_ms)
            return;
        call_ring_take(ring);
        call_store_get(plane->store, ring->call_id, ring->user_id, on_call_ring_read, ring);
    }
}

#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

/* The items of a transition script's reply. */
enum {
    AT_CHANGED,
    AT_STATUS,
    AT_IN_CALL,
    AT_LAST_SEEN,
    AT_VERSION,
    AT_NOW,
    AT_GRACE_LEFT,
    AT_MENDED,
    AT_USER,
    AT_GATEWAY,
    AT_ENDED,
    AT_DISPLACED,
    AT_DISPLACED_GATEWAY,
    TRANSITION_ITEMS
};

/* Values of AT_CHANGED: whether others see a change, and whether the user was online or away before it. */
enum { NOT_CHANGED, CHANGED, CHANGED_AND_WAS_HERE };

/* Values of AT_ENDED; the last one of a claim only. */
enum { NOT_ENDED, ENDED, UNDECIDED };

/* A presence record outlives the leases by this long; the same as in user_prelude.lua. */
enum { RECORD_EXTRA_MS = 5000 };

bool redis_state_parse_presence(const struct redis_state *state, const struct resp_value *items,
                                struct presence *out)
{
    *out = (struct presence){.last_seen_ms = TIME_NONE};
    if (items[0].type != RESP_TEXT || !presence_status_parse(items[0].text, &out->status) ||
        items[3].type != RESP_INTEGER)
        return false;
    out->in_call = slice_is(items[1].text, "1");
    if (items[2].text.len && !time_text_parse(items[2].text, &out->last_seen_ms))
        out->last_seen_ms = TIME_NONE;
    out->version = items[3].integer;
    out->unrecorded = out->version == 0;
    /* The record has expired, and only last_seen is left. This version is not smaller than the record's was, and smaller
     * than every later version, because a record expires a window and RECORD_EXTRA_MS after it was written. */
    if (out->version == 0 && out->last_seen_ms != TIME_NONE)
        out->version = out->last_seen_ms + state->options.lease_window_ms + RECORD_EXTRA_MS - 1;
    return true;
}

bool redis_state_parse_transition(struct redis_state *state, const struct resp_value *reply,
                                  struct slice user, struct state_transition *out,
                                  struct redis_lease_change *lease)
{
    if (!redis_state_reply_is(reply, RESP_ARRAY) || reply->count != TRANSITION_ITEMS)
        return false;
    const struct resp_value *items = reply->items;
    *out = (struct state_transition){0}; /* also what this reply does not have */
    if (!redis_state_parse_presence(state, items + AT_STATUS, &out->presence))
        return false;
    out->changed = items[AT_CHANGED].integer != NOT_CHANGED;
    out->was_here = items[AT_CHANGED].integer == CHANGED_AND_WAS_HERE;
    out->at_ms = items[AT_NOW].integer;
    state->redis_ahead_ms = out->at_ms - state->options.loop->clock.wall_ms;
    out->presence.user_id = user.len ? user : items[AT_USER].text;
    redis_state_count_mended(state, items[AT_MENDED].integer);
    struct slice gateway = items[AT_GATEWAY].text,
                 displaced_gateway = items[AT_DISPLACED_GATEWAY].text;
    if (ulid_parse(items[AT_DISPLACED].text, &out->displaced) &&
        displaced_gateway.len <= GATEWAY_ID_BYTES_MAX)
        out->displaced_gateway = displaced_gateway;
    if (lease)
        *lease = (struct redis_lease_change){
            .grace_ms = items[AT_GRACE_LEFT].integer,
            .old_gateway = gateway.len <= GATEWAY_ID_BYTES_MAX ? gateway : SLICE_NONE,
            .has_ended = items[AT_ENDED].integer == ENDED,
            .is_undecided = items[AT_ENDED].integer == UNDECIDED,
        };
    return out->presence.user_id.len > 0 && out->presence.user_id.len <= USER_ID_BYTES_MAX;
}

#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

/* Where things stand in a transition script's answer. */
enum {
    AT_CHANGED,
    AT_STATUS,
    AT_IN_CALL,
    AT_LAST_SEEN,
    AT_VERSION,
    AT_NOW,
    AT_LINGERS,
    AT_MENDED,
    AT_USER,
    AT_GATEWAY,
    AT_ENDED,
    ANSWER_ITEMS
};

/* AT_CHANGED: whether others see a difference, and whether the user was there, if only away, before it. */
enum { CHANGED_NOT, CHANGED, CHANGED_OF_ONE_HERE };

/* A presence record outlives the leases by so much; prelude.lua has the same. */
enum { RECORD_EXTRA_MS = 5000 };

/* The version of one whose record is gone and whose last seen is all that is left: no less than the record
 * had, and less than any that will be made, since it went a window and RECORD_EXTRA_MS after. */
static int64_t version_without_record(const struct redis_state *state, int64_t last_seen_ms)
{
    if (last_seen_ms == TIME_NONE)
        return 0;
    return last_seen_ms + state->options.lease_window_ms + RECORD_EXTRA_MS - 1;
}

bool redis_state_read_presence(const struct redis_state *state, const struct resp_value *items,
                               struct presence *out)
{
    *out = (struct presence){.last_seen_ms = TIME_NONE};
    if (items[0].type != RESP_TEXT || !presence_status_parse(items[0].text, &out->status) ||
        items[3].type != RESP_INTEGER)
        return false;
    out->in_call = slice_is(items[1].text, "1");
    if (items[2].text.len && !time_text_parse(items[2].text, &out->last_seen_ms))
        out->last_seen_ms = TIME_NONE;
    out->version =
        items[3].integer ? items[3].integer : version_without_record(state, out->last_seen_ms);
    return true;
}

bool redis_state_read_transition(struct redis_state *state, const struct resp_value *reply,
                                 struct slice user, struct state_transition *out)
{
    if (!redis_state_is(reply, RESP_ARRAY) || reply->count != ANSWER_ITEMS)
        return false;
    const struct resp_value *items = reply->items;
    if (!redis_state_read_presence(state, items + AT_STATUS, &out->presence))
        return false;
    out->changed = items[AT_CHANGED].integer != CHANGED_NOT;
    out->was_here = items[AT_CHANGED].integer == CHANGED_OF_ONE_HERE;
    out->at_ms = items[AT_NOW].integer;
    state->redis_ahead_ms = out->at_ms - state->options.loop->clock.wall_ms;
    out->presence.user_id = user.len ? user : items[AT_USER].text;
    redis_state_mended(state, items[AT_MENDED].integer);
    return out->presence.user_id.len > 0 && out->presence.user_id.len <= USER_ID_BYTES_MAX;
}

int64_t redis_state_lingers_ms(const struct resp_value *reply)
{
    return reply->items[AT_LINGERS].integer;
}

struct slice redis_state_left_gateway(const struct resp_value *reply)
{
    struct slice gateway = reply->items[AT_GATEWAY].text;
    return gateway.len <= GATEWAY_ID_BYTES_MAX ? gateway : SLICE_NONE;
}

bool redis_state_has_ended(const struct resp_value *reply)
{
    return reply->items[AT_ENDED].integer == 1;
}

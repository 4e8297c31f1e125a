#include "store/redis_circle_reading.h"

#include "store/redis_circle.h"
#include "store/redis_store.h"

#include <stdlib.h>

/* Where things stand in the script's answer. */
enum {
    AT_KNOWN,
    AT_TICKET,
    MISS_ITEMS,
    AT_AGED = MISS_ITEMS,
    AT_PRESENCE,
    AT_LAST_SEEN,
    AT_CONTACTS,
    AT_BLOCKED,
    AT_CHATS,
    HIT_ITEMS,
};

/* One allocation: the ids of the three lists follow, then their bytes. */
struct reading {
    struct state_store *state;
    void (*done)(void *arg, enum state_status status, const struct circle_audience *audience);
    void *arg;
    struct circle_audience audience;
    size_t asked; /* contacts whose state is known; those online among them stand in front */
    size_t online;
    size_t contact_count;
    struct slice ids[];
};

/* In the order of enum ledger_visibility, which is the caller's. */
static const char *const VISIBILITIES[] = {"contacts_only", "everyone", "nobody"};

enum { VISIBILITY_COUNT = sizeof(VISIBILITIES) / sizeof(VISIBILITIES[0]) };

const char *redis_circle_visibility_name(uint8_t visibility)
{
    return visibility < VISIBILITY_COUNT ? VISIBILITIES[visibility] : NULL;
}

static bool parse_visibility(const struct resp_value *value, uint8_t *out)
{
    for (uint8_t i = 0; i < VISIBILITY_COUNT; i++)
        if (value->type == RESP_TEXT && slice_is(value->text, VISIBILITIES[i])) {
            *out = i;
            return true;
        }
    return false;
}

static bool is_list(const struct resp_value *value)
{
    if (value->type != RESP_ARRAY)
        return false;
    for (size_t i = 0; i < value->count; i++)
        if (value->items[i].type != RESP_TEXT || value->items[i].text.len == 0)
            return false;
    return true;
}

static size_t bytes_of(const struct resp_value *list)
{
    size_t bytes = list->count * sizeof(struct slice);
    for (size_t i = 0; i < list->count; i++)
        bytes += list->items[i].text.len;
    return bytes;
}

/* Copies a list's bytes to *at and its slices to ids. */
static struct circle_list copy_list(const struct resp_value *list, struct slice *ids, char **at)
{
    for (size_t i = 0; i < list->count; i++) {
        struct slice text = list->items[i].text;
        memcpy(*at, text.data, text.len);
        ids[i] = (struct slice){*at, text.len};
        *at += text.len;
    }
    return (struct circle_list){ids, list->count};
}

static struct reading *make_reading(const struct resp_value *items)
{
    size_t contacts = items[AT_CONTACTS].count, blocked = items[AT_BLOCKED].count;
    struct reading *reading = malloc(sizeof(*reading) + bytes_of(&items[AT_CONTACTS]) +
                                     bytes_of(&items[AT_BLOCKED]) + bytes_of(&items[AT_CHATS]));
    if (!reading)
        return NULL;
    *reading = (struct reading){.contact_count = contacts};
    char *at = (char *)&reading->ids[contacts + blocked + items[AT_CHATS].count];
    reading->audience = (struct circle_audience){
        .known = true,
        .aged = redis_store_integer(&items[AT_AGED]) != 0,
        .circle.contacts = copy_list(&items[AT_CONTACTS], reading->ids, &at),
        .circle.blocked = copy_list(&items[AT_BLOCKED], reading->ids + contacts, &at),
        .circle.chats = copy_list(&items[AT_CHATS], reading->ids + contacts + blocked, &at),
    };
    return reading;
}

static bool makes_sense(const struct resp_value *reply, struct circle *settings)
{
    return redis_store_is_array(reply, HIT_ITEMS) && is_list(&reply->items[AT_CONTACTS]) &&
           is_list(&reply->items[AT_BLOCKED]) && is_list(&reply->items[AT_CHATS]) &&
           parse_visibility(&reply->items[AT_PRESENCE], &settings->presence_visibility) &&
           parse_visibility(&reply->items[AT_LAST_SEEN], &settings->last_seen_visibility);
}

/* ---- who is online ---- */

static void finish(struct reading *reading, enum state_status status)
{
    reading->done(reading->arg, status, status == STATE_OK ? &reading->audience : NULL);
    free(reading);
}

static void pick(struct reading *reading);

static void picked(void *arg, enum state_status status, const struct presence *presences,
                   size_t count)
{
    struct reading *reading = arg;
    if (status != STATE_OK || reading->asked + count > reading->contact_count) {
        finish(reading, STATE_UNAVAILABLE);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (presences[i].status != PRESENCE_OFFLINE)
            reading->ids[reading->online++] = reading->ids[reading->asked + i];
    reading->asked += count;
    pick(reading);
}

static void pick(struct reading *reading)
{
    size_t left = reading->contact_count - reading->asked;
    reading->audience.circle.contacts.count = reading->online;
    if (left == 0)
        finish(reading, STATE_OK);
    else
        state_read(reading->state, reading->ids + reading->asked,
                   left < REDIS_CIRCLE_BATCH ? left : REDIS_CIRCLE_BATCH, picked, reading);
}

void redis_circle_reading_start(const struct resp_value *reply, struct state_store *state,
                                bool picks,
                                void (*done)(void *arg, enum state_status status,
                                             const struct circle_audience *audience),
                                void *arg)
{
    struct circle settings = {0};
    bool is_answer = redis_store_is_array(reply, MISS_ITEMS);
    uint64_t ticket = is_answer ? (uint64_t)redis_store_integer(&reply->items[AT_TICKET]) : 0;
    if (is_answer && redis_store_integer(&reply->items[AT_KNOWN]) == 0) {
        done(arg, STATE_OK, &(struct circle_audience){.ticket = ticket});
        return;
    }
    struct reading *reading = makes_sense(reply, &settings) ? make_reading(reply->items) : NULL;
    if (!reading) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    reading->state = state;
    reading->done = done;
    reading->arg = arg;
    reading->audience.ticket = ticket;
    reading->audience.circle.presence_visibility = settings.presence_visibility;
    reading->audience.circle.last_seen_visibility = settings.last_seen_visibility;
    if (picks)
        pick(reading);
    else
        finish(reading, STATE_OK);
}

#include "store/redis/redis_graph_read.h"

#include "base/id_list.h"
#include "store/redis/redis_graph.h"
#include "store/redis/redis_store.h"
#include "store/redis/state/redis_state_internal.h"

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

/* One shard of those who are online, and the contacts that would be in it. */
struct part {
    struct reading *reading;
    size_t first; /* of the contacts, which stand shard by shard */
    size_t count;
};

/* One allocation: the ids of the three lists follow, then their bytes. */
struct reading {
    graph_lookup_done done;
    void *arg;
    struct graph_lookup audience;
    size_t waiting; /* shards that have not answered, and one for the asking itself */
    struct part parts[REDIS_STATE_SHARDS];
    struct slice ids[];
};

/* In the order of enum ledger_visibility, which is the caller's. */
static const char *const VISIBILITIES[] = {"contacts_only", "everyone", "nobody"};

enum { VISIBILITY_COUNT = sizeof(VISIBILITIES) / sizeof(VISIBILITIES[0]) };

const char *redis_graph_visibility_name(uint8_t visibility)
{
    return visibility < VISIBILITY_COUNT ? VISIBILITIES[visibility] : NULL;
}

static bool parse_visibility(const struct resp_value *value, uint8_t *out)
{
    for (size_t i = 0; i < VISIBILITY_COUNT; i++)
        if (value->type == RESP_TEXT && slice_is(value->text, VISIBILITIES[i])) {
            *out = (uint8_t)i;
            return true;
        }
    return false;
}

static bool is_list(const struct resp_value *value, size_t id_bytes_max)
{
    if (value->type != RESP_ARRAY)
        return false;
    for (size_t i = 0; i < value->count; i++)
        if (value->items[i].type != RESP_TEXT || value->items[i].text.len == 0 ||
            value->items[i].text.len > id_bytes_max)
            return false;
    return true;
}

/* Appends a list's texts, which still belong to the reply, to the reading's ids. */
static struct id_list take_list(struct reading *reading, size_t *at, const struct resp_value *list)
{
    struct id_list taken = {reading->ids + *at, list->count};
    for (size_t i = 0; i < list->count; i++)
        reading->ids[(*at)++] = list->items[i].text;
    return taken;
}

static struct reading *make_reading(const struct resp_value *items)
{
    size_t count = items[AT_CONTACTS].count + items[AT_BLOCKED].count + items[AT_CHATS].count;
    size_t bytes = 0, at = 0;
    for (size_t list = AT_CONTACTS; list <= AT_CHATS; list++)
        for (size_t i = 0; i < items[list].count; i++)
            bytes += items[list].items[i].text.len;
    struct reading *reading = malloc(sizeof(*reading) + count * sizeof(struct slice) + bytes);
    if (!reading)
        return NULL;
    *reading = (struct reading){.waiting = 1};
    reading->audience.known = true;
    reading->audience.aged = redis_store_integer(&items[AT_AGED]) != 0;
    reading->audience.graph.contacts = take_list(reading, &at, &items[AT_CONTACTS]);
    reading->audience.graph.blocked = take_list(reading, &at, &items[AT_BLOCKED]);
    reading->audience.graph.chats = take_list(reading, &at, &items[AT_CHATS]);
    id_list_pack(reading->ids, reading->ids, count, (char *)(reading->ids + count));
    return reading;
}

static bool makes_sense(const struct resp_value *reply, struct social_graph *settings)
{
    return redis_store_is_array(reply, HIT_ITEMS) &&
           is_list(&reply->items[AT_CONTACTS], USER_ID_BYTES_MAX) &&
           is_list(&reply->items[AT_BLOCKED], USER_ID_BYTES_MAX) &&
           is_list(&reply->items[AT_CHATS], CHAT_ID_BYTES_MAX) &&
           parse_visibility(&reply->items[AT_PRESENCE], &settings->presence_visibility) &&
           parse_visibility(&reply->items[AT_LAST_SEEN], &settings->last_seen_visibility);
}

/* ---- who is online, on a cluster ---- */

static void finish(struct reading *reading)
{
    reading->done(reading->arg, STATE_OK, &reading->audience);
    free(reading);
}

/* Contacts who are not online have lost their id by now. */
static void drop_absent(struct reading *reading)
{
    struct id_list *contacts = &reading->audience.graph.contacts;
    size_t count = contacts->count;
    contacts->count = 0;
    for (size_t i = 0; i < count; i++)
        if (reading->ids[i].data)
            reading->ids[contacts->count++] = reading->ids[i];
}

static void answered(struct reading *reading)
{
    if (--reading->waiting)
        return;
    drop_absent(reading);
    finish(reading);
}

/* Where it cannot be known all of them stay: who is told and not there does no harm. */
static void picked(void *arg, const struct resp_value *reply)
{
    struct part *part = arg;
    for (size_t i = 0; redis_store_is_array(reply, part->count) && i < part->count; i++)
        if (redis_store_integer(&reply->items[i]) == 0)
            part->reading->ids[part->first + i] = SLICE_NONE;
    answered(part->reading);
}

/* Puts the contacts shard by shard. False: there is no memory for it. */
static bool sort_by_shard(struct reading *reading)
{
    struct id_list *contacts = &reading->audience.graph.contacts;
    size_t starts[REDIS_STATE_SHARDS] = {0}, at = 0;
    struct slice *unsorted = malloc((contacts->count + 1) * sizeof(*unsorted));
    if (!unsorted)
        return false;
    for (size_t i = 0; i < contacts->count; i++)
        reading->parts[redis_state_shard(reading->ids[i])].count++;
    for (size_t i = 0; i < REDIS_STATE_SHARDS; i++) {
        reading->parts[i].reading = reading;
        reading->parts[i].first = starts[i] = at;
        at += reading->parts[i].count;
    }
    memcpy(unsorted, reading->ids, contacts->count * sizeof(*unsorted));
    for (size_t i = 0; i < contacts->count; i++)
        reading->ids[starts[redis_state_shard(unsorted[i])]++] = unsorted[i];
    free(unsorted);
    return true;
}

static void ask_shard(struct redis_client *client, struct part *part, unsigned shard)
{
    enum { WORDS_BEFORE = 2 };
    char key[REDIS_KEY_BYTES_MAX];
    struct slice *words = malloc((WORDS_BEFORE + part->count) * sizeof(*words));
    if (!words)
        return; /* as if it could not be reached */
    words[0] = SLICE("SMISMEMBER");
    words[1] = redis_state_shard_key(key, REDIS_GRAPH_ONLINE, shard);
    memcpy(words + WORDS_BEFORE, part->reading->ids + part->first, part->count * sizeof(*words));
    part->reading->waiting++;
    redis_command(client, words[1], (struct redis_args){words, WORDS_BEFORE + part->count}, picked,
                  part);
    free(words);
}

static void pick(struct reading *reading, struct redis_client *client)
{
    if (sort_by_shard(reading))
        for (unsigned i = 0; i < REDIS_STATE_SHARDS; i++)
            if (reading->parts[i].count)
                ask_shard(client, &reading->parts[i], i);
    answered(reading);
}

void redis_graph_reading_start(const struct resp_value *reply, struct redis_client *client,
                               graph_lookup_done done, void *arg)
{
    struct social_graph settings = {0};
    bool is_answer = redis_store_is_array(reply, MISS_ITEMS);
    uint64_t ticket = is_answer ? (uint64_t)redis_store_integer(&reply->items[AT_TICKET]) : 0;
    if (is_answer && redis_store_integer(&reply->items[AT_KNOWN]) == 0) {
        done(arg, STATE_OK, &(struct graph_lookup){.ticket = ticket});
        return;
    }
    struct reading *reading = makes_sense(reply, &settings) ? make_reading(reply->items) : NULL;
    if (!reading) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    reading->done = done;
    reading->arg = arg;
    reading->audience.ticket = ticket;
    reading->audience.graph.presence_visibility = settings.presence_visibility;
    reading->audience.graph.last_seen_visibility = settings.last_seen_visibility;
    if (redis_is_cluster(client))
        pick(reading, client);
    else
        finish(reading);
}

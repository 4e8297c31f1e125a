#include "store/redis/redis_graph_read.h"

#include "base/id_list.h"
#include "store/redis/redis_graph.h"
#include "store/redis/redis_store.h"
#include "store/redis/state/redis_state_internal.h"

#include <stdlib.h>

/* The items of the script's reply. */
enum {
    AT_KNOWN,
    AT_TICKET,
    MISS_ITEMS,
    AT_AGED = MISS_ITEMS,
    AT_PRESENCE,
    AT_LAST_SEEN,
    AT_CONTACTS,
    AT_BLOCKED,
    AT_BLOCKED_BY,
    AT_CHATS,
    HIT_ITEMS,
};

/* The contacts that belong to one shard of the online set. */
struct graph_shard {
    struct graph_read *read;
    unsigned number;
    size_t first; /* index of the first contact; contacts are sorted by shard */
    size_t count;
};

/* A graph that was found. One allocation: the ids of the three lists follow, then their bytes. */
struct graph_read {
    graph_lookup_done done;
    void *arg;
    struct graph_lookup lookup;
    size_t waiting; /* shards that have not answered, and one while the queries are being sent */
    struct graph_shard *shards; /* those with contacts; NULL on a single server */
    size_t shard_count;
    struct slice ids[];
};

/* In the order of enum ledger_visibility, which is the caller's. */
static const char *const VISIBILITIES[] = {"contacts_only", "everyone", "nobody"};

enum { VISIBILITY_COUNT = sizeof(VISIBILITIES) / sizeof(VISIBILITIES[0]) };

const char *redis_graph_visibility_name(uint8_t visibility)
{
    return visibility < VISIBILITY_COUNT ? VISIBILITIES[visibility] : NULL;
}

/* ---- parsing ---- */

static bool parse_graph_visibility(const struct resp_value *value, uint8_t *out)
{
    for (size_t i = 0; i < VISIBILITY_COUNT; i++)
        if (value->type == RESP_TEXT && slice_is(value->text, VISIBILITIES[i])) {
            *out = (uint8_t)i;
            return true;
        }
    return false;
}

static bool is_list_of_graph_ids(const struct resp_value *value, size_t id_bytes_max)
{
    if (value->type != RESP_ARRAY)
        return false;
    for (size_t i = 0; i < value->count; i++)
        if (value->items[i].type != RESP_TEXT || value->items[i].text.len == 0 ||
            value->items[i].text.len > id_bytes_max)
            return false;
    return true;
}

/* Appends a list's ids, which still belong to the reply, to the graph's ids. */
static struct id_list append_graph_ids(struct graph_read *read, size_t *at,
                                       const struct resp_value *list)
{
    struct id_list ids = {read->ids + *at, list->count};
    for (size_t i = 0; i < list->count; i++)
        read->ids[(*at)++] = list->items[i].text;
    return ids;
}

/* Returns NULL when the reply is malformed, or when out of memory. */
static struct graph_read *make_graph_read(const struct resp_value *reply)
{
    struct social_graph graph = {0};
    if (!redis_store_is_array(reply, HIT_ITEMS))
        return NULL;
    const struct resp_value *items = reply->items;
    if (!is_list_of_graph_ids(&items[AT_CONTACTS], USER_ID_BYTES_MAX) ||
        !is_list_of_graph_ids(&items[AT_BLOCKED], USER_ID_BYTES_MAX) ||
        !is_list_of_graph_ids(&items[AT_BLOCKED_BY], USER_ID_BYTES_MAX) ||
        !is_list_of_graph_ids(&items[AT_CHATS], CHAT_ID_BYTES_MAX) ||
        !parse_graph_visibility(&items[AT_PRESENCE], &graph.presence_visibility) ||
        !parse_graph_visibility(&items[AT_LAST_SEEN], &graph.last_seen_visibility))
        return NULL;
    size_t count = 0, bytes = 0, at = 0;
    for (size_t list = AT_CONTACTS; list <= AT_CHATS; list++) {
        count += items[list].count;
        for (size_t i = 0; i < items[list].count; i++)
            bytes += items[list].items[i].text.len;
    }
    struct graph_read *read = malloc(sizeof(*read) + count * sizeof(struct slice) + bytes);
    if (!read)
        return NULL;
    *read = (struct graph_read){.waiting = 1};
    graph.contacts = append_graph_ids(read, &at, &items[AT_CONTACTS]);
    graph.blocked = append_graph_ids(read, &at, &items[AT_BLOCKED]);
    graph.blocked_by = append_graph_ids(read, &at, &items[AT_BLOCKED_BY]);
    graph.chats = append_graph_ids(read, &at, &items[AT_CHATS]);
    id_list_pack(read->ids, read->ids, count, (char *)(read->ids + count));
    read->lookup = (struct graph_lookup){
        .known = true,
        .aged = redis_store_integer(&items[AT_AGED]) != 0,
        .ticket = (uint64_t)redis_store_integer(&items[AT_TICKET]),
        .graph = graph,
    };
    return read;
}

/* ---- who is online, on a cluster ---- */

/* Runs once for each queried shard, and once more. The last run removes the contacts whose id was cleared
 * because they are offline, and completes the lookup. */
static void end_graph_shard(struct graph_read *read)
{
    if (--read->waiting)
        return;
    struct id_list *contacts = &read->lookup.graph.contacts;
    size_t count = contacts->count;
    contacts->count = 0;
    for (size_t i = 0; i < count; i++)
        if (read->ids[i].data)
            read->ids[contacts->count++] = read->ids[i];
    read->done(read->arg, STATE_OK, &read->lookup);
    free(read->shards);
    free(read);
}

/* Without a valid answer all contacts stay: an event for an offline contact does no harm. */
static void on_shard_online_contacts(void *arg, const struct resp_value *reply)
{
    struct graph_shard *shard = arg;
    for (size_t i = 0; redis_store_is_array(reply, shard->count) && i < shard->count; i++)
        if (redis_store_integer(&reply->items[i]) == 0)
            shard->read->ids[shard->first + i] = SLICE_NONE;
    end_graph_shard(shard->read);
}

struct graph_place {
    unsigned shard;
    struct slice id;
};

static int compare_graph_places(const void *left, const void *right)
{
    const struct graph_place *a = left, *b = right;
    return (a->shard > b->shard) - (a->shard < b->shard);
}

/* Returns false when out of memory. */
static bool sort_contacts_by_shard(struct graph_read *read)
{
    size_t count = read->lookup.graph.contacts.count;
    struct graph_place *places = malloc((count + 1) * sizeof(*places));
    read->shards = malloc((count + 1) * sizeof(*read->shards));
    if (!places || !read->shards) {
        free(places);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        places[i] = (struct graph_place){redis_state_shard(read->ids[i]), read->ids[i]};
    qsort(places, count, sizeof(*places), compare_graph_places);
    for (size_t i = 0; i < count; i++) {
        struct graph_shard *last = read->shards + read->shard_count - 1;
        read->ids[i] = places[i].id;
        if (read->shard_count > 0 && last->number == places[i].shard)
            last->count++;
        else
            read->shards[read->shard_count++] = (struct graph_shard){read, places[i].shard, i, 1};
    }
    free(places);
    return true;
}

/* Without memory for the command, the shard counts as out of reach. */
static void query_online_contacts(struct redis_client *client, struct graph_shard *shard)
{
    enum { ARGUMENTS_FIRST = 2 };
    char key[REDIS_KEY_BYTES_MAX];
    struct slice *arguments = malloc((ARGUMENTS_FIRST + shard->count) * sizeof(*arguments));
    if (!arguments)
        return;
    arguments[0] = SLICE("SMISMEMBER");
    arguments[1] = redis_state_shard_key(key, REDIS_GRAPH_ONLINE, shard->number);
    memcpy(arguments + ARGUMENTS_FIRST, shard->read->ids + shard->first,
           shard->count * sizeof(*arguments));
    shard->read->waiting++;
    redis_command(client, arguments[1],
                  (struct redis_args){arguments, ARGUMENTS_FIRST + shard->count},
                  on_shard_online_contacts, shard);
    free(arguments);
}

void redis_graph_read(const struct resp_value *reply, struct redis_client *client,
                      graph_lookup_done done, void *arg)
{
    if (redis_store_is_array(reply, MISS_ITEMS) &&
        redis_store_integer(&reply->items[AT_KNOWN]) == 0) {
        uint64_t ticket = (uint64_t)redis_store_integer(&reply->items[AT_TICKET]);
        done(arg, STATE_OK, &(struct graph_lookup){.ticket = ticket});
        return;
    }
    struct graph_read *read = make_graph_read(reply);
    if (!read) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    read->done = done;
    read->arg = arg;
    if (redis_is_cluster(client) && sort_contacts_by_shard(read))
        for (size_t i = 0; i < read->shard_count; i++)
            query_online_contacts(client, &read->shards[i]);
    end_graph_shard(read);
}

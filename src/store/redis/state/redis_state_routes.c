/*
 * Where users are connected: plain reads of user_servers:<user> and recoveries:<user>, in one system call per server,
 * and a cache of what they returned (redis_route_cache.h).
 *
 * A user in the cache is not read again. The cached answer is used when the server has answered any command that it executed
 * after the operation began: all changes that the server made before that reply have been reported by then, so the answer
 * is as new as one read from the server (redis_client.h). A user who is reported meanwhile, or whose connection is lost, is
 * read after all. So a cache changes what an operation costs, and nothing else: whoever opened a lease before an operation
 * began is in its result, however late the report is.
 *
 * Where all answers are cached, whoever asked may send at once (state_routes_early()). On a single server the reply to that
 * very PUBLISH is then the one that is waited for; only what was reported meanwhile is read and sent later.
 *
 * The reads of one user are separate commands. A change between them is reported before the last one is answered; then the
 * user is read again.
 *
 * A slot that moves to another server takes its reports with it. The keys of a user who has a route are removed from the old
 * server, which reports that. Where there is no key nothing reports the move: the server is asked for the user's key, and refuses
 * if the slot has moved. For one user that is exact. For many users the key is that of another one each time, so that a
 * move is found after a few messages, or when the client next fetches the table of slots (REDIS_REFRESH_MS).
 *
 * A server that does not track (before Redis 6, some proxies, an ACL without the right) is read each time.
 */
#include "base/container.h"
#include "base/id_list.h"
#include "redis/protocol/redis_topology.h"
#include "store/redis/state/redis_state_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <xxhash.h>

enum {
    ROUTE_SUSPECTS_MAX =
        64, /* users reported during one operation; beyond, all of its users are read again */
};

struct routes_read;

/* The reads for one user: the servers are read last, so that their reply completes the answer. */
struct route_query {
    struct routes_read *read;
    size_t user;
    uint64_t tracking; /* 0: the answer is not kept */
    uint64_t reading;  /* of the cache */
    unsigned tracked;  /* a bit for each command that was sent tracked and is unanswered */
    uint16_t slot;
    bool is_parked;
    int64_t devices;
    unsigned waiting; /* replies */
};

/* One user on one gateway; the gateway's id is in `texts`. */
struct route_pair {
    size_t gateway_at;
    size_t gateway_len;
    size_t user;
};

/* A server whose next reply confirms cached answers. */
struct route_wait {
    struct redis_barrier barrier;
    struct routes_read *read;
    uint64_t tracking;
    uint16_t slot;
    bool is_asked; /* for a key: its reply is the next one */
};

struct routes_read {
    struct redis_state *state;
    struct list place; /* in state->routes_reads */
    state_routes_done done;
    void *arg;
    bool was_early;           /* the cached answers were used before they were confirmed */
    struct route_wait *waits; /* in this block of memory as the next */
    size_t wait_count;
    size_t wait_max;
    struct slice *users; /* copies, in this block of memory as the next */
    bool *
        is_settled; /* the user is not read: the answer is from the cache, or in a repetition from before */
    size_t count;
    size_t waiting; /* replies, and one while commands are being sent */
    bool failed;
    bool is_repeated; /* cached answers that were not confirmed are being read */
    bool has_lost;    /* a confirmation */
    struct route_query *queries;
    size_t query_count;
    struct buffer pairs; /* struct route_pair */
    struct buffer texts;
    struct buffer parked; /* size_t, users who have a parked session */
    struct buffer
        suspects; /* size_t, users who were reported after their answer was taken from the cache */
    struct buffer early_pairs; /* struct route_pair, of users who were then read after all */
    struct buffer early_parked;
    size_t
        repeated_pairs; /* where the answers begin in `pairs` and `parked` that were read after all */
    size_t repeated_parked;
    int64_t devices;
};

static void complete_routes_read(struct routes_read *read);
static void repeat_routes_read(struct routes_read *read);

static bool is_routes_read_whole(const struct routes_read *read)
{
    return !read->pairs.failed && !read->texts.failed && !read->parked.failed &&
           !read->suspects.failed && !read->early_pairs.failed && !read->early_parked.failed;
}

static void end_routes_command(struct routes_read *read)
{
    if (--read->waiting)
        return;
    bool is_stale = read->has_lost || read->suspects.len > 0;
    read->failed |= !is_routes_read_whole(read);
    if (is_stale && !read->is_repeated && !read->failed && !read->state->closing)
        repeat_routes_read(read);
    else
        complete_routes_read(read);
}

/* ---- reading one user ---- */

static void add_route_pair(struct routes_read *read, size_t user, struct slice gateway)
{
    struct route_pair pair = {read->texts.len, gateway.len, user};
    if (gateway.len == 0 || gateway.len > GATEWAY_ID_BYTES_MAX)
        return;
    buffer_append_slice(&read->texts, gateway);
    buffer_append(&read->pairs, &pair, sizeof(pair));
}

static void add_route_details(struct routes_read *read, size_t user, bool is_parked,
                              int64_t devices)
{
    if (is_parked)
        buffer_append(&read->parked, &user, sizeof(user));
    read->devices = devices;
}

/* A foreign value under one of the keys counts as absent. */
static bool is_route_reply(const struct resp_value *reply, enum resp_type type)
{
    return reply && (reply->type == type || resp_is_error(reply, "WRONGTYPE"));
}

static void keep_route_answer(struct route_query *query, const struct resp_value *servers)
{
    struct redis_state *state = query->read->state;
    struct slice user = query->read->users[query->user];
    struct buffer gateways = BUFFER_INIT;
    for (size_t i = 0; servers && servers->type == RESP_ARRAY && i < servers->count; i++) {
        struct slice gateway = servers->items[i].text;
        if (gateway.len == 0 || gateway.len > GATEWAY_ID_BYTES_MAX)
            continue;
        buffer_append_byte(&gateways, (char)gateway.len);
        buffer_append_slice(&gateways, gateway);
    }
    bool is_kept = servers && query->tracking && !gateways.failed &&
                   redis_tracking(state->options.client, query->slot) == query->tracking;
    bool was_changed = !redis_route_cache_end(
        &state->route_cache, user, query->reading,
        is_kept ? &(struct redis_route_answer){buffer_slice(&gateways), query->devices,
                                               query->is_parked}
                : NULL);
    if (is_kept && was_changed) /* between its reads, which then do not fit together */
        buffer_append(&query->read->suspects, &query->user, sizeof(query->user));
    buffer_free(&gateways);
}

enum route_command { ROUTE_PARKED, ROUTE_DEVICES, ROUTE_SERVERS, ROUTE_COMMANDS };

static void send_route_command(struct route_query *query, enum route_command command);

/* Reads again without tracking, which follows redirections. */
static bool retry_route_command(struct route_query *query, enum route_command command,
                                const struct resp_value *reply)
{
    bool was_tracked = query->tracked & (1u << command);
    query->tracked &= ~(1u << command);
    if (!was_tracked || !redis_state_is_redirection(reply))
        return false;
    keep_route_answer(query, NULL);
    query->tracking = 0;
    send_route_command(query, command);
    return true;
}

static void on_route_parked_read(void *arg, const struct resp_value *reply)
{
    struct route_query *query = arg;
    if (retry_route_command(query, ROUTE_PARKED, reply))
        return;
    query->read->failed |= !is_route_reply(reply, RESP_INTEGER);
    query->is_parked = reply && reply->type == RESP_INTEGER && reply->integer > 0;
    query->waiting--;
    if (query->is_parked)
        buffer_append(&query->read->parked, &query->user, sizeof(query->user));
    end_routes_command(query->read);
}

static void on_route_devices_read(void *arg, const struct resp_value *reply)
{
    struct route_query *query = arg;
    if (retry_route_command(query, ROUTE_DEVICES, reply))
        return;
    query->read->failed |= !is_route_reply(reply, RESP_INTEGER);
    query->devices = reply && reply->type == RESP_INTEGER ? reply->integer : 0;
    query->read->devices = query->devices;
    query->waiting--;
    end_routes_command(query->read);
}

static void on_route_servers_read(void *arg, const struct resp_value *reply)
{
    struct route_query *query = arg;
    struct routes_read *read = query->read;
    if (retry_route_command(query, ROUTE_SERVERS, reply))
        return;
    bool is_answer = is_route_reply(reply, RESP_ARRAY);
    if (!is_answer)
        redis_state_log_unexpected(reply);
    read->failed |= !is_answer;
    for (size_t i = 0; is_answer && reply->type == RESP_ARRAY && i < reply->count; i++)
        add_route_pair(read, query->user, reply->items[i].text);
    query->waiting--;
    keep_route_answer(query, is_answer && query->waiting == 0 && !read->failed ? reply : NULL);
    end_routes_command(read);
}

static void send_route_command(struct route_query *query, enum route_command command)
{
    static const struct {
        const char *prefix;
        struct slice name;
        redis_reply_done done;
    } COMMANDS[ROUTE_COMMANDS] = {
        [ROUTE_PARKED] = {"recoveries:", {"EXISTS", 6}, on_route_parked_read},
        [ROUTE_DEVICES] = {"user_connections:", {"SCARD", 5}, on_route_devices_read},
        [ROUTE_SERVERS] = {"user_servers:", {"SMEMBERS", 8}, on_route_servers_read},
    };
    struct redis_state *state = query->read->state;
    char text[REDIS_KEY_BYTES_MAX];
    struct slice key = redis_key_user(&state->keys, text, COMMANDS[command].prefix,
                                      query->read->users[query->user], "");
    struct redis_args args = REDIS_ARGS(COMMANDS[command].name, key);
    if (query->tracking && redis_read_tracked(state->options.client, query->slot, args,
                                              COMMANDS[command].done, query)) {
        query->tracked |= 1u << command;
        return;
    }
    query->tracking = 0;
    redis_command(state->options.client, key, args, COMMANDS[command].done, query);
}

static uint16_t route_user_slot(const struct redis_state *state, struct slice user)
{
    char key[REDIS_KEY_BYTES_MAX];
    return state->keys.cluster ? redis_slot(redis_key_user(&state->keys, key, "", user, "")) : 0;
}

/* How many devices there are is asked for a single user only. */
static void send_route_query(struct routes_read *read, struct route_query *query, size_t user)
{
    struct redis_state *state = read->state;
    uint16_t slot = route_user_slot(state, read->users[user]);
    bool with_devices = read->count == 1;
    *query = (struct route_query){.read = read,
                                  .user = user,
                                  .tracking = redis_tracking(state->options.client, slot),
                                  .slot = slot,
                                  .devices = REDIS_ROUTE_DEVICES_UNKNOWN,
                                  .waiting = with_devices ? ROUTE_COMMANDS : ROUTE_COMMANDS - 1};
    if (query->tracking)
        query->reading =
            redis_route_cache_begin(&state->route_cache, read->users[user], query->tracking, slot);
    if (!query->reading)
        query->tracking = 0;
    read->waiting += query->waiting;
    send_route_command(query, ROUTE_PARKED);
    if (with_devices)
        send_route_command(query, ROUTE_DEVICES);
    send_route_command(query, ROUTE_SERVERS);
}

/* Sends the reads of the users whose answers are not from the cache. */
static void send_route_queries(struct routes_read *read)
{
    size_t missing = 0, at = 0;
    for (size_t i = 0; i < read->count; i++)
        missing += !read->is_settled[i];
    metrics_add(read->state->options.metrics, METRIC_ROUTES_READ, (int64_t)missing);
    free(read->queries);
    read->queries = missing ? malloc(missing * sizeof(*read->queries)) : NULL;
    read->failed |= missing && !read->queries;
    for (size_t i = 0; read->queries && i < read->count; i++)
        if (!read->is_settled[i])
            send_route_query(read, &read->queries[at++], i);
}

/* ---- cached answers ---- */

static void on_routes_awaited(struct redis_barrier *barrier, bool is_passed)
{
    struct routes_read *read = CONTAINER_OF(barrier, struct route_wait, barrier)->read;
    read->has_lost |= !is_passed;
    end_routes_command(read);
}

static void on_routes_confirmed(void *arg, const struct resp_value *reply)
{
    struct routes_read *read = arg;
    read->has_lost |= !reply || reply->type == RESP_ERROR;
    end_routes_command(read);
}

/* Returns NULL when there are too many servers. */
static struct route_wait *find_or_add_route_wait(struct routes_read *read,
                                                 const struct redis_cached_route *route)
{
    for (size_t i = read->wait_count; i-- > 0;)
        if (read->waits[i].tracking == route->tracking)
            return &read->waits[i];
    if (read->wait_count == read->wait_max)
        return NULL;
    struct route_wait *wait = &read->waits[read->wait_count++];
    *wait = (struct route_wait){.read = read, .tracking = route->tracking, .slot = route->slot};
    return wait;
}

/* Notes the server that must confirm this answer. On a cluster it is asked for the key of a user who has none. */
static void confirm_cached_route(struct routes_read *read, const struct redis_cached_route *route)
{
    struct redis_state *state = read->state;
    struct route_wait *wait = find_or_add_route_wait(read, route);
    char text[REDIS_KEY_BYTES_MAX];
    struct slice user = {route->user, route->user_len};
    read->has_lost |= !wait;
    if (!wait || wait->is_asked || !state->keys.cluster || route->gateways_len)
        return;
    wait->is_asked = true;
    read->waiting++;
    if (!redis_confirm(state->options.client, route->slot,
                       redis_key_user(&state->keys, text, "user_servers:", user, ""),
                       on_routes_confirmed, read))
        on_routes_confirmed(read, NULL);
}

/* Waits for the next replies of the servers that were not asked for a key. */
static void await_cached_routes(struct routes_read *read)
{
    struct redis_state *state = read->state;
    for (size_t i = 0; i < read->wait_count; i++) {
        struct route_wait *wait = &read->waits[i];
        if (wait->is_asked)
            continue;
        if (state->keys.cluster) {
            char key[REDIS_KEY_BYTES_MAX]; /* a name that the rights in deploy/redis.conf allow */
            struct slice whole = redis_state_shard_key(key, "presence", wait->slot);
            static_assert(sizeof("presence") - 1 + REDIS_STATE_SUFFIX_LEN <= REDIS_BARRIER_KEY_MAX,
                          "the key fits");
            wait->barrier.key_len = whole.len;
            memcpy(wait->barrier.key, whole.data, whole.len);
        }
        wait->barrier.done = on_routes_awaited;
        read->waiting++;
        if (!redis_await(state->options.client, wait->slot, &wait->barrier))
            on_routes_awaited(&wait->barrier, false);
    }
}

static void take_cached_route(struct routes_read *read, size_t user,
                              const struct redis_cached_route *route)
{
    for (size_t at = 0; at < route->gateways_len;) {
        size_t len = (unsigned char)route->gateways[at];
        add_route_pair(read, user, (struct slice){route->gateways + at + 1, len});
        at += 1 + len;
    }
    add_route_details(read, user, route->is_parked, route->devices);
    read->is_settled[user] = true;
}

/* Returns whether all users are in the cache. */
static bool take_cached_routes(struct routes_read *read)
{
    struct redis_state *state = read->state;
    size_t cached = 0;
    size_t first = state->keys.cluster && read->count ? state->route_turn++ % read->count : 0;
    for (size_t n = 0; n < read->count; n++) {
        size_t i =
            (first + n) % read->count; /* so that each user is the one that confirms now and then */
        const struct redis_cached_route *route =
            redis_route_cache_find(&state->route_cache, read->users[i]);
        if (!route || redis_tracking(state->options.client, route->slot) != route->tracking ||
            (read->count == 1 && route->devices == REDIS_ROUTE_DEVICES_UNKNOWN))
            continue;
        take_cached_route(read, i, route);
        cached++;
        confirm_cached_route(read, route);
    }
    metrics_add(state->options.metrics, METRIC_ROUTES_CACHED, (int64_t)cached);
    return cached == read->count && !read->has_lost;
}

/* ---- reports ---- */

static void note_route_suspect(struct routes_read *read, struct slice user)
{
    if (read->suspects.len >= ROUTE_SUSPECTS_MAX * sizeof(size_t)) {
        read->has_lost = true;
        return;
    }
    for (size_t i = 0; i < read->count; i++)
        if (read->is_settled[i] && slice_equal(read->users[i], user))
            buffer_append(&read->suspects, &i, sizeof(i));
}

void redis_state_routes_on_invalidated(struct redis_state *state, struct slice key)
{
    static const char *const prefixes[] = {"user_servers:", "user_connections:", "recoveries:"};
    char out[REDIS_KEY_BYTES_MAX];
    struct slice user = SLICE_NONE, rest;
    bool is_ours = !key.data;
    for (size_t i = 0; !is_ours && i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        is_ours = redis_key_read_user(&state->keys, out, key, prefixes[i], &user, &rest);
    if (!is_ours)
        return;
    metrics_count(state->options.metrics, METRIC_ROUTES_INVALIDATED);
    if (key.data)
        redis_route_cache_drop(&state->route_cache, user);
    else
        redis_route_cache_clear(&state->route_cache);
    for (struct list *at = state->routes_reads.next; at != &state->routes_reads; at = at->next) {
        struct routes_read *read = CONTAINER_OF(at, struct routes_read, place);
        if (key.data)
            note_route_suspect(read, user);
        else
            read->has_lost = true;
    }
}

static void remove_unsettled_routes(struct routes_read *read)
{
    struct route_pair *pairs = (struct route_pair *)(void *)read->pairs.data;
    size_t *parked = (size_t *)(void *)read->parked.data;
    size_t count = read->pairs.len / sizeof(*pairs), kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (read->is_settled[pairs[i].user])
            pairs[kept++] = pairs[i];
        else if (read->was_early)
            buffer_append(&read->early_pairs, &pairs[i], sizeof(pairs[i]));
    }
    read->pairs.len = kept * sizeof(*pairs);
    count = read->parked.len / sizeof(*parked);
    kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (read->is_settled[parked[i]])
            parked[kept++] = parked[i];
        else if (read->was_early)
            buffer_append(&read->early_parked, &parked[i], sizeof(parked[i]));
    }
    read->parked.len = kept * sizeof(*parked);
    read->repeated_pairs = read->pairs.len;
    read->repeated_parked = read->parked.len;
}

/* Reads the users whose cached answers were not confirmed: all of them after a lost confirmation. The server's own
 * answers need none. */
static void repeat_routes_read(struct routes_read *read)
{
    const size_t *suspects = (const size_t *)(void *)read->suspects.data;
    read->is_repeated = true;
    read->waiting = 1;
    for (size_t i = 0; i < read->count; i++)
        read->is_settled[i] = !read->has_lost || !read->is_settled[i];
    for (size_t i = 0; i < read->suspects.len / sizeof(*suspects); i++)
        read->is_settled[suspects[i]] = false;
    remove_unsettled_routes(read);
    send_route_queries(read);
    end_routes_command(read);
}

/* ---- the result ---- */

/* Finds the route to the pair's gateway, or adds it. `buckets` has `bucket_count`, a power of two, entries. */
static struct state_route *find_or_add_route(const struct routes_read *read,
                                             struct state_routes *found, size_t *buckets,
                                             size_t bucket_count, const struct route_pair *pair)
{
    struct state_route *routes = (struct state_route *)found->items;
    struct slice gateway = {read->texts.data + pair->gateway_at, pair->gateway_len};
    size_t at = XXH3_64bits(gateway.data, gateway.len) & (bucket_count - 1);
    for (; buckets[at]; at = (at + 1) & (bucket_count - 1))
        if (slice_equal(routes[buckets[at] - 1].gateway_id, gateway))
            return &routes[buckets[at] - 1];
    routes[found->count] = (struct state_route){.gateway_id = gateway};
    buckets[at] = ++found->count;
    return &routes[found->count - 1];
}

/* Some pairs and parked users of an operation, and the memory of the result that is made of them. */
struct routes_result {
    const struct route_pair *pairs;
    size_t pair_count;
    const size_t *parked;
    size_t parked_count;
    struct state_routes found;
    struct state_route *routes;
    struct slice *users;
    size_t *buckets;
};

static void free_routes_result(struct routes_result *result)
{
    free(result->routes);
    free(result->users);
    free(result->buckets);
}

/* Groups the users by gateway: counts the users of each gateway, then places them. */
static void group_route_pairs(const struct routes_read *read, struct routes_result *result,
                              size_t bucket_count)
{
    struct state_routes *found = &result->found;
    for (size_t i = 0; i < result->pair_count; i++)
        find_or_add_route(read, found, result->buckets, bucket_count, &result->pairs[i])->count++;
    for (size_t i = 0, at = 0; i < found->count; i++) {
        result->routes[i].users = result->users + at;
        at += result->routes[i].count;
        result->routes[i].count = 0;
    }
    for (size_t i = 0; i < result->pair_count; i++) {
        struct state_route *route =
            find_or_add_route(read, found, result->buckets, bucket_count, &result->pairs[i]);
        result->users[(size_t)(route->users - result->users) + route->count++] =
            read->users[result->pairs[i].user];
    }
}

/* Returns false when out of memory; free the result in any case. */
static bool make_routes_result(const struct routes_read *read, struct routes_result *result)
{
    size_t bucket_count = 2;
    while (bucket_count < 2 * result->pair_count)
        bucket_count *= 2;
    result->routes = calloc(result->pair_count + 1, sizeof(*result->routes));
    result->users = calloc(result->pair_count + result->parked_count + 1, sizeof(*result->users));
    result->buckets = calloc(bucket_count, sizeof(*result->buckets));
    if (!result->routes || !result->users || !result->buckets)
        return false;
    struct slice *parked = result->users + result->pair_count;
    for (size_t i = 0; i < result->parked_count; i++)
        parked[i] = read->users[result->parked[i]];
    result->found = (struct state_routes){.items = result->routes,
                                          .parked = parked,
                                          .parked_count = result->parked_count,
                                          .devices = read->devices > 0 ? (size_t)read->devices : 0};
    group_route_pairs(read, result, bucket_count);
    return true;
}

static struct routes_result routes_result_of(const struct routes_read *read)
{
    return (struct routes_result){
        .pairs = (const struct route_pair *)(const void *)read->pairs.data,
        .pair_count = read->pairs.len / sizeof(struct route_pair),
        .parked = (const size_t *)(const void *)read->parked.data,
        .parked_count = read->parked.len / sizeof(size_t),
    };
}

static bool was_route_early(const struct routes_read *read, const struct route_pair *pair)
{
    const struct route_pair *early =
        (const struct route_pair *)(const void *)read->early_pairs.data;
    struct slice gateway = {read->texts.data + pair->gateway_at, pair->gateway_len};
    for (size_t i = 0; i < read->early_pairs.len / sizeof(*early); i++)
        if (early[i].user == pair->user &&
            slice_equal(
                (struct slice){read->texts.data + early[i].gateway_at, early[i].gateway_len},
                gateway))
            return true;
    return false;
}

static bool was_parked_early(const struct routes_read *read, size_t user)
{
    const size_t *early = (const size_t *)(const void *)read->early_parked.data;
    for (size_t i = 0; i < read->early_parked.len / sizeof(*early); i++)
        if (early[i] == user)
            return true;
    return false;
}

/* Keeps at the end of `pairs` and `parked` only what was not told early. */
static void remove_early_routes(struct routes_read *read)
{
    size_t kept = read->repeated_pairs;
    for (size_t at = kept; at < read->pairs.len; at += sizeof(struct route_pair)) {
        if (was_route_early(read, (struct route_pair *)(void *)(read->pairs.data + at)))
            continue;
        memmove(read->pairs.data + kept, read->pairs.data + at, sizeof(struct route_pair));
        kept += sizeof(struct route_pair);
    }
    read->pairs.len = kept;
    kept = read->repeated_parked;
    for (size_t at = kept; at < read->parked.len; at += sizeof(size_t)) {
        if (was_parked_early(read, *(size_t *)(void *)(read->parked.data + at)))
            continue;
        memmove(read->parked.data + kept, read->parked.data + at, sizeof(size_t));
        kept += sizeof(size_t);
    }
    read->parked.len = kept;
}

/* Makes what was read after all, less what was told early. Returns false when out of memory. */
static bool make_added_routes(struct routes_read *read, struct routes_result *added)
{
    *added = (struct routes_result){0};
    if (!read->was_early)
        return true;
    if (read->is_repeated) {
        remove_early_routes(read);
        *added = routes_result_of(read);
        added->pairs += read->repeated_pairs / sizeof(*added->pairs);
        added->pair_count -= read->repeated_pairs / sizeof(*added->pairs);
        added->parked += read->repeated_parked / sizeof(*added->parked);
        added->parked_count -= read->repeated_parked / sizeof(*added->parked);
    }
    return make_routes_result(read, added);
}

static void report_routes(struct routes_read *read)
{
    struct routes_result all = routes_result_of(read), added;
    bool is_made = make_routes_result(read, &all);
    is_made = make_added_routes(read, &added) && is_made;
    all.found.added = read->was_early ? &added.found : NULL;
    read->done(read->arg, is_made ? STATE_OK : STATE_UNAVAILABLE, is_made ? &all.found : NULL);
    free_routes_result(&all);
    free_routes_result(&added);
}

/* Tells the cached answers, of all users, before they are confirmed. */
static void tell_routes_early(struct routes_read *read, state_routes_remembered early)
{
    struct routes_result all = routes_result_of(read);
    read->was_early = make_routes_result(read, &all);
    if (read->was_early)
        early(read->arg, &all.found);
    free_routes_result(&all);
}

/* A server that accepts no writes can still be read. But its leases expire because nobody can renew them, so its replies
 * are not used. */
static void complete_routes_read(struct routes_read *read)
{
    struct redis_state *state = read->state;
    list_remove(&read->place);
    state->late_routes_reads -= !read->was_early;
    if (read->failed || !is_routes_read_whole(read) || !redis_available(state->options.client))
        read->done(read->arg, STATE_UNAVAILABLE, NULL);
    else
        report_routes(read);
    buffer_free(&read->pairs);
    buffer_free(&read->texts);
    buffer_free(&read->parked);
    buffer_free(&read->suspects);
    buffer_free(&read->early_pairs);
    buffer_free(&read->early_parked);
    free(read->queries);
    free(read);
    redis_state_end(state);
}

/* Copies the users. Returns NULL when out of memory. */
static struct routes_read *make_routes_read(struct redis_state *state, const struct slice *users,
                                            size_t count)
{
    size_t wait_max = redis_master_count(state->options.client);
    if (wait_max > count)
        wait_max = count;
    size_t per_user = sizeof(struct slice) + sizeof(bool);
    struct routes_read *read = malloc(sizeof(*read) + wait_max * sizeof(struct route_wait) +
                                      count * per_user + id_list_bytes(users, count));
    if (!read)
        return NULL;
    *read =
        (struct routes_read){.state = state, .count = count, .waiting = 1, .wait_max = wait_max};
    read->waits = (struct route_wait *)(read + 1);
    read->users = (struct slice *)(read->waits + wait_max);
    read->is_settled = (bool *)(read->users + count);
    memset(read->is_settled, 0, count * sizeof(*read->is_settled));
    id_list_pack(read->users, users, count, (char *)(read->is_settled + count));
    list_append(&state->routes_reads, &read->place);
    redis_state_begin(state);
    return read;
}

void redis_state_routes_early(struct state_store *store, const struct slice *user_ids, size_t count,
                              state_routes_remembered early, state_routes_done done, void *arg)
{
    struct redis_state *state = redis_state_of(store);
    struct routes_read *read = make_routes_read(state, user_ids, count);
    if (!read) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    read->done = done;
    read->arg = arg;
    bool is_cached = take_cached_routes(read) && is_routes_read_whole(read);
    if (early && is_cached && count <= STATE_ROUTES_EARLY_MAX && !state->late_routes_reads &&
        redis_available(state->options.client))
        tell_routes_early(read, early);
    state->late_routes_reads += !read->was_early;
    send_route_queries(read);
    await_cached_routes(read);
    end_routes_command(read);
}

void redis_state_routes(struct state_store *store, const struct slice *user_ids, size_t count,
                        state_routes_done done, void *arg)
{
    redis_state_routes_early(store, user_ids, count, NULL, done, arg);
}

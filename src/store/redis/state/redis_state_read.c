#include "base/id_list.h"
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <stdlib.h>

/* ---- many users at a time ---- */

struct users_read;

/* One script: `count` users from `first` on. */
struct users_read_part {
    struct users_read *read;
    size_t first;
    size_t count;
};

/* One operation for any number of users. A script's reply has one item for each of its users, which `parse` reads. */
struct users_read {
    struct redis_state *state;
    enum redis_state_script script;
    bool (*parse)(struct users_read *read, size_t user, const struct resp_value *item);
    void (*finish)(struct users_read *read, enum state_status status);
    state_presences_done on_presences;
    state_routes_done on_routes;
    void *arg;
    struct slice *users;
    struct users_read_part *parts;
    size_t count;
    size_t waiting; /* parts, and one while they are being sent */
    bool failed;
    struct presence *presences;
    struct buffer pairs; /* for routes: one struct route_pair for each user on each gateway */
    struct buffer texts;
    struct buffer parked; /* for routes: struct slice, the users who have a parked session */
};

static void free_users_read(struct users_read *read)
{
    struct redis_state *state = read->state;
    buffer_free(&read->pairs);
    buffer_free(&read->texts);
    buffer_free(&read->parked);
    free(read->presences);
    free(read);
    redis_state_end(state);
}

static void end_users_read_part(struct users_read *read)
{
    if (--read->waiting)
        return;
    read->finish(read, read->failed ? STATE_UNAVAILABLE : STATE_OK);
    free_users_read(read);
}

/* A server that accepts no writes can still be read. But its leases expire because nobody can renew them, so its replies
 * are not used. */
static void on_users_read_part(void *arg, const struct resp_value *reply)
{
    struct users_read_part *part = arg;
    struct users_read *read = part->read;
    bool ok = redis_state_reply_is(reply, RESP_ARRAY) && reply->count == part->count &&
              redis_available(read->state->options.client);
    for (size_t i = 0; ok && i < part->count; i++)
        ok = read->parse(read, part->first + i, &reply->items[i]);
    read->failed |= !ok;
    end_users_read_part(read);
}

/* Copies the users. Returns NULL when out of memory. */
static struct users_read *make_users_read(struct redis_state *state, const struct slice *users,
                                          size_t count)
{
    size_t per_user = sizeof(struct slice) + sizeof(struct users_read_part);
    struct users_read *read =
        malloc(sizeof(*read) + count * per_user + id_list_bytes(users, count));
    if (!read)
        return NULL;
    *read = (struct users_read){.state = state, .count = count, .waiting = 1};
    read->users = (struct slice *)(read + 1);
    read->parts = (struct users_read_part *)(read->users + count);
    id_list_pack(read->users, users, count, (char *)(read->parts + count));
    redis_state_begin(state);
    return read;
}

/* On a cluster each user has a script of its own. */
static void send_users_read(struct users_read *read)
{
    struct redis_state *state = read->state;
    size_t step = state->keys.cluster ? 1 : REDIS_STATE_USERS_PER_SCRIPT;
    char name[REDIS_KEY_BYTES_MAX];
    for (size_t first = 0; first < read->count; first += step) {
        size_t count = read->count - first < step ? read->count - first : step;
        struct slice only = redis_state_user_name(state, name, read->users[first]);
        read->parts[first] = (struct users_read_part){read, first, count};
        read->waiting++;
        redis_state_run(state, read->script, read->users[first],
                        state->keys.cluster ? &only : read->users + first, count,
                        on_users_read_part, &read->parts[first]);
    }
    end_users_read_part(read);
}

/* ---- presence ---- */

static bool parse_user_presence(struct users_read *read, size_t user, const struct resp_value *item)
{
    enum { ITEMS = 4 };
    bool ok = item->type == RESP_ARRAY && item->count == ITEMS &&
              redis_state_parse_presence(read->state, item->items, &read->presences[user]);
    read->presences[user].user_id = read->users[user];
    return ok;
}

static void finish_presences_read(struct users_read *read, enum state_status status)
{
    read->on_presences(read->arg, status, status == STATE_OK ? read->presences : NULL,
                       status == STATE_OK ? read->count : 0);
}

void redis_state_read(struct state_store *store, const struct slice *user_ids, size_t count,
                      state_presences_done done, void *arg)
{
    struct users_read *read = make_users_read(redis_state_of(store), user_ids, count);
    struct presence *presences = calloc(count ? count : 1, sizeof(*presences));
    if (!read || !presences) {
        free(presences);
        if (read)
            free_users_read(read);
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    read->script = REDIS_STATE_READ;
    read->parse = parse_user_presence;
    read->finish = finish_presences_read;
    read->on_presences = done;
    read->arg = arg;
    read->presences = presences;
    send_users_read(read);
}

/* ---- routes ---- */

/* One user on one gateway; the gateway's id is in `texts`. */
struct route_pair {
    size_t gateway_at;
    size_t gateway_len;
    size_t user;
};

/* An empty name means a parked session. A name that is too long for a gateway is ignored. */
static bool parse_user_routes(struct users_read *read, size_t user, const struct resp_value *item)
{
    if (item->type != RESP_ARRAY)
        return false;
    for (size_t i = 0; i < item->count; i++) {
        struct slice gateway = item->items[i].text;
        if (gateway.len == 0) {
            buffer_append(&read->parked, &read->users[user], sizeof(struct slice));
        } else if (gateway.len <= GATEWAY_ID_BYTES_MAX) {
            struct route_pair pair = {read->texts.len, gateway.len, user};
            buffer_append_slice(&read->texts, gateway);
            buffer_append(&read->pairs, &pair, sizeof(pair));
        }
    }
    return !read->texts.failed && !read->pairs.failed && !read->parked.failed;
}

/* Finds the route to the pair's gateway, or adds it. */
static struct state_route *find_or_add_route(const struct users_read *read,
                                             struct state_route *routes, size_t *count,
                                             const struct route_pair *pair)
{
    struct slice gateway = {read->texts.data + pair->gateway_at, pair->gateway_len};
    for (size_t i = 0; i < *count; i++)
        if (slice_equal(routes[i].gateway_id, gateway))
            return &routes[i];
    routes[*count] = (struct state_route){.gateway_id = gateway};
    return &routes[(*count)++];
}

/* Groups the users by gateway: counts the users of each gateway, then places them. */
static void finish_routes_read(struct users_read *read, enum state_status status)
{
    const struct route_pair *pairs = (const struct route_pair *)(void *)read->pairs.data;
    size_t pair_count = read->pairs.len / sizeof(*pairs), count = 0;
    struct state_route *routes = calloc(pair_count + 1, sizeof(*routes));
    struct slice *users = calloc(pair_count + 1, sizeof(*users));
    if (!routes || !users || status != STATE_OK) {
        read->on_routes(read->arg, STATE_UNAVAILABLE, NULL);
        goto end;
    }
    for (size_t i = 0; i < pair_count; i++)
        find_or_add_route(read, routes, &count, &pairs[i])->count++;
    for (size_t i = 0, at = 0; i < count; i++) {
        routes[i].users = users + at;
        at += routes[i].count;
        routes[i].count = 0;
    }
    for (size_t i = 0; i < pair_count; i++) {
        struct state_route *route = find_or_add_route(read, routes, &count, &pairs[i]);
        users[(size_t)(route->users - users) + route->count++] = read->users[pairs[i].user];
    }
    read->on_routes(read->arg, STATE_OK,
                    &(struct state_routes){
                        .items = routes,
                        .count = count,
                        .parked = (const struct slice *)(void *)read->parked.data,
                        .parked_count = read->parked.len / sizeof(struct slice),
                    });
end:
    free(routes);
    free(users);
}

void redis_state_routes(struct state_store *store, const struct slice *user_ids, size_t count,
                        state_routes_done done, void *arg)
{
    struct users_read *read = make_users_read(redis_state_of(store), user_ids, count);
    if (!read) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    read->script = REDIS_STATE_ROUTES;
    read->parse = parse_user_routes;
    read->finish = finish_routes_read;
    read->on_routes = done;
    read->arg = arg;
    send_users_read(read);
}

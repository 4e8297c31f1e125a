#include "base/id_list.h"
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <stdlib.h>

/* ---- of many users at a time ---- */

struct look;

/* One script: users from `first` on. */
struct look_part {
    struct look *look;
    size_t first;
    size_t count;
};

/* One call for any number of users. Scripts answer with one item for each of theirs, which `take` reads. */
struct look {
    struct redis_state *state;
    enum redis_state_script script;
    bool (*take)(struct look *look, size_t user, const struct resp_value *item);
    void (*finish)(struct look *look, enum state_status status);
    state_presences_done done_presences;
    state_routes_done done_routes;
    void *arg;
    struct slice *users;
    struct look_part *parts;
    size_t count;
    size_t waiting; /* parts, and one more while they are being sent */
    bool failed;
    struct presence *presences;
    struct buffer pairs; /* of routes: struct look_pair, one for each user on each gateway */
    struct buffer texts;
    struct buffer parked; /* of routes: struct slice, the users who have a parked session */
};

static void free_look(struct look *look)
{
    struct redis_state *state = look->state;
    buffer_free(&look->pairs);
    buffer_free(&look->texts);
    buffer_free(&look->parked);
    free(look->presences);
    free(look);
    redis_state_end(state);
}

static void part_done(struct look *look)
{
    if (--look->waiting)
        return;
    look->finish(look, look->failed ? STATE_UNAVAILABLE : STATE_OK);
    free_look(look);
}

/* A server that takes no writes can still be read, but what it holds runs out unrenewed: that is no answer. */
static void answered(void *arg, const struct resp_value *reply)
{
    struct look_part *part = arg;
    struct look *look = part->look;
    bool told = redis_state_is(reply, RESP_ARRAY) && reply->count == part->count &&
                redis_available(look->state->options.client);
    for (size_t i = 0; told && i < part->count; i++)
        told = look->take(look, part->first + i, &reply->items[i]);
    look->failed |= !told;
    part_done(look);
}

static void send_part(struct look *look, size_t first)
{
    struct redis_state *state = look->state;
    size_t max = state->keys.cluster ? 1 : REDIS_STATE_USERS_PER_SCRIPT;
    size_t count = look->count - first < max ? look->count - first : max;
    char name[REDIS_KEY_BYTES_MAX];
    struct slice only = redis_state_name(state, name, look->users[first]);
    look->parts[first] = (struct look_part){look, first, count};
    look->waiting++;
    redis_state_run(state, look->script, look->users[first],
                    state->keys.cluster ? &only : look->users + first, count, answered,
                    &look->parts[first]);
}

/* With copies of the users. NULL when memory is short. */
static struct look *make_look(struct redis_state *state, const struct slice *users, size_t count)
{
    size_t per_user = sizeof(struct slice) + sizeof(struct look_part);
    struct look *look = malloc(sizeof(*look) + count * per_user + id_list_bytes(users, count));
    if (!look)
        return NULL;
    *look = (struct look){.state = state, .count = count, .waiting = 1};
    look->users = (struct slice *)(look + 1);
    look->parts = (struct look_part *)(look->users + count);
    id_list_pack(look->users, users, count, (char *)(look->parts + count));
    redis_state_begin(state);
    return look;
}

static void send_all(struct look *look)
{
    size_t step = look->state->keys.cluster ? 1 : REDIS_STATE_USERS_PER_SCRIPT;
    for (size_t first = 0; first < look->count; first += step)
        send_part(look, first);
    part_done(look);
}

/* ---- presence ---- */

static bool take_presence(struct look *look, size_t user, const struct resp_value *item)
{
    enum { ITEMS = 4 };
    bool read = item->type == RESP_ARRAY && item->count == ITEMS &&
                redis_state_read_presence(look->state, item->items, &look->presences[user]);
    look->presences[user].user_id = look->users[user];
    return read;
}

static void finish_presences(struct look *look, enum state_status status)
{
    look->done_presences(look->arg, status, status == STATE_OK ? look->presences : NULL,
                         status == STATE_OK ? look->count : 0);
}

void redis_state_read(struct state_store *store, const struct slice *user_ids, size_t count,
                      state_presences_done done, void *arg)
{
    struct look *look = make_look(redis_state_of(store), user_ids, count);
    struct presence *presences = calloc(count ? count : 1, sizeof(*presences));
    if (!look || !presences) {
        free(presences);
        if (look)
            free_look(look);
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    look->script = REDIS_STATE_READ;
    look->take = take_presence;
    look->finish = finish_presences;
    look->done_presences = done;
    look->arg = arg;
    look->presences = presences;
    send_all(look);
}

/* ---- routes ---- */

/* One user on one gateway; the gateway's id is in the look's texts. */
struct look_pair {
    size_t gateway_at;
    size_t gateway_len;
    size_t user;
};

/* A name that no gateway can have leads nowhere. */
static void take_gateway(struct look *look, size_t user, struct slice gateway)
{
    struct look_pair pair = {look->texts.len, gateway.len, user};
    if (gateway.len > GATEWAY_ID_BYTES_MAX)
        return;
    buffer_append_slice(&look->texts, gateway);
    buffer_append(&look->pairs, &pair, sizeof(pair));
}

static bool take_route(struct look *look, size_t user, const struct resp_value *item)
{
    if (item->type != RESP_ARRAY)
        return false;
    for (size_t i = 0; i < item->count; i++) {
        struct slice gateway = item->items[i].text;
        if (gateway.len == 0) /* no gateway's name: a session is parked */
            buffer_append(&look->parked, &look->users[user], sizeof(struct slice));
        else
            take_gateway(look, user, gateway);
    }
    return !look->texts.failed && !look->pairs.failed && !look->parked.failed;
}

static struct slice gateway_of(const struct look *look, const struct look_pair *pair)
{
    return (struct slice){look->texts.data + pair->gateway_at, pair->gateway_len};
}

/* The route of a gateway, which is made when it is the first on it. */
static struct state_route *route_to(struct state_route *routes, size_t *count, struct slice gateway)
{
    for (size_t i = 0; i < *count; i++)
        if (slice_equal(routes[i].gateway_id, gateway))
            return &routes[i];
    routes[*count] = (struct state_route){.gateway_id = gateway};
    return &routes[(*count)++];
}

/* Sorts the pairs by gateway: counts, then places. */
static void finish_routes(struct look *look, enum state_status status)
{
    const struct look_pair *pairs = (const struct look_pair *)(void *)look->pairs.data;
    size_t pair_count = look->pairs.len / sizeof(*pairs), count = 0;
    struct state_route *routes = calloc(pair_count + 1, sizeof(*routes));
    struct slice *users = calloc(pair_count + 1, sizeof(*users));
    if (!routes || !users || status != STATE_OK) {
        look->done_routes(look->arg, STATE_UNAVAILABLE, NULL);
        goto end;
    }
    for (size_t i = 0; i < pair_count; i++)
        route_to(routes, &count, gateway_of(look, &pairs[i]))->count++;
    for (size_t i = 0, at = 0; i < count; i++) {
        routes[i].users = users + at;
        at += routes[i].count;
        routes[i].count = 0;
    }
    for (size_t i = 0; i < pair_count; i++) {
        struct state_route *route = route_to(routes, &count, gateway_of(look, &pairs[i]));
        users[(size_t)(route->users - users) + route->count++] = look->users[pairs[i].user];
    }
    look->done_routes(look->arg, STATE_OK,
                      &(struct state_routes){
                          .items = routes,
                          .count = count,
                          .parked = (const struct slice *)(void *)look->parked.data,
                          .parked_count = look->parked.len / sizeof(struct slice),
                      });
end:
    free(routes);
    free(users);
}

void redis_state_routes(struct state_store *store, const struct slice *user_ids, size_t count,
                        state_routes_done done, void *arg)
{
    struct look *look = make_look(redis_state_of(store), user_ids, count);
    if (!look) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    look->script = REDIS_STATE_ROUTES;
    look->take = take_route;
    look->finish = finish_routes;
    look->done_routes = done;
    look->arg = arg;
    send_all(look);
}

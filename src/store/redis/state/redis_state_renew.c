/*
 * Renewals go to Redis in scripts of many users. On a cluster one script serves the users of all slots that one server has
 * (renew_slots.lua). It leaves out the users of a slot that has moved or is moving; they are sent once more, slot by slot, in
 * scripts that follow the slot.
 */
#include "base/id_list.h"
#include "store/redis/state/redis_state_internal.h"

#include <assert.h>
#include <stdlib.h>

enum {
    LEASES_PER_SCRIPT = 256,
    ARGUMENTS_PER_USER =
        3, /* the name, on a cluster the end of its set's names, the number of leases */
};
static_assert(1 + ARGUMENTS_PER_USER * REDIS_STATE_USERS_PER_SCRIPT + LEASES_PER_SCRIPT <=
                  REDIS_STATE_ARGUMENTS_MAX,
              "the arguments of one renewal script fit");

struct renewal_batch;

struct renewal_place {
    struct lease_renewal *renewal;
    size_t server; /* redis_server_of() */
    unsigned shard;
    bool is_left_out; /* its slot must be followed */
};

/* One script: some of the batch's leases, in the order of their servers, shards and users. */
struct renewal_part {
    struct renewal_batch *batch;
    size_t first;
    size_t count;
};

/* One operation. The renewals are copied, because the caller's last only until the operation returns. */
struct renewal_batch {
    struct redis_state *state;
    state_renewals_done done;
    void *arg;
    struct lease_renewal *renewals;
    struct renewal_place *places; /* by server, shard and user */
    struct renewal_part *parts;
    size_t count;
    size_t waiting; /* parts, and one while they are being sent */
    size_t answered;
    bool is_adding;  /* connections are added to the gateway's set beside the scripts */
    bool unanswered; /* a part may have renewed its leases although no answer came */
};

/* ---- what is updated beside the scripts: on a cluster, and while the gateway's set is filled anew ---- */

static void write_renewal_conn(char out[ULID_TEXT_LEN], const struct lease_renewal *renewal,
                               struct slice *slice)
{
    ulid_write(out, &renewal->conn_id);
    *slice = (struct slice){out, ULID_TEXT_LEN};
}

static void add_gateway_connections(struct redis_state *state, const struct slice *conns,
                                    size_t count)
{
    char key[REDIS_KEY_BYTES_MAX];
    struct slice arguments[1 + LEASES_PER_SCRIPT] = {state->first_arguments[0]};
    memcpy(arguments + 1, conns, count * sizeof(*conns));
    redis_state_eval(
        state, REDIS_STATE_GATEWAY_CONNECTIONS,
        REDIS_ARGS(redis_key_plain(key, "server_connections:", redis_state_gateway_id(state))),
        (struct redis_args){arguments, 1 + count}, NULL, NULL);
}

static bool is_refilling(const struct redis_state *state)
{
    return state->options.loop->clock.now_ms < state->refilled_until_ms;
}

/* The key of an owner lives much longer than a lease, so it is written only now and then, and when a server may have lost
 * it. */
static bool renewal_writes_owner(const struct redis_state *state,
                                 const struct lease_renewal *renewal)
{
    int64_t age_ms = state->options.loop->clock.wall_ms - ulid_time_ms(&renewal->conn_id);
    return state->keys.cluster && (is_refilling(state) || age_ms % (REDIS_STATE_OWNER_MS / 2) <
                                                              state->options.lease_window_ms);
}

/* Runs before the scripts are sent. So when a lease is closed while they are pending, its connection is removed after it
 * was added here, on the same key, and never before. */
static void add_renewed_connections(const struct renewal_batch *batch)
{
    char texts[LEASES_PER_SCRIPT][ULID_TEXT_LEN];
    struct slice conns[LEASES_PER_SCRIPT];
    struct redis_state *state = batch->state;
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct lease_renewal *renewal = &batch->renewals[i];
        write_renewal_conn(texts[count], renewal, &conns[count]);
        if (renewal_writes_owner(state, renewal))
            redis_state_write_owner(state, conns[count], renewal->user_id);
        if (++count < LEASES_PER_SCRIPT)
            continue;
        add_gateway_connections(state, conns, count);
        count = 0;
    }
    if (count)
        add_gateway_connections(state, conns, count);
}

/* ---- replies ---- */

/* Runs once for each part; the last run completes the operation. Where connections were added, it also removes those of
 * leases that were closed or reaped before they were renewed; a gateway that still has such a connection opens its lease
 * again. */
static void end_renewal_part(struct renewal_batch *batch)
{
    if (--batch->waiting)
        return;
    struct redis_state *state = batch->state;
    if (batch->is_adding && batch->answered) {
        char text[ULID_TEXT_LEN];
        struct slice conn;
        for (size_t i = 0; i < batch->count; i++) {
            if (!batch->renewals[i].lost)
                continue;
            write_renewal_conn(text, &batch->renewals[i], &conn);
            redis_state_remove_connection(state, redis_state_gateway_id(state), conn);
        }
    }
    enum state_status failure = batch->unanswered ? STATE_UNKNOWN : STATE_UNAVAILABLE;
    batch->done(batch->arg, batch->answered ? STATE_OK : failure, batch->renewals, batch->count);
    free(batch);
    redis_state_end(state);
}

static void follow_left_out_renewals(struct renewal_batch *batch, size_t first, size_t count);

static void on_renew_script_reply(void *arg, const struct resp_value *reply)
{
    struct renewal_part part = *(struct renewal_part *)arg; /* whose memory is used again */
    struct renewal_batch *batch = part.batch;
    bool ok = redis_state_reply_is(reply, RESP_TEXT) && reply->text.len == part.count;
    bool has_left_out = false;
    for (size_t i = 0; i < part.count; i++) {
        struct renewal_place *place = &batch->places[part.first + i];
        place->is_left_out = ok && reply->text.data[i] == '?';
        place->renewal->failed = !ok || place->is_left_out;
        place->renewal->lost = ok && reply->text.data[i] == '0';
        has_left_out |= place->is_left_out;
    }
    batch->answered += ok;
    batch->unanswered |= !reply;
    if (has_left_out)
        follow_left_out_renewals(batch, part.first, part.count);
    end_renewal_part(batch);
}

/* ---- scripts ---- */

/* The arguments of one script, and the memory that they point to. */
struct renewal_arguments {
    struct slice items[REDIS_STATE_ARGUMENTS_MAX];
    size_t count;
    size_t users;
    size_t leases;
    char names[REDIS_STATE_USERS_PER_SCRIPT][REDIS_KEY_BYTES_MAX];
    char suffixes[REDIS_STATE_USERS_PER_SCRIPT][REDIS_STATE_SUFFIX_LEN];
    char counts[REDIS_STATE_USERS_PER_SCRIPT][REDIS_STATE_NUMBER_MAX];
    char conns[LEASES_PER_SCRIPT][ULID_TEXT_LEN];
};

/* Adds as many leases of one user as fit, beginning at `from`. Returns the index of the next lease. */
static size_t add_renewed_user(struct renewal_arguments *out, const struct renewal_batch *batch,
                               size_t from, bool is_across_slots)
{
    const struct redis_state *state = batch->state;
    struct slice user = batch->places[from].renewal->user_id;
    size_t next = from;
    out->items[out->count++] = redis_state_user_name(state, out->names[out->users], user);
    if (is_across_slots)
        out->items[out->count++] =
            redis_state_shard_suffix(out->suffixes[out->users], batch->places[from].shard);
    size_t at = out->count++;
    while (next < batch->count && out->leases < LEASES_PER_SCRIPT &&
           slice_equal(batch->places[next].renewal->user_id, user))
        write_renewal_conn(out->conns[out->leases++], batch->places[next++].renewal,
                           &out->items[out->count++]);
    out->items[at] = redis_state_number(out->counts[out->users++], (int64_t)(next - from));
    return next;
}

/* Whether these leases fit into one script. */
static bool renewals_go_together(const struct renewal_place *one, const struct renewal_place *other,
                                 bool is_across_slots)
{
    return is_across_slots ? one->server == other->server
                           : one->shard == other->shard && other->is_left_out == one->is_left_out;
}

/* Sends one script for the leases from `from` to `end` at most. Returns the index of the next lease. */
static size_t send_renewal_part(struct renewal_batch *batch, struct renewal_arguments *out,
                                size_t from, size_t end, bool is_across_slots)
{
    struct redis_state *state = batch->state;
    const struct renewal_place *first = &batch->places[from];
    size_t next = from;
    out->items[0] = redis_state_gateway_id(state);
    out->count = 1;
    out->users = out->leases = 0;
    while (next < end && renewals_go_together(first, &batch->places[next], is_across_slots) &&
           out->users < REDIS_STATE_USERS_PER_SCRIPT && out->leases < LEASES_PER_SCRIPT) {
        if (state->keys.cluster)
            redis_state_announce_shard(state, batch->places[next].shard);
        next = add_renewed_user(out, batch, next, is_across_slots);
    }
    struct renewal_part *part = &batch->parts[from];
    *part = (struct renewal_part){batch, from, next - from};
    batch->waiting++;
    redis_state_run(state, is_across_slots ? REDIS_STATE_RENEW_SLOTS : REDIS_STATE_RENEW,
                    first->renewal->user_id, out->items, out->count, on_renew_script_reply, part);
    return next;
}

/* Sends the leases that a script has left out, slot by slot. */
static void follow_left_out_renewals(struct renewal_batch *batch, size_t first, size_t count)
{
    struct renewal_arguments *out = malloc(sizeof(*out));
    for (size_t next = first; out && next < first + count;) {
        if (batch->places[next].is_left_out)
            next = send_renewal_part(batch, out, next, first + count, false);
        else
            next++;
    }
    free(out);
}

/* ---- the port ---- */

static int compare_renewal_places(const void *left, const void *right)
{
    const struct renewal_place *a = left, *b = right;
    if (a->server != b->server)
        return a->server < b->server ? -1 : 1;
    if (a->shard != b->shard)
        return a->shard < b->shard ? -1 : 1;
    return id_list_compare(a->renewal->user_id, b->renewal->user_id);
}

/* Makes everything in one allocation. Returns NULL when out of memory. */
static struct renewal_batch *make_renewal_batch(const struct redis_state *state,
                                                const struct lease_renewal *renewals, size_t count)
{
    size_t bytes = sizeof(struct renewal_batch);
    for (size_t i = 0; i < count; i++)
        bytes += renewals[i].user_id.len;
    bytes += count * (sizeof(struct lease_renewal) + sizeof(struct renewal_place) +
                      sizeof(struct renewal_part));
    struct renewal_batch *batch = malloc(bytes);
    if (!batch)
        return NULL;
    *batch =
        (struct renewal_batch){.renewals = (struct lease_renewal *)(batch + 1), .count = count};
    batch->parts = (struct renewal_part *)(batch->renewals + count);
    batch->places = (struct renewal_place *)(batch->parts + count);
    char *text = (char *)(batch->places + count);
    for (size_t i = 0; i < count; i++) {
        batch->renewals[i] = renewals[i];
        batch->renewals[i].lost = batch->renewals[i].failed = false;
        batch->renewals[i].user_id.data = text;
        memcpy(text, renewals[i].user_id.data, renewals[i].user_id.len);
        batch->places[i] = (struct renewal_place){.renewal = &batch->renewals[i]};
        if (state->keys.cluster) {
            batch->places[i].shard = redis_state_shard(batch->renewals[i].user_id);
            batch->places[i].server =
                redis_server_of(state->options.client, (uint16_t)batch->places[i].shard);
        }
        text += renewals[i].user_id.len;
    }
    qsort(batch->places, count, sizeof(struct renewal_place), compare_renewal_places);
    return batch;
}

void redis_state_renew(struct state_store *store, struct lease_renewal *renewals, size_t count,
                       state_renewals_done done, void *arg)
{
    struct redis_state *state = redis_state_of(store);
    struct renewal_arguments *out = malloc(sizeof(*out));
    struct renewal_batch *batch =
        count && redis_state_may_write(state) ? make_renewal_batch(state, renewals, count) : NULL;
    if (!batch || !out) {
        for (size_t i = 0; i < count; i++) {
            renewals[i].lost = false;
            renewals[i].failed = true;
        }
        free(batch);
        free(out);
        done(arg, count ? STATE_UNAVAILABLE : STATE_OK, renewals, count);
        return;
    }
    batch->state = state;
    batch->is_adding =
        state->options.gateway_id.len && (state->keys.cluster || is_refilling(state));
    if (batch->is_adding)
        add_renewed_connections(batch);
    batch->done = done;
    batch->arg = arg;
    batch->waiting = 1;
    redis_state_begin(state);
    for (size_t next = 0; next < count;)
        next = send_renewal_part(batch, out, next, count, state->keys.cluster);
    free(out);
    end_renewal_part(batch);
}

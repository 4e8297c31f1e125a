#include "store/redis/state/redis_state_internal.h"

#include <assert.h>
#include <stdlib.h>

enum {
    LEASES_PER_SCRIPT = 256,
    WORDS_PER_USER = 2, /* its name, and how many leases */
};
static_assert(1 + WORDS_PER_USER * REDIS_STATE_USERS_PER_SCRIPT + LEASES_PER_SCRIPT <=
                  REDIS_STATE_ARGUMENTS_MAX,
              "a script has room for what it renews");

struct renewal_batch;

/* One script: some of the batch, in the order of their users. */
struct renewal_part {
    struct renewal_batch *batch;
    size_t first;
    size_t count;
};

/* One call. What it was given lasts only as long as the call, so it is copied. */
struct renewal_batch {
    struct redis_state *state;
    state_renewals_done done;
    void *arg;
    struct lease_renewal *renewals;
    struct lease_renewal **by_user;
    struct renewal_part *parts;
    size_t count;
    size_t waiting; /* parts, and one more while they are being sent */
    size_t answered;
    bool unanswered; /* some part, which may have renewed its leases all the same */
};

/* ---- what a cluster keeps beside the scripts ---- */

static void ulid_slice(char out[ULID_TEXT_LEN], const struct lease_renewal *renewal,
                       struct slice *slice)
{
    ulid_write(out, &renewal->conn_id);
    *slice = (struct slice){out, ULID_TEXT_LEN};
}

static void index_shard(struct renewal_batch *batch, unsigned shard)
{
    enum { WORDS_PER_MEMBER = 3 };
    char index[REDIS_KEY_BYTES_MAX], reaper[REDIS_KEY_BYTES_MAX];
    char members[LEASES_PER_SCRIPT][REDIS_STATE_MEMBER_MAX], conn[ULID_TEXT_LEN];
    struct slice words[1 + WORDS_PER_MEMBER * LEASES_PER_SCRIPT] = {SLICE("")};
    struct redis_state *state = batch->state;
    const struct redis_args keys =
        REDIS_ARGS(redis_state_shard_key(index, "presence:v_heartbeat", shard),
                   redis_state_shard_key(reaper, "presence:reaper", shard));
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct lease_renewal *renewal = &batch->renewals[i];
        struct slice id, *at = words + 1 + WORDS_PER_MEMBER * count;
        if (renewal->lost || renewal->failed || redis_state_shard(renewal->user_id) != shard)
            continue;
        ulid_slice(conn, renewal, &id);
        at[0] = redis_state_member(members[count++], id, renewal->user_id);
        at[1] = state->first_arguments[0];
        at[2] = SLICE("");
        if (count < LEASES_PER_SCRIPT)
            continue;
        redis_state_eval(state, REDIS_STATE_LEASE_INDEX, keys,
                         (struct redis_args){words, 1 + WORDS_PER_MEMBER * count}, NULL, NULL);
        count = 0;
    }
    if (count)
        redis_state_eval(state, REDIS_STATE_LEASE_INDEX, keys,
                         (struct redis_args){words, 1 + WORDS_PER_MEMBER * count}, NULL, NULL);
}

static void send_held(struct redis_state *state, const struct slice *conns, size_t count)
{
    char key[REDIS_KEY_BYTES_MAX];
    struct slice words[1 + LEASES_PER_SCRIPT] = {state->first_arguments[0]};
    memcpy(words + 1, conns, count * sizeof(*conns));
    redis_state_eval(
        state, REDIS_STATE_GATEWAY_CONNECTIONS,
        REDIS_ARGS(redis_key_plain(key, "server_connections:", redis_state_gateway_id(state))),
        (struct redis_args){words, 1 + count}, NULL, NULL);
}

/* An owner's key lasts much longer than a lease, so it is told again only now and then. */
static bool owner_is_due(const struct redis_state *state, const struct lease_renewal *renewal)
{
    int64_t age_ms = state->options.loop->clock.wall_ms - ulid_time_ms(&renewal->conn_id);
    return age_ms % (REDIS_STATE_OWNER_MS / 2) < state->options.lease_window_ms;
}

/* Before the scripts are sent: a lease that is closed while they are under way is let go after it was held here,
 * on the same way, and never before. */
static void hold_all(const struct renewal_batch *batch)
{
    char texts[LEASES_PER_SCRIPT][ULID_TEXT_LEN];
    struct slice conns[LEASES_PER_SCRIPT];
    struct redis_state *state = batch->state;
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct lease_renewal *renewal = &batch->renewals[i];
        ulid_slice(texts[count], renewal, &conns[count]);
        if (owner_is_due(state, renewal))
            redis_state_tell_owner(state, conns[count], renewal->user_id);
        if (++count < LEASES_PER_SCRIPT)
            continue;
        send_held(state, conns, count);
        count = 0;
    }
    if (count)
        send_held(state, conns, count);
}

/* Of what was closed, or reaped, before it was renewed. Who still has it opens it again. */
static void let_lost_go(const struct renewal_batch *batch)
{
    struct redis_state *state = batch->state;
    char text[ULID_TEXT_LEN];
    struct slice conn;
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->renewals[i].lost)
            continue;
        ulid_slice(text, &batch->renewals[i], &conn);
        redis_state_let_go(state, redis_state_gateway_id(state), conn);
    }
}

/* The index follows the scripts: an entry that is late is found by a reaper and looked after. */
static void index_all(struct renewal_batch *batch)
{
    for (unsigned shard = 0; shard < REDIS_STATE_SHARDS; shard++)
        index_shard(batch, shard);
}

/* ---- answers ---- */

static void part_done(struct renewal_batch *batch)
{
    if (--batch->waiting)
        return;
    struct redis_state *state = batch->state;
    if (state->keys.cluster && batch->answered) {
        index_all(batch);
        let_lost_go(batch);
    }
    enum state_status failure = batch->unanswered ? STATE_UNKNOWN : STATE_UNAVAILABLE;
    batch->done(batch->arg, batch->answered ? STATE_OK : failure, batch->renewals, batch->count);
    free(batch);
    redis_state_end(state);
}

static void answered(void *arg, const struct resp_value *reply)
{
    struct renewal_part *part = arg;
    struct renewal_batch *batch = part->batch;
    bool told = redis_state_is(reply, RESP_TEXT) && reply->text.len == part->count;
    for (size_t i = 0; i < part->count; i++) {
        struct lease_renewal *renewal = batch->by_user[part->first + i];
        renewal->failed = !told;
        renewal->lost = told && reply->text.data[i] == '0';
    }
    batch->answered += told;
    batch->unanswered |= !reply;
    part_done(batch);
}

/* ---- scripts ---- */

/* What a script's words point to while it is put together. */
struct renewal_words {
    struct slice words[REDIS_STATE_ARGUMENTS_MAX];
    size_t count;
    size_t users;
    size_t leases;
    char name[REDIS_KEY_BYTES_MAX]; /* on a cluster, where there is one user a script */
    char counts[REDIS_STATE_USERS_PER_SCRIPT][REDIS_STATE_NUMBER_MAX];
    char conns[LEASES_PER_SCRIPT][ULID_TEXT_LEN];
};

/* Adds leases of one user from `from` on, as many as fit; the index of the first that is not in it. */
static size_t add_user(struct renewal_words *out, const struct renewal_batch *batch, size_t from)
{
    const struct redis_state *state = batch->state;
    struct slice user = batch->by_user[from]->user_id;
    size_t at = out->count, next = from;
    out->words[at] = state->keys.cluster ? redis_state_name(state, out->name, user) : user;
    out->count += 2;
    while (next < batch->count && out->leases < LEASES_PER_SCRIPT &&
           slice_equal(batch->by_user[next]->user_id, user))
        ulid_slice(out->conns[out->leases++], batch->by_user[next++], &out->words[out->count++]);
    out->words[at + 1] = redis_state_number(out->counts[out->users++], (int64_t)(next - from));
    return next;
}

/* Sends one script; the index of the first lease that is left. */
static size_t send_part(struct renewal_batch *batch, struct renewal_words *out, size_t from)
{
    struct redis_state *state = batch->state;
    size_t users_max = state->keys.cluster ? 1 : REDIS_STATE_USERS_PER_SCRIPT;
    size_t next = from;
    out->words[0] = redis_state_gateway_id(state);
    out->count = 1;
    out->users = out->leases = 0;
    while (next < batch->count && out->users < users_max && out->leases < LEASES_PER_SCRIPT)
        next = add_user(out, batch, next);
    struct renewal_part *part = &batch->parts[from];
    *part = (struct renewal_part){batch, from, next - from};
    batch->waiting++;
    redis_state_run(state, REDIS_STATE_RENEW, batch->by_user[from]->user_id, out->words, out->count,
                    answered, part);
    return next;
}

/* ---- the call ---- */

static int compare_users(const void *left, const void *right)
{
    const struct lease_renewal *a = *(struct lease_renewal *const *)left;
    const struct lease_renewal *b = *(struct lease_renewal *const *)right;
    size_t len = a->user_id.len < b->user_id.len ? a->user_id.len : b->user_id.len;
    int order = memcmp(a->user_id.data, b->user_id.data, len);
    return order ? order : (a->user_id.len > b->user_id.len) - (a->user_id.len < b->user_id.len);
}

/* One piece of memory for all of it. NULL when there is none. */
static struct renewal_batch *make_batch(const struct lease_renewal *renewals, size_t count)
{
    size_t bytes = sizeof(struct renewal_batch);
    for (size_t i = 0; i < count; i++)
        bytes += renewals[i].user_id.len;
    bytes += count * (sizeof(struct lease_renewal) + sizeof(struct lease_renewal *) +
                      sizeof(struct renewal_part));
    struct renewal_batch *batch = malloc(bytes);
    if (!batch)
        return NULL;
    *batch =
        (struct renewal_batch){.renewals = (struct lease_renewal *)(batch + 1), .count = count};
    batch->parts = (struct renewal_part *)(batch->renewals + count);
    batch->by_user = (struct lease_renewal **)(batch->parts + count);
    char *text = (char *)(batch->by_user + count);
    for (size_t i = 0; i < count; i++) {
        batch->renewals[i] = renewals[i];
        batch->renewals[i].lost = batch->renewals[i].failed = false;
        batch->renewals[i].user_id.data = text;
        batch->by_user[i] = &batch->renewals[i];
        memcpy(text, renewals[i].user_id.data, renewals[i].user_id.len);
        text += renewals[i].user_id.len;
    }
    qsort(batch->by_user, count, sizeof(struct lease_renewal *), compare_users);
    return batch;
}

void redis_state_renew(struct state_store *store, struct lease_renewal *renewals, size_t count,
                       state_renewals_done done, void *arg)
{
    struct redis_state *state = redis_state_of(store);
    struct renewal_words *out = malloc(sizeof(*out));
    struct renewal_batch *batch =
        count && redis_state_may_write(state) ? make_batch(renewals, count) : NULL;
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
    if (state->keys.cluster && state->options.gateway_id.len)
        hold_all(batch);
    batch->done = done;
    batch->arg = arg;
    batch->waiting = 1;
    redis_state_begin(state);
    for (size_t next = 0; next < count;)
        next = send_part(batch, out, next);
    free(out);
    part_done(batch);
}

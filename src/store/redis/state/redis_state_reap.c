#include "log/log.h"
#include "store/redis/state/redis_state_internal.h"

#include <stdlib.h>

enum {
    REAP_MAX = 256,       /* in one pass, even if the caller allows more */
    REAP_PER_SCRIPT = 32, /* on a single server, which serves nobody else meanwhile */
    REAP_LOCK_MS = 2000,  /* after this time a shard is free again, should its reaper die */
    ENTRY_ARGUMENTS = 3,  /* of one index entry in a script's arguments or reply */
};

/* The first items of the reply of either script; the script for a single server has the time after them. */
enum { AT_OVERDUE, AT_MENDED, AT_FIRST, AT_NOW = AT_FIRST, AT_FIRST_TRANSITION };

/* On a cluster: one overdue entry of the index. */
struct reap_entry {
    struct redis_reap_pass *pass;
    unsigned shard;
    bool is_settled;  /* the user's slot has answered, and `again_ms` is valid */
    int64_t again_ms; /* the entry's new time to live; -1: remove the entry */
    int64_t grace_ms; /* a grace to add to the index; 0: none */
    size_t member_len;
    size_t score_len;
    char member[REDIS_STATE_MEMBER_MAX];
    char score[REDIS_STATE_NUMBER_MAX];
    char overdue[REDIS_STATE_NUMBER_MAX];
    size_t overdue_len;
};

struct redis_reap_pass {
    struct redis_state *state;
    state_transitions_done done;
    void *arg;
    size_t max;
    size_t waiting; /* replies, and one while scripts are being sent */
    bool failed;
    bool unanswered; /* a script that changes leases: it may have reaped some */
    int64_t overdue;
    int64_t not_after_ms;            /* by the clock of a single server */
    bool locked[REDIS_STATE_SHARDS]; /* the shards of a cluster's index that this pass has locked */
    size_t count;
    size_t entry_count;
    struct state_transition transitions[REAP_MAX]; /* not cleared, from here on */
    char users[REAP_MAX][USER_ID_BYTES_MAX];
    struct reap_entry entries[REAP_MAX];
};

void redis_state_defer_reaping(struct redis_state *state)
{
    state->reap_after_ms = state->options.loop->clock.now_ms + state->options.lease_window_ms;
}

static void finish_reap_pass(struct redis_reap_pass *pass)
{
    struct redis_state *state = pass->state;
    metrics_set(state->options.metrics, METRIC_PRESENCE_STALE_ENTRIES, pass->overdue);
    state->is_reaping = false;
    enum state_status status = STATE_OK;
    if (pass->failed && pass->count == 0)
        status = pass->unanswered ? STATE_UNKNOWN : STATE_UNAVAILABLE;
    pass->done(pass->arg, status, pass->transitions, pass->count);
    free(pass);
    redis_state_end(state);
}

/* Keeps a transition beyond its reply. Returns false when the reply is not a transition. */
static bool keep_reaped_transition(struct redis_reap_pass *pass, const struct resp_value *reply,
                                   struct slice user, struct redis_lease_change *lease)
{
    struct state_transition *kept = &pass->transitions[pass->count];
    if (pass->count == pass->max ||
        !redis_state_parse_transition(pass->state, reply, user, kept, lease))
        return false;
    struct slice id = kept->presence.user_id;
    kept->presence.user_id.data = memcpy(pass->users[pass->count], id.data, id.len);
    pass->count++;
    return true;
}

/* ---- a single server: one script does everything ----
 *
 * A script that was sent while Redis was paused runs when Redis goes on, before the renewals that wait behind it. It
 * would end leases of clients who are there. So each script says until when it may run, by Redis's own clock: leases are
 * renewed when they have a quarter of the window left. */

static void run_reap_script(struct redis_reap_pass *pass);

static void on_reap_script_reply(void *arg, const struct resp_value *reply)
{
    struct redis_reap_pass *pass = arg;
    if (!redis_state_reply_is(reply, RESP_ARRAY) || reply->count < AT_FIRST_TRANSITION) {
        pass->failed = true;
        pass->unanswered = !reply;
        finish_reap_pass(pass);
        return;
    }
    struct redis_state *state = pass->state;
    int64_t redis_ms = reply->items[AT_NOW].integer;
    bool was_late = pass->not_after_ms && redis_ms > pass->not_after_ms;
    state->reap_clock_ahead_ms = redis_ms - state->options.loop->clock.now_ms;
    pass->overdue = reply->items[AT_OVERDUE].integer;
    redis_state_count_mended(state, reply->items[AT_MENDED].integer);
    for (size_t i = AT_FIRST_TRANSITION; i < reply->count; i++)
        keep_reaped_transition(pass, &reply->items[i], SLICE_NONE, NULL);
    if (was_late) {
        log_warn("reap_late", "late_ms=%lld", (long long)(redis_ms - pass->not_after_ms));
        redis_state_defer_reaping(state); /* renewals may wait, too */
    }
    if (!was_late && pass->overdue > 0 && pass->count < pass->max && --pass->waiting)
        run_reap_script(pass);
    else
        finish_reap_pass(pass);
}

static void run_reap_script(struct redis_reap_pass *pass)
{
    char number[REDIS_STATE_NUMBER_MAX], not_after[REDIS_STATE_NUMBER_MAX];
    size_t left = pass->max - pass->count;
    struct redis_state *state = pass->state;
    /* 0: the first script only tells the time */
    pass->not_after_ms = state->reap_clock_ahead_ms
                             ? state->options.loop->clock.now_ms + state->reap_clock_ahead_ms +
                                   state->options.lease_window_ms / 4
                             : 0;
    struct slice limit = redis_state_number(
        number, left < REAP_PER_SCRIPT ? (int64_t)left : (int64_t)REAP_PER_SCRIPT);
    redis_state_eval(state, REDIS_STATE_REAP, REDIS_ARGS(SLICE("presence:v_heartbeat")),
                     REDIS_ARGS(state->first_arguments[0], state->first_arguments[1],
                                state->first_arguments[2], limit,
                                redis_state_number(not_after, pass->not_after_ms)),
                     on_reap_script_reply, pass);
}

/* ---- a cluster ----
 *
 * Step 1 locks each shard of the index and lists its overdue entries. Step 2 runs a script in each user's slot, which
 * decides what becomes of the entry. Step 3 updates the index and unlocks the shards. */

/* A failed update is ignored: an entry that stays is checked again. */
static void on_reap_shard_unlocked(void *arg, const struct resp_value *reply)
{
    struct redis_reap_pass *pass = arg;
    (void)reply;
    if (--pass->waiting == 0)
        finish_reap_pass(pass);
}

/* Writes the arguments of one entry, and of the grace that follows it. Returns how many. */
static size_t write_reap_entry(struct slice *arguments, const struct reap_entry *entry,
                               char numbers[2][REDIS_STATE_NUMBER_MAX])
{
    arguments[0] = (struct slice){entry->member, entry->member_len};
    arguments[1] =
        entry->again_ms < 0 ? SLICE("") : redis_state_number(numbers[0], entry->again_ms);
    arguments[2] = (struct slice){entry->score, entry->score_len};
    if (entry->grace_ms == 0)
        return ENTRY_ARGUMENTS;
    arguments[3] = (struct slice){entry->member + ULID_TEXT_LEN, entry->member_len - ULID_TEXT_LEN};
    arguments[4] = redis_state_number(numbers[1], entry->grace_ms);
    arguments[5] = SLICE("");
    return 2 * ENTRY_ARGUMENTS;
}

static void unlock_reap_shard(struct redis_reap_pass *pass, unsigned shard)
{
    char index[REDIS_KEY_BYTES_MAX], lock[REDIS_KEY_BYTES_MAX];
    char numbers[REAP_MAX][2][REDIS_STATE_NUMBER_MAX];
    struct slice arguments[1 + 2 * ENTRY_ARGUMENTS * REAP_MAX];
    struct redis_state *state = pass->state;
    size_t count = 0;
    arguments[count++] = slice_of(state->instance);
    for (size_t i = 0; i < pass->entry_count; i++)
        if (pass->entries[i].shard == shard && pass->entries[i].is_settled)
            count += write_reap_entry(arguments + count, &pass->entries[i], numbers[i]);
    pass->waiting++;
    redis_state_eval(state, REDIS_STATE_LEASE_INDEX,
                     REDIS_ARGS(redis_state_shard_key(index, "presence:v_heartbeat", shard),
                                redis_state_shard_key(lock, "presence:reaper", shard)),
                     (struct redis_args){arguments, count}, on_reap_shard_unlocked, pass);
}

/* Runs once for each entry; the last run starts step 3. */
static void end_reap_entry(struct redis_reap_pass *pass)
{
    if (--pass->waiting)
        return;
    pass->waiting = 1;
    for (unsigned shard = 0; shard < REDIS_STATE_SHARDS; shard++)
        if (pass->locked[shard])
            unlock_reap_shard(pass, shard);
    on_reap_shard_unlocked(pass, NULL);
}

/* Returns false when the entry cannot be one of ours. */
static bool parse_reap_entry(const struct reap_entry *entry, struct slice *conn, struct slice *user)
{
    *user = slice_split((struct slice){entry->member, entry->member_len}, ':', conn);
    return user->len > 0 && user->len <= USER_ID_BYTES_MAX &&
           (conn->len == 0 || conn->len == ULID_TEXT_LEN);
}

static void on_reap_entry_expired(void *arg, const struct resp_value *reply)
{
    struct reap_entry *entry = arg;
    struct redis_reap_pass *pass = entry->pass;
    struct slice conn, user;
    struct redis_lease_change change;
    parse_reap_entry(entry, &conn, &user);
    if (!redis_state_reply_is(reply, RESP_ARRAY) || reply->count == 0) {
        pass->failed = true;
        pass->unanswered |= !reply;
    } else if (reply->items[0].type == RESP_TEXT) { /* "later" and the time, or "nothing" */
        entry->is_settled = true;
        entry->again_ms = reply->count > 1 ? reply->items[1].integer : -1;
    } else if (keep_reaped_transition(pass, reply, user, &change)) {
        const struct state_transition *made = &pass->transitions[pass->count - 1];
        entry->is_settled = true;
        entry->again_ms = -1;
        entry->grace_ms = conn.len ? change.grace_ms : 0;
        if (made->changed)
            redis_state_update_online_sets(pass->state, &made->presence, NULL, NULL);
        if (conn.len)
            redis_state_remove_connection(pass->state, SLICE_NONE, conn);
    }
    end_reap_entry(pass);
}

static void expire_reap_entry(struct redis_reap_pass *pass, struct reap_entry *entry)
{
    struct slice conn, user;
    char name[REDIS_KEY_BYTES_MAX];
    if (!parse_reap_entry(entry, &conn, &user)) {
        entry->is_settled = true;
        entry->again_ms = -1;
        redis_state_count_mended(pass->state, 1);
        return;
    }
    const struct slice arguments[] = {
        redis_state_user_name(pass->state, name, user), conn, {entry->overdue, entry->overdue_len}};
    pass->waiting++;
    redis_state_run(pass->state, REDIS_STATE_EXPIRE, user, arguments, 3, on_reap_entry_expired,
                    entry);
}

static size_t copy_reap_text(char *out, size_t max, struct slice text)
{
    size_t len = text.len < max ? text.len : max;
    if (len)
        memcpy(out, text.data, len);
    return len;
}

/* Keeps one shard's overdue entries; the last shard starts step 2. `arg` points into state->reap_passes, at the index of
 * the shard. */
static void on_shard_overdue_entries(void *arg, const struct resp_value *reply)
{
    struct redis_reap_pass *pass = *(struct redis_reap_pass **)arg;
    unsigned shard = (unsigned)((struct redis_reap_pass **)arg - pass->state->reap_passes);
    bool ok = redis_state_reply_is(reply, RESP_ARRAY) && reply->count >= AT_FIRST;
    size_t rows = ok ? (reply->count - AT_FIRST) / ENTRY_ARGUMENTS : 0;
    pass->failed |= !ok;
    pass->locked[shard] = rows > 0;
    if (ok) {
        pass->overdue += reply->items[AT_OVERDUE].integer;
        redis_state_count_mended(pass->state, reply->items[AT_MENDED].integer);
    }
    for (size_t i = 0; i < rows && pass->entry_count < pass->max; i++) {
        const struct resp_value *row = &reply->items[AT_FIRST + ENTRY_ARGUMENTS * i];
        struct reap_entry *entry = &pass->entries[pass->entry_count++];
        *entry = (struct reap_entry){.pass = pass, .shard = shard};
        entry->member_len = copy_reap_text(entry->member, sizeof(entry->member), row[0].text);
        entry->score_len = copy_reap_text(entry->score, sizeof(entry->score), row[1].text);
        entry->overdue_len = copy_reap_text(entry->overdue, sizeof(entry->overdue), row[2].text);
    }
    if (--pass->waiting)
        return;
    pass->waiting = 1;
    for (size_t i = 0; i < pass->entry_count; i++)
        expire_reap_entry(pass, &pass->entries[i]);
    end_reap_entry(pass);
}

static void lock_reap_shards(struct redis_reap_pass *pass)
{
    char index[REDIS_KEY_BYTES_MAX], lock[REDIS_KEY_BYTES_MAX];
    char lock_ms[REDIS_STATE_NUMBER_MAX], max[REDIS_STATE_NUMBER_MAX], len[REDIS_STATE_NUMBER_MAX];
    struct redis_state *state = pass->state;
    pass->waiting = REDIS_STATE_SHARDS;
    for (unsigned shard = 0; shard < REDIS_STATE_SHARDS; shard++) {
        state->reap_passes[shard] = pass;
        redis_state_eval(state, REDIS_STATE_OVERDUE,
                         REDIS_ARGS(redis_state_shard_key(index, "presence:v_heartbeat", shard),
                                    redis_state_shard_key(lock, "presence:reaper", shard)),
                         REDIS_ARGS(slice_of(state->instance),
                                    redis_state_number(lock_ms, REAP_LOCK_MS),
                                    redis_state_number(max, (int64_t)pass->max),
                                    redis_state_number(len, REDIS_STATE_MEMBER_MAX)),
                         on_shard_overdue_entries, &state->reap_passes[shard]);
    }
}

/* ---- the port ---- */

void redis_state_reap(struct state_store *store, size_t max, state_transitions_done done, void *arg)
{
    struct redis_state *state = redis_state_of(store);
    /* While Redis has a problem, gateways cannot renew: let them renew first. */
    if (max > 0 && redis_client_problem(state->options.client) != REDIS_FINE)
        redis_state_defer_reaping(state);
    bool may_reap = max > 0 && !state->is_reaping && redis_state_may_write(state) &&
                    state->options.loop->clock.now_ms >= state->reap_after_ms;
    struct redis_reap_pass *pass = may_reap ? malloc(sizeof(*pass)) : NULL;
    if (!pass) {
        done(arg, STATE_OK, NULL, 0);
        return;
    }
    memset(pass, 0, offsetof(struct redis_reap_pass, transitions));
    pass->state = state;
    pass->done = done;
    pass->arg = arg;
    pass->max = max < REAP_MAX ? max : REAP_MAX;
    state->is_reaping = true;
    redis_state_begin(state);
    if (state->keys.cluster) {
        lock_reap_shards(pass);
    } else {
        pass->waiting = REAP_MAX / REAP_PER_SCRIPT + 1; /* at most this many scripts */
        run_reap_script(pass);
    }
}

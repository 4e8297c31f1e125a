#include "store/redis/state/redis_state_internal.h"

#include <stdlib.h>

enum {
    REAP_MAX = 256,       /* in one call, whatever was asked for */
    REAP_PER_SCRIPT = 32, /* on a single server, which does nothing else meanwhile */
    REAP_ALONE_MS = 2000, /* a shard belongs to one reaper for so long, should that die */
    WORDS_PER_MEMBER = 3,
};

/* Where things stand in the reply of either script. */
enum { AT_OVERDUE, AT_MENDED, AT_FIRST };

/* On a cluster: one entry of the index that has run out. */
struct reap_entry {
    struct reaping *reaping;
    unsigned shard;
    bool settled;     /* it was looked at; `again_ms` says what becomes of it */
    int64_t again_ms; /* -1: it goes */
    int64_t lingers_ms;
    size_t member_len;
    size_t score_len;
    char member[REDIS_STATE_MEMBER_MAX];
    char score[REDIS_STATE_NUMBER_MAX];
    char overdue[REDIS_STATE_NUMBER_MAX];
    size_t overdue_len;
};

struct reaping {
    struct redis_state *state;
    state_transitions_done done;
    void *arg;
    size_t max;
    size_t waiting; /* answers, and one more while questions are being sent */
    bool failed;
    bool unanswered; /* a script that changes leases: it may have reaped some */
    int64_t overdue;
    bool held[REDIS_STATE_SHARDS]; /* shards of a cluster's index that are ours for now */
    size_t count;
    size_t entry_count;
    struct state_transition transitions[REAP_MAX]; /* from here on not cleared */
    char users[REAP_MAX][USER_ID_BYTES_MAX];
    struct reap_entry entries[REAP_MAX];
};

void redis_state_hold_off(struct redis_state *state)
{
    state->reap_after_ms = state->options.loop->clock.now_ms + state->options.lease_window_ms;
}

static void finish(struct reaping *reaping)
{
    struct redis_state *state = reaping->state;
    metrics_set(state->options.metrics, METRIC_PRESENCE_STALE_ENTRIES, reaping->overdue);
    state->reaping = false;
    enum state_status status = STATE_OK;
    if (reaping->failed && reaping->count == 0)
        status = reaping->unanswered ? STATE_UNKNOWN : STATE_UNAVAILABLE;
    reaping->done(reaping->arg, status, reaping->transitions, reaping->count);
    free(reaping);
    redis_state_end(state);
}

/* A transition that outlives the reply. False: it is none. */
static bool keep(struct reaping *reaping, const struct resp_value *reply, struct slice user)
{
    struct state_transition *kept = &reaping->transitions[reaping->count];
    if (reaping->count == reaping->max ||
        !redis_state_read_transition(reaping->state, reply, user, kept))
        return false;
    struct slice id = kept->presence.user_id;
    kept->presence.user_id.data = memcpy(reaping->users[reaping->count], id.data, id.len);
    reaping->count++;
    return true;
}

/* ---- a single server: the script does it all ---- */

static void reap_some(struct reaping *reaping);

static void reaped_some(void *arg, const struct resp_value *reply)
{
    struct reaping *reaping = arg;
    if (!redis_state_is(reply, RESP_ARRAY) || reply->count < AT_FIRST) {
        reaping->failed = true;
        reaping->unanswered = !reply;
        finish(reaping);
        return;
    }
    reaping->overdue = reply->items[AT_OVERDUE].integer;
    redis_state_mended(reaping->state, reply->items[AT_MENDED].integer);
    for (size_t i = AT_FIRST; i < reply->count; i++)
        keep(reaping, &reply->items[i], SLICE_NONE);
    if (reaping->overdue > 0 && reaping->count < reaping->max && --reaping->waiting)
        reap_some(reaping);
    else
        finish(reaping);
}

static void reap_some(struct reaping *reaping)
{
    char number[REDIS_STATE_NUMBER_MAX];
    size_t left = reaping->max - reaping->count;
    struct redis_state *state = reaping->state;
    struct slice limit = redis_state_number(
        number, left < REAP_PER_SCRIPT ? (int64_t)left : (int64_t)REAP_PER_SCRIPT);
    redis_state_eval(state, REDIS_STATE_REAP, REDIS_ARGS(SLICE("presence:v_heartbeat")),
                     REDIS_ARGS(state->first_arguments[0], state->first_arguments[1],
                                state->first_arguments[2], limit),
                     reaped_some, reaping);
}

/* ---- a cluster: the index says who, the user's slot decides, the index learns ---- */

static void shard_released(void *arg, const struct resp_value *reply)
{
    struct reaping *reaping = arg;
    (void)reply; /* an entry that stays is looked at again */
    if (--reaping->waiting == 0)
        finish(reaping);
}

/* The words for one entry, and for the grace that follows it. */
static size_t put_entry(struct slice *words, const struct reap_entry *entry,
                        char numbers[2][REDIS_STATE_NUMBER_MAX])
{
    struct slice member = {entry->member, entry->member_len};
    words[0] = member;
    words[1] = entry->again_ms < 0 ? SLICE("") : redis_state_number(numbers[0], entry->again_ms);
    words[2] = (struct slice){entry->score, entry->score_len};
    if (entry->lingers_ms == 0)
        return WORDS_PER_MEMBER;
    words[3] = (struct slice){entry->member + ULID_TEXT_LEN, entry->member_len - ULID_TEXT_LEN};
    words[4] = redis_state_number(numbers[1], entry->lingers_ms);
    words[5] = SLICE("");
    return 2 * WORDS_PER_MEMBER;
}

static void release_shard(struct reaping *reaping, unsigned shard)
{
    char index[REDIS_KEY_BYTES_MAX], reaper[REDIS_KEY_BYTES_MAX];
    char numbers[REAP_MAX][2][REDIS_STATE_NUMBER_MAX];
    struct slice words[1 + 2 * WORDS_PER_MEMBER * REAP_MAX];
    struct redis_state *state = reaping->state;
    size_t count = 0;
    words[count++] = slice_of(state->instance);
    for (size_t i = 0; i < reaping->entry_count; i++)
        if (reaping->entries[i].shard == shard && reaping->entries[i].settled)
            count += put_entry(words + count, &reaping->entries[i], numbers[i]);
    reaping->waiting++;
    redis_state_eval(state, REDIS_STATE_LEASE_INDEX,
                     REDIS_ARGS(redis_state_shard_key(index, "presence:v_heartbeat", shard),
                                redis_state_shard_key(reaper, "presence:reaper", shard)),
                     (struct redis_args){words, count}, shard_released, reaping);
}

static void release_shards(struct reaping *reaping)
{
    reaping->waiting = 1;
    for (unsigned shard = 0; shard < REDIS_STATE_SHARDS; shard++)
        if (reaping->held[shard])
            release_shard(reaping, shard);
    shard_released(reaping, NULL);
}

static void entry_done(struct reaping *reaping)
{
    if (--reaping->waiting == 0)
        release_shards(reaping);
}

/* What an entry of the index stands for; false: nothing. */
static bool split_member(const struct reap_entry *entry, struct slice *conn, struct slice *user)
{
    *user = slice_split((struct slice){entry->member, entry->member_len}, ':', conn);
    return user->len > 0 && user->len <= USER_ID_BYTES_MAX &&
           (conn->len == 0 || conn->len == ULID_TEXT_LEN);
}

static void expired(void *arg, const struct resp_value *reply)
{
    struct reap_entry *entry = arg;
    struct reaping *reaping = entry->reaping;
    struct slice conn, user;
    split_member(entry, &conn, &user);
    bool array = redis_state_is(reply, RESP_ARRAY) && reply->count > 0;
    if (!array) {
        reaping->failed = true;
        reaping->unanswered |= !reply;
    } else if (reply->items[0].type == RESP_TEXT) { /* later, or nothing */
        entry->settled = true;
        entry->again_ms = reply->count > 1 ? reply->items[1].integer : -1;
    } else if (keep(reaping, reply, user)) {
        const struct state_transition *made = &reaping->transitions[reaping->count - 1];
        entry->settled = true;
        entry->again_ms = -1;
        entry->lingers_ms = conn.len ? redis_state_lingers_ms(reply) : 0;
        if (made->changed)
            redis_state_crowd(reaping->state, &made->presence, NULL, NULL);
        if (conn.len)
            redis_state_let_go(reaping->state, SLICE_NONE, conn);
    }
    entry_done(reaping);
}

static void expire_entry(struct reaping *reaping, struct reap_entry *entry)
{
    struct slice conn, user;
    char name[REDIS_KEY_BYTES_MAX];
    if (!split_member(entry, &conn, &user)) {
        entry->settled = true;
        entry->again_ms = -1;
        redis_state_mended(reaping->state, 1);
        return;
    }
    const struct slice arguments[] = {
        redis_state_name(reaping->state, name, user), conn, {entry->overdue, entry->overdue_len}};
    reaping->waiting++;
    redis_state_run(reaping->state, REDIS_STATE_EXPIRE, user, arguments, 3, expired, entry);
}

static void expire_entries(struct reaping *reaping)
{
    reaping->waiting = 1;
    for (size_t i = 0; i < reaping->entry_count; i++)
        expire_entry(reaping, &reaping->entries[i]);
    entry_done(reaping);
}

static size_t copy(char *out, size_t max, struct slice text)
{
    size_t len = text.len < max ? text.len : max;
    if (len)
        memcpy(out, text.data, len);
    return len;
}

/* One shard's answer; which shard is told by where `arg` points. */
static void take_due(void *arg, const struct resp_value *reply)
{
    struct reaping *reaping = *(struct reaping **)arg;
    unsigned shard = (unsigned)((struct reaping **)arg - reaping->state->reapings);
    bool told = redis_state_is(reply, RESP_ARRAY) && reply->count >= AT_FIRST;
    size_t rows = told ? (reply->count - AT_FIRST) / WORDS_PER_MEMBER : 0;
    reaping->failed |= !told;
    reaping->held[shard] = rows > 0;
    if (told) {
        reaping->overdue += reply->items[AT_OVERDUE].integer;
        redis_state_mended(reaping->state, reply->items[AT_MENDED].integer);
    }
    for (size_t i = 0; i < rows && reaping->entry_count < reaping->max; i++) {
        const struct resp_value *row = &reply->items[AT_FIRST + WORDS_PER_MEMBER * i];
        struct reap_entry *entry = &reaping->entries[reaping->entry_count++];
        *entry = (struct reap_entry){.reaping = reaping, .shard = shard};
        entry->member_len = copy(entry->member, sizeof(entry->member), row[0].text);
        entry->score_len = copy(entry->score, sizeof(entry->score), row[1].text);
        entry->overdue_len = copy(entry->overdue, sizeof(entry->overdue), row[2].text);
    }
    if (--reaping->waiting == 0)
        expire_entries(reaping);
}

static void ask_shards(struct reaping *reaping)
{
    char index[REDIS_KEY_BYTES_MAX], reaper[REDIS_KEY_BYTES_MAX];
    char alone[REDIS_STATE_NUMBER_MAX], max[REDIS_STATE_NUMBER_MAX], len[REDIS_STATE_NUMBER_MAX];
    struct redis_state *state = reaping->state;
    reaping->waiting = REDIS_STATE_SHARDS;
    for (unsigned shard = 0; shard < REDIS_STATE_SHARDS; shard++) {
        state->reapings[shard] = reaping;
        redis_state_eval(state, REDIS_STATE_OVERDUE,
                         REDIS_ARGS(redis_state_shard_key(index, "presence:v_heartbeat", shard),
                                    redis_state_shard_key(reaper, "presence:reaper", shard)),
                         REDIS_ARGS(slice_of(state->instance),
                                    redis_state_number(alone, REAP_ALONE_MS),
                                    redis_state_number(max, (int64_t)reaping->max),
                                    redis_state_number(len, REDIS_STATE_MEMBER_MAX)),
                         take_due, &state->reapings[shard]);
    }
}

/* ---- the call ---- */

/* Whoever was cut off from Redis comes back first, and registers again. */
static bool may_reap(struct redis_state *state)
{
    if (redis_client_problem(state->options.client) != REDIS_FINE)
        redis_state_hold_off(state);
    return !state->reaping && redis_state_may_write(state) &&
           state->options.loop->clock.now_ms >= state->reap_after_ms;
}

void redis_state_reap(struct state_store *store, size_t max, state_transitions_done done, void *arg)
{
    struct redis_state *state = redis_state_of(store);
    struct reaping *reaping = max > 0 && may_reap(state) ? malloc(sizeof(*reaping)) : NULL;
    if (!reaping) {
        done(arg, STATE_OK, NULL, 0);
        return;
    }
    memset(reaping, 0, offsetof(struct reaping, transitions));
    reaping->state = state;
    reaping->done = done;
    reaping->arg = arg;
    reaping->max = max < REAP_MAX ? max : REAP_MAX;
    state->reaping = true;
    redis_state_begin(state);
    if (state->keys.cluster) {
        ask_shards(reaping);
    } else {
        reaping->waiting = REAP_MAX / REAP_PER_SCRIPT + 1; /* so many scripts at most */
        reap_some(reaping);
    }
}

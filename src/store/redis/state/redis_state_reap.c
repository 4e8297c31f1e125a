#include "log/log.h"
#include "store/redis/state/redis_state_internal.h"

#include <stdlib.h>

enum {
    REAP_MAX = 256,        /* in one pass, even if the caller allows more */
    REAP_PER_SCRIPT = 32,  /* on a single server, which serves nobody else meanwhile */
    REAP_PER_SHARD = 8,    /* on a cluster, where many shards are looked at together */
    LOOKS_MAX = 256,       /* scripts that wait for an answer; the first one tells the time */
    SCAN_SHARDS_MAX = 256, /* in one script */
    SCANS_MAX = 3,         /* that wait for an answer: users' operations run between them */
};

/* The first items of the script's reply. */
enum { AT_OVERDUE, AT_MENDED, AT_NOW, AT_FIRST };

/* One script: a look at one shard. */
struct reap_look {
    struct redis_reap_pass *pass;
    unsigned shard;
    size_t max;
    int64_t not_after_ms; /* by Redis's clock; 0: it only tells the time */
};

/* One script on a cluster: where is anything due, among shards of one server? */
struct reap_scan {
    struct redis_reap_pass *pass;
    size_t server;        /* redis_server_of() */
    int64_t not_after_ms; /* as in struct reap_look */
    size_t count;
    uint16_t shards[SCAN_SHARDS_MAX];
};

/* One operation. It is kept until the next one, which says that its transitions were told. */
struct redis_reap_pass {
    struct redis_state *state;
    state_transitions_done done;
    void *arg;
    size_t max;
    size_t reserved; /* transitions that scripts under way may bring */
    size_t waiting;  /* replies */
    size_t scanning; /* of these, to scans */
    unsigned next;   /* the shard to look at next */
    bool failed;
    bool unanswered; /* a script may have reaped some */
    bool is_sending; /* an answer that comes meanwhile sends nothing itself */
    int64_t overdue;
    int64_t clock_ahead_ms; /* the largest in this pass */
    struct reap_look looks[LOOKS_MAX];
    struct reap_look *free_looks[LOOKS_MAX];
    size_t free_count;
    struct reap_scan *scan; /* that is being put together; NULL: none */
    size_t count;
    struct state_transition transitions[REAP_MAX]; /* not cleared, from here on */
    char users[REAP_MAX][USER_ID_BYTES_MAX];
};

/* ---- what was told ---- */

/* Says that the transitions of the last pass were told; until then another reaper would tell them again. */
static void acknowledge_reaped(struct redis_state *state)
{
    struct redis_reap_pass *told = state->reaper.told;
    for (size_t i = 0; told && i < told->count; i++) {
        char key[REDIS_KEY_BYTES_MAX], member[REDIS_STATE_NUMBER_MAX + 1 + USER_ID_BYTES_MAX];
        const struct presence *presence = &told->transitions[i].presence;
        if (!told->transitions[i].changed)
            continue;
        struct slice version = redis_state_number(member, presence->version);
        member[version.len] = ' ';
        memcpy(member + version.len + 1, presence->user_id.data, presence->user_id.len);
        struct slice untold = redis_state_set_key(state, key, "presence:untold",
                                                  redis_state_shard(presence->user_id));
        redis_command(state->options.client, untold,
                      REDIS_ARGS(SLICE("ZREM"), untold,
                                 (struct slice){member, version.len + 1 + presence->user_id.len}),
                      NULL, NULL);
    }
    free(told);
    state->reaper.told = NULL;
}

/* ---- a pass ---- */

static void finish_reap_pass(struct redis_reap_pass *pass)
{
    struct redis_state *state = pass->state;
    metrics_set(state->options.metrics, METRIC_PRESENCE_STALE_ENTRIES, pass->overdue);
    state->reaper.is_reaping = false;
    if (pass->clock_ahead_ms)
        state->reaper.clock_ahead_ms = pass->clock_ahead_ms;
    enum state_status status = STATE_OK;
    if (pass->failed && pass->count == 0)
        status = pass->unanswered ? STATE_UNKNOWN : STATE_UNAVAILABLE;
    state->reaper.told = pass;
    pass->done(pass->arg, status, pass->transitions, pass->count);
    redis_state_end(state);
}

/* Keeps a transition beyond its reply. */
static void keep_reaped_transition(struct redis_reap_pass *pass, const struct resp_value *reply)
{
    struct state_transition *kept = &pass->transitions[pass->count];
    if (pass->count == pass->max ||
        !redis_state_parse_transition(pass->state, reply, SLICE_NONE, kept, NULL))
        return;
    struct slice id = kept->presence.user_id;
    kept->presence.user_id.data = memcpy(pass->users[pass->count], id.data, id.len);
    pass->count++;
}

static void send_reap_looks(struct redis_reap_pass *pass);

/* A script that was sent while Redis was paused runs when Redis goes on, before the renewals that wait behind it. It
 * would end leases of clients who are there. So each script says until when it may run, by Redis's own clock: leases are
 * renewed when they have a quarter of the window left. Of several masters the clock that is furthest ahead counts. */
static int64_t reap_not_after_ms(const struct redis_state *state)
{
    int64_t ahead_ms = state->reaper.clock_ahead_ms;
    return ahead_ms
               ? state->options.loop->clock.now_ms + ahead_ms + state->options.lease_window_ms / 4
               : 0;
}

/* Keeps what a look found. The next look follows at once while more is overdue. */
static void keep_reap_reply(struct reap_look *look, const struct resp_value *reply)
{
    struct redis_reap_pass *pass = look->pass;
    struct redis_state *state = pass->state;
    int64_t redis_ms = reply->items[AT_NOW].integer;
    int64_t ahead_ms = redis_ms - state->options.loop->clock.now_ms;
    bool was_late = look->not_after_ms && redis_ms > look->not_after_ms;
    if (!pass->clock_ahead_ms || ahead_ms > pass->clock_ahead_ms)
        pass->clock_ahead_ms = ahead_ms;
    if (!state->reaper.clock_ahead_ms)
        state->reaper.clock_ahead_ms = ahead_ms;
    pass->overdue += reply->items[AT_OVERDUE].integer;
    redis_state_count_mended(state, reply->items[AT_MENDED].integer);
    for (size_t i = AT_FIRST; i < reply->count; i++)
        keep_reaped_transition(pass, &reply->items[i]);
    if (was_late) {
        log_warn("reap_late", "late_ms=%lld", (long long)(redis_ms - look->not_after_ms));
        redis_state_defer_shard(state, look->shard); /* renewals may wait, too */
    } else if (reply->items[AT_OVERDUE].integer > 0) {
        redis_state_look_again(state, look->shard);
        if (redis_state_shard_count(state) == 1)
            pass->next = 0;
    }
}

static void on_reap_script_reply(void *arg, const struct resp_value *reply)
{
    struct reap_look *look = arg;
    struct redis_reap_pass *pass = look->pass;
    if (redis_state_reply_is(reply, RESP_ARRAY) && reply->count >= AT_FIRST) {
        keep_reap_reply(look, reply);
    } else {
        pass->failed = true;
        pass->unanswered |= !reply;
        redis_state_defer_shard(pass->state, look->shard);
    }
    pass->reserved -= look->max;
    pass->free_looks[pass->free_count++] = look;
    pass->waiting--;
    if (!pass->is_sending)
        send_reap_looks(pass);
}

static void send_reap_look(struct redis_reap_pass *pass, unsigned shard, size_t max)
{
    char key[REDIS_KEY_BYTES_MAX], limit[REDIS_STATE_NUMBER_MAX], not_after[REDIS_STATE_NUMBER_MAX];
    char suffix[REDIS_STATE_SUFFIX_LEN], moving[REDIS_KEY_BYTES_MAX];
    struct redis_state *state = pass->state;
    const struct slice keys[] = {redis_state_set_key(state, key, "presence:v_heartbeat", shard),
                                 redis_state_moving_key(state, moving, shard)};
    struct reap_look *look = pass->free_looks[--pass->free_count];
    *look = (struct reap_look){pass, shard, max, reap_not_after_ms(state)};
    pass->reserved += max;
    pass->waiting++;
    redis_state_eval(
        state, REDIS_STATE_REAP, (struct redis_args){keys, state->keys.cluster ? 2 : 1},
        REDIS_ARGS(state->first_arguments[0], state->first_arguments[1],
                   state->keys.cluster ? redis_state_shard_suffix(suffix, shard) : SLICE(""),
                   redis_state_number(limit, (int64_t)max),
                   redis_state_number(not_after, look->not_after_ms)),
        on_reap_script_reply, look);
}

/* ---- scans ---- */

static void keep_reap_scan(struct reap_scan *scan, const struct resp_value *reply)
{
    struct redis_reap_pass *pass = scan->pass;
    struct redis_state *state = pass->state;
    int64_t redis_ms = reply->items[0].integer;
    int64_t ahead_ms = redis_ms - state->options.loop->clock.now_ms;
    bool was_late = scan->not_after_ms && redis_ms > scan->not_after_ms;
    if (!pass->clock_ahead_ms || ahead_ms > pass->clock_ahead_ms)
        pass->clock_ahead_ms = ahead_ms;
    if (!state->reaper.clock_ahead_ms)
        state->reaper.clock_ahead_ms = ahead_ms;
    if (was_late)
        log_warn("reap_late", "late_ms=%lld", (long long)(redis_ms - scan->not_after_ms));
    for (size_t i = 0; i < scan->count; i++) {
        if (was_late) /* renewals may wait, too */
            redis_state_defer_shard(state, scan->shards[i]);
        else if (reply->items[1].text.data[i] != '0')
            redis_state_note_due(state, scan->shards[i]);
    }
    if (scan->shards[0] < pass->next)
        pass->next = scan->shards[0];
}

static void on_reap_scan_reply(void *arg, const struct resp_value *reply)
{
    struct reap_scan *scan = arg;
    struct redis_reap_pass *pass = scan->pass;
    if (redis_state_reply_is(reply, RESP_ARRAY) && reply->count == 2 &&
        reply->items[1].text.len == scan->count) {
        keep_reap_scan(scan, reply);
    } else {
        pass->failed = true;
        for (size_t i = 0; i < scan->count; i++)
            redis_state_defer_shard(pass->state, scan->shards[i]);
    }
    free(scan);
    pass->scanning--;
    pass->waiting--;
    if (!pass->is_sending)
        send_reap_looks(pass);
}

/* Sends the scan that was put together. A single shard is looked at without a scan. */
static void send_reap_scan(struct redis_reap_pass *pass)
{
    struct redis_state *state = pass->state;
    struct reap_scan *scan = pass->scan;
    char key[REDIS_KEY_BYTES_MAX], suffixes[SCAN_SHARDS_MAX][REDIS_STATE_SUFFIX_LEN];
    struct slice arguments[SCAN_SHARDS_MAX];
    size_t left = pass->max - pass->count - pass->reserved;
    if (!scan)
        return;
    pass->scan = NULL;
    if (scan->count == 1 && left > 0) {
        send_reap_look(pass, scan->shards[0], left < REAP_PER_SHARD ? left : REAP_PER_SHARD);
        free(scan);
        return;
    }
    for (size_t i = 0; i < scan->count; i++)
        arguments[i] = redis_state_shard_suffix(suffixes[i], scan->shards[i]);
    scan->not_after_ms = reap_not_after_ms(state);
    pass->scanning++;
    pass->waiting++;
    redis_state_eval(
        state, REDIS_STATE_REAP_SCAN,
        REDIS_ARGS(redis_state_shard_key(key, "presence:v_heartbeat", scan->shards[0])),
        (struct redis_args){arguments, scan->count}, on_reap_scan_reply, scan);
}

/* Adds the shard to a scan. Returns false when it must be looked at itself: a scan has found something, or there is no memory. */
static bool scan_reap_shard(struct redis_reap_pass *pass, unsigned shard)
{
    struct redis_state *state = pass->state;
    size_t server = redis_server_of(state->options.client, (uint16_t)shard);
    if (!state->keys.cluster || redis_state_take_due(state, shard))
        return false;
    if (pass->scan && (pass->scan->server != server || pass->scan->count == SCAN_SHARDS_MAX))
        send_reap_scan(pass);
    if (!pass->scan) {
        pass->scan = malloc(sizeof(*pass->scan));
        if (!pass->scan)
            return false;
        pass->scan->pass = pass;
        pass->scan->server = server;
        pass->scan->count = 0;
    }
    pass->scan->shards[pass->scan->count++] = (uint16_t)shard;
    return true;
}

/* Sends as many looks as may be under way, and ends the pass after the last answer. Until the clock of Redis is known,
 * one look at a time, or one scan. */
static void send_reap_looks(struct redis_reap_pass *pass)
{
    struct redis_state *state = pass->state;
    size_t most = state->keys.cluster ? REAP_PER_SHARD : REAP_PER_SCRIPT;
    size_t together_max = state->reaper.clock_ahead_ms ? LOOKS_MAX : 1;
    unsigned shard;
    pass->is_sending = true;
    while (!state->closing && pass->waiting < together_max && pass->scanning < SCANS_MAX) {
        size_t left = pass->max - pass->count - pass->reserved;
        if (left == 0 || !redis_state_next_look(state, &pass->next, &shard))
            break;
        if (!scan_reap_shard(pass, shard))
            send_reap_look(pass, shard, left < most ? left : most);
    }
    send_reap_scan(pass);
    pass->is_sending = false;
    if (pass->waiting == 0)
        finish_reap_pass(pass);
}

static void on_shard_bits_read(void *arg, const struct resp_value *reply)
{
    struct redis_reap_pass *pass = arg;
    bool has_bits = reply && reply->type == RESP_TEXT; /* else they were lost: look everywhere */
    redis_state_sweep(pass->state, has_bits ? reply->text : SLICE_NONE);
    pass->waiting--;
    send_reap_looks(pass);
}

static void read_shard_bits(struct redis_reap_pass *pass)
{
    struct slice key = SLICE(REDIS_STATE_SHARD_BITS);
    pass->waiting++;
    redis_command(pass->state->options.client, key, REDIS_ARGS(SLICE("GET"), key),
                  on_shard_bits_read, pass);
}

static struct redis_reap_pass *make_reap_pass(struct redis_state *state, size_t max,
                                              state_transitions_done done, void *arg)
{
    struct redis_reap_pass *pass = malloc(sizeof(*pass));
    if (!pass)
        return NULL;
    memset(pass, 0, offsetof(struct redis_reap_pass, transitions));
    pass->state = state;
    pass->done = done;
    pass->arg = arg;
    pass->max = max < REAP_MAX ? max : REAP_MAX;
    for (size_t i = 0; i < LOOKS_MAX; i++)
        pass->free_looks[pass->free_count++] = &pass->looks[i];
    return pass;
}

void redis_state_reap(struct state_store *store, size_t max, state_transitions_done done, void *arg)
{
    struct redis_state *state = redis_state_of(store);
    struct redis_reap_pass *pass = NULL;
    if (!state->reaper.is_reaping) {
        acknowledge_reaped(state);
        redis_state_plan_looks(state);
        if (max > 0 && redis_state_may_write(state) && redis_state_has_look(state))
            pass = make_reap_pass(state, max, done, arg);
    }
    if (!pass) {
        done(arg, STATE_OK, NULL, 0);
        return;
    }
    state->reaper.is_reaping = true;
    redis_state_begin(state);
    if (state->reaper.is_sweep_due)
        read_shard_bits(pass);
    else
        send_reap_looks(pass);
}

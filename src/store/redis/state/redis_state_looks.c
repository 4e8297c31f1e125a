/*
 * When to look for expired leases, and where.
 *
 * A single server has one index of leases. The gateway whose id comes first among the living ones looks at it every
 * second; the others look now and then, in case that one does not.
 *
 * On a cluster every slot has an index, too many to look at all the time. Gateways renew their own leases and close them,
 * so a lease expires only for a reason, and every reason is known to somebody:
 *
 *   a gateway died, or started again    the fleet's list changed: the others share all shards out among them and look
 *                                       at each several times for a window (a sweep). A gateway sweeps after its start
 *   an operation had no answer          its gateway looks at that user's shard a window later
 *   a grace began                       its gateway looks when it ends
 *   a master was lost or replaced       every gateway sweeps its share
 *
 * For reasons that nobody knew, each gateway also looks at one shard a second, many of them together. What is to be looked at
 * on one server is scanned first, in one script (redis_state_reap.c). In a small fleet most shards are empty: a gateway sets the shard's bit in presence:shards before it opens its first lease there, and a sweep leaves out the shards
 * without a bit. Bits stay; in every window each gateway sets those of its own again that were lost.
 *
 * Nothing is reaped in a shard for a window after its master was out of reach: living gateways renew their leases
 * first. The other shards go on.
 */
#include "store/redis/state/redis_state_internal.h"

#include <stdlib.h>

enum {
    LOOK_MARGIN_MS = 50,   /* after an expected end */
    LOOK_LEADER_MS = 1000, /* between two looks at a single server's index */
    LOOK_SPARE_PARTS =
        5, /* of a window: how often the others look, and between two looks of a sweep */
    LOOK_GRACE_PARTS = 8,   /* of a grace: between two looks while ends of graces are expected */
    LOOK_AUDIT_MS = 10000,  /* between two looks without a reason, */
    LOOK_AUDIT_SHARDS = 10, /* at so many shards */
};

static const int64_t NEVER = INT64_MAX;

static int64_t looks_now_ms(const struct redis_state *state)
{
    return state->options.loop->clock.now_ms;
}

static int64_t spare_interval_ms(const struct redis_state *state)
{
    return state->options.lease_window_ms / LOOK_SPARE_PARTS;
}

bool redis_state_looks_init(struct redis_state *state)
{
    struct redis_reaper *reaper = &state->reaper;
    unsigned count = redis_state_shard_count(state);
    reaper->look_at_ms = malloc(count * sizeof(*reaper->look_at_ms));
    if (!reaper->look_at_ms)
        return false;
    for (unsigned i = 0; i < count; i++)
        reaper->look_at_ms[i] = state->keys.cluster ? NEVER : 0;
    reaper->sweep_at_ms = NEVER;
    reaper->fleet_count = 1;
    redis_state_defer_reaping(state);
    return true;
}

void redis_state_looks_free(struct redis_state *state)
{
    free(state->reaper.look_at_ms);
    free(state->reaper.told);
}

/* ---- reasons ---- */

static void look_at(struct redis_state *state, unsigned shard, int64_t at_ms)
{
    int64_t *planned_ms = &state->reaper.look_at_ms[shard];
    if (at_ms < *planned_ms)
        *planned_ms = at_ms;
}

void redis_state_expect_end(struct redis_state *state, struct slice user, int64_t in_ms)
{
    if (state->keys.cluster)
        look_at(state, redis_state_shard(user), looks_now_ms(state) + in_ms + LOOK_MARGIN_MS);
}

/* Leases that nobody renews expire within a window, and graces that have begun end within their time. */
static void start_sweeps(struct redis_state *state, int64_t from_ms)
{
    struct redis_reaper *reaper = &state->reaper;
    int64_t until_ms = from_ms + state->options.lease_window_ms + spare_interval_ms(state);
    if (until_ms > reaper->sweep_closely_until_ms)
        reaper->sweep_closely_until_ms = until_ms;
    if (from_ms < reaper->sweep_at_ms)
        reaper->sweep_at_ms = from_ms;
}

void redis_state_look_again(struct redis_state *state, unsigned shard)
{
    look_at(state, shard, looks_now_ms(state));
}

void redis_state_defer_shard(struct redis_state *state, unsigned shard)
{
    state->reaper.look_at_ms[shard] = looks_now_ms(state) + state->options.lease_window_ms;
}

void redis_state_defer_reaping(struct redis_state *state)
{
    struct redis_reaper *reaper = &state->reaper;
    int64_t from_ms = looks_now_ms(state) + state->options.lease_window_ms;
    for (unsigned i = 0; i < redis_state_shard_count(state); i++)
        if (reaper->look_at_ms[i] < from_ms)
            reaper->look_at_ms[i] = from_ms;
    reaper->is_sweep_due = false;
    reaper->check_bits_at_ms = 0;
    reaper->ready_at_ms = from_ms;
    reaper->sweep_at_ms = NEVER;
    start_sweeps(state, from_ms);
}

/* ---- the fleet ---- */

static uint64_t hash_fleet_id(struct slice id)
{
    uint64_t hash = 14695981039346656037U; /* FNV-1a */
    for (size_t i = 0; i < id.len; i++)
        hash = (hash ^ (uint8_t)id.data[i]) * 1099511628211U;
    return hash;
}

static int compare_fleet_hashes(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Whether some of the old hashes is not among the new ones; both are sorted. */
static bool has_lost_hash(const uint64_t *old, size_t old_count, const uint64_t *new,
                          size_t new_count)
{
    size_t at = 0;
    for (size_t i = 0; i < old_count; i++) {
        while (at < new_count && new[at] < old[i])
            at++;
        if (at == new_count || new[at] != old[i])
            return true;
    }
    return false;
}

void redis_state_note_fleet(struct redis_state *state, const struct gateway_info *gateways,
                            size_t count)
{
    struct redis_reaper *reaper = &state->reaper;
    uint64_t hashes[REDIS_REAPER_FLEET_MAX];
    uint64_t own_hash = hash_fleet_id(redis_state_gateway_id(state));
    size_t kept = 0;
    reaper->fleet_rank = 0;
    for (size_t i = 0; i < count && kept < REDIS_REAPER_FLEET_MAX; i++) {
        uint64_t hash = hash_fleet_id(gateways[i].gateway_id);
        if (hash == own_hash)
            continue;
        hashes[kept++] = hash;
        reaper->fleet_rank += hash < own_hash;
    }
    qsort(hashes, kept, sizeof(hashes[0]), compare_fleet_hashes);
    bool has_lost = has_lost_hash(reaper->fleet_hashes, reaper->fleet_count - 1, hashes, kept);
    memcpy(reaper->fleet_hashes, hashes, kept * sizeof(hashes[0]));
    reaper->fleet_count = kept + 1;
    if (has_lost)
        start_sweeps(state, looks_now_ms(state));
}

/* ---- planning ---- */

/* A store that has claimed no id is alone, and looks whenever it is asked to. */
static bool is_in_fleet(const struct redis_state *state)
{
    return state->claimed;
}

static void plan_next_sweep(struct redis_state *state)
{
    struct redis_reaper *reaper = &state->reaper;
    const struct redis_state_options *options = &state->options;
    int64_t now_ms = looks_now_ms(state), interval_ms = spare_interval_ms(state);
    bool is_close = now_ms < reaper->sweep_closely_until_ms;
    if (!is_close && options->offline_grace_ms / LOOK_GRACE_PARTS > interval_ms)
        interval_ms = options->offline_grace_ms / LOOK_GRACE_PARTS;
    bool is_over = now_ms > reaper->sweep_closely_until_ms + options->offline_grace_ms;
    reaper->sweep_at_ms = is_over ? NEVER : now_ms + interval_ms;
}

static void set_shard_bit(struct redis_state *state, unsigned shard)
{
    char number[REDIS_STATE_NUMBER_MAX];
    redis_command(state->options.client, SLICE(REDIS_STATE_SHARD_BITS),
                  REDIS_ARGS(SLICE("SETBIT"), SLICE(REDIS_STATE_SHARD_BITS),
                             redis_state_number(number, shard), SLICE("1")),
                  NULL, NULL);
}

/* Whether a text that Redis holds as bits has this one. */
static bool has_shard_bit(struct slice bits, unsigned shard)
{
    return shard / 8 < bits.len && (uint8_t)bits.data[shard / 8] & 0x80 >> shard % 8;
}

static void on_shard_bits_checked(void *arg, const struct resp_value *reply)
{
    struct redis_state *state = arg;
    bool is_text = reply && reply->type == RESP_TEXT;
    struct slice bits = is_text ? reply->text : SLICE("");
    bool is_known = is_text || (reply && reply->type == RESP_NULL);
    for (unsigned i = 0; is_known && i < REDIS_STATE_SHARDS; i++)
        if (state->reaper.announced[i / 8] & 1 << i % 8 && !has_shard_bit(bits, i))
            set_shard_bit(state, i);
    redis_state_end(state);
}

static void check_shard_bits(struct redis_state *state)
{
    struct redis_reaper *reaper = &state->reaper;
    if (looks_now_ms(state) < reaper->check_bits_at_ms || !redis_state_may_write(state))
        return;
    reaper->check_bits_at_ms = looks_now_ms(state) + state->options.lease_window_ms;
    redis_state_begin(state);
    redis_command(state->options.client, SLICE(REDIS_STATE_SHARD_BITS),
                  REDIS_ARGS(SLICE("GET"), SLICE(REDIS_STATE_SHARD_BITS)), on_shard_bits_checked,
                  state);
}

void redis_state_announce_shard(struct redis_state *state, unsigned shard)
{
    uint8_t *byte = &state->reaper.announced[shard / 8], bit = (uint8_t)(1 << shard % 8);
    if (*byte & bit)
        return;
    *byte |= bit;
    set_shard_bit(state, shard);
}

void redis_state_sweep(struct redis_state *state, struct slice bits)
{
    struct redis_reaper *reaper = &state->reaper;
    reaper->is_sweep_due = false;
    for (size_t i = reaper->fleet_rank; i < REDIS_STATE_SHARDS; i += reaper->fleet_count)
        if (!bits.data || has_shard_bit(bits, (unsigned)i))
            look_at(state, (unsigned)i, looks_now_ms(state));
}

/* A shard whose master is out of reach is left alone until its leases can have been renewed. */
static void defer_unreachable_shards(struct redis_state *state)
{
    struct redis_reaper *reaper = &state->reaper;
    bool has_problem = redis_client_problem(state->options.client) != REDIS_FINE;
    for (unsigned i = 0; has_problem && i < REDIS_STATE_SHARDS; i++) {
        char key[REDIS_KEY_BYTES_MAX];
        if (!redis_reaches(state->options.client,
                           redis_state_shard_key(key, "presence:v_heartbeat", i)))
            redis_state_defer_shard(state, i);
    }
    if (reaper->had_problem && !has_problem)
        start_sweeps(state, looks_now_ms(state) + state->options.lease_window_ms);
    reaper->had_problem = has_problem;
}

static void plan_cluster_looks(struct redis_state *state)
{
    struct redis_reaper *reaper = &state->reaper;
    int64_t now_ms = looks_now_ms(state);
    defer_unreachable_shards(state);
    check_shard_bits(state);
    bool is_alone_and_ready = !is_in_fleet(state) && now_ms >= reaper->ready_at_ms;
    if (now_ms >= reaper->sweep_at_ms || is_alone_and_ready) {
        reaper->is_sweep_due = true;
        plan_next_sweep(state);
    }
    if (now_ms < reaper->audit_at_ms)
        return;
    reaper->audit_at_ms = now_ms + LOOK_AUDIT_MS;
    for (unsigned i = 0; i < LOOK_AUDIT_SHARDS; i++) {
        reaper->audit_shard = (reaper->audit_shard + 1) % REDIS_STATE_SHARDS;
        look_at(state, reaper->audit_shard, now_ms);
    }
}

void redis_state_plan_looks(struct redis_state *state)
{
    /* While Redis has a problem, gateways cannot renew: let them renew first. */
    if (state->keys.cluster)
        plan_cluster_looks(state);
    else if (redis_client_problem(state->options.client) != REDIS_FINE)
        redis_state_defer_reaping(state);
}

void redis_state_note_due(struct redis_state *state, unsigned shard)
{
    state->reaper.due[shard / 8] |= (uint8_t)(1 << shard % 8);
    look_at(state, shard, looks_now_ms(state));
}

bool redis_state_take_due(struct redis_state *state, unsigned shard)
{
    uint8_t *byte = &state->reaper.due[shard / 8], bit = (uint8_t)(1 << shard % 8);
    bool was_due = *byte & bit;
    *byte &= (uint8_t)~bit;
    return was_due;
}

bool redis_state_has_look(const struct redis_state *state)
{
    if (state->reaper.is_sweep_due)
        return true;
    for (unsigned i = 0; i < redis_state_shard_count(state); i++)
        if (state->reaper.look_at_ms[i] <= looks_now_ms(state))
            return true;
    return false;
}

bool redis_state_next_look(struct redis_state *state, unsigned *next, unsigned *shard)
{
    struct redis_reaper *reaper = &state->reaper;
    int64_t now_ms = looks_now_ms(state);
    for (; *next < redis_state_shard_count(state); ++*next) {
        if (reaper->look_at_ms[*next] > now_ms)
            continue;
        *shard = (*next)++;
        int64_t interval_ms = spare_interval_ms(state);
        if (reaper->fleet_rank == 0 && interval_ms > LOOK_LEADER_MS)
            interval_ms = LOOK_LEADER_MS;
        if (state->keys.cluster)
            reaper->look_at_ms[*shard] = NEVER;
        else
            reaper->look_at_ms[*shard] = is_in_fleet(state) ? now_ms + interval_ms : 0;
        return true;
    }
    return false;
}

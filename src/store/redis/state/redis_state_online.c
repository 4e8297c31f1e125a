/*
 * Who is online, page by page: the set of users who are online is scanned with SSCAN, on a cluster shard after shard.
 *
 * A place in the scan is "<shard>:<cursor>:<user>": the users up to <user>, in the order of their bytes, of the batch that
 * SSCAN returns at the cursor were listed. When the set has grown since, that batch is smaller and the others come later,
 * so nobody is skipped. A place at the start of the first set is written as the user id alone, so that pages of a small
 * set, which SSCAN returns as one batch, continue after any user id.
 */
#include "base/id_list.h"
#include "store/redis/state/redis_state_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { ONLINE_SCANS_MAX = 2 * REDIS_STATE_SHARDS }; /* commands for one page */

struct online_scan {
    struct redis_state *state;
    state_online_done done;
    void *arg;
    size_t limit;
    unsigned scans;
    unsigned shard;
    char cursor[REDIS_STATE_NUMBER_MAX];
    size_t after_len; /* 0: the batch at the cursor from its start */
    char after[USER_ID_BYTES_MAX];
    size_t count;
    struct slice *users;
    char *texts; /* USER_ID_BYTES_MAX for each user */
};

static unsigned online_shard_count(const struct redis_state *state)
{
    return state->keys.cluster ? REDIS_STATE_SHARDS : 1;
}

static struct slice online_set_key(const struct redis_state *state, char out[REDIS_KEY_BYTES_MAX],
                                   unsigned shard)
{
    return state->keys.cluster ? redis_state_shard_key(out, "presence:online", shard)
                               : SLICE("presence:online");
}

/* ---- places ---- */

static bool is_online_number(struct slice text)
{
    bool is_number = text.len > 0 && text.len < REDIS_STATE_NUMBER_MAX;
    for (size_t i = 0; i < text.len; i++)
        is_number = is_number && text.data[i] >= '0' && text.data[i] <= '9';
    return is_number;
}

static bool split_online_place(struct slice place, struct slice *shard, struct slice *cursor,
                               struct slice *user)
{
    struct slice rest = slice_split(place, ':', shard);
    *user = slice_split(rest, ':', cursor);
    return is_online_number(*shard) && is_online_number(*cursor) && user->data &&
           user->len <= USER_ID_BYTES_MAX;
}

static void read_online_place(struct online_scan *scan, struct slice place)
{
    struct slice shard, cursor, user;
    int64_t number = 0;
    snprintf(scan->cursor, sizeof(scan->cursor), "0");
    if (!split_online_place(place, &shard, &cursor, &user)) {
        user = place;
    } else if (resp_parse_integer(shard, &number) && number < online_shard_count(scan->state)) {
        scan->shard = (unsigned)number;
        snprintf(scan->cursor, sizeof(scan->cursor), "%.*s", SLICE_FORMAT(cursor));
    }
    scan->after_len = user.len <= USER_ID_BYTES_MAX ? user.len : 0;
    if (scan->after_len)
        memcpy(scan->after, user.data, user.len);
}

static struct slice write_online_place(const struct online_scan *scan,
                                       char out[STATE_ONLINE_NEXT_MAX])
{
    struct slice after = {scan->after, scan->after_len}, shard, cursor, user;
    bool is_plain = scan->shard == 0 && strcmp(scan->cursor, "0") == 0 && after.len &&
                    !split_online_place(after, &shard, &cursor, &user);
    if (is_plain)
        return (struct slice){memcpy(out, after.data, after.len), after.len};
    int len = snprintf(out, STATE_ONLINE_NEXT_MAX, "%u:%s:", scan->shard, scan->cursor);
    memcpy(out + len, after.data, after.len);
    return (struct slice){out, (size_t)len + after.len};
}

/* ---- scanning ---- */

static void end_online_scan(struct online_scan *scan, enum state_status status, bool is_last)
{
    struct redis_state *state = scan->state;
    char next[STATE_ONLINE_NEXT_MAX];
    struct state_online page = {scan->users, scan->count,
                                is_last ? SLICE_NONE : write_online_place(scan, next)};
    scan->done(scan->arg, status, status == STATE_OK ? &page : NULL);
    free(scan->users);
    free(scan->texts);
    free(scan);
    redis_state_end(state);
}

static void add_scanned_user(struct online_scan *scan, struct slice user)
{
    char *text = scan->texts + scan->count * USER_ID_BYTES_MAX;
    memcpy(text, user.data, user.len);
    scan->users[scan->count++] = (struct slice){text, user.len};
}

/* Adds the batch, sorted, as far as it fits. Returns whether it did; else the scan stops inside of it. */
static bool add_online_batch(struct online_scan *scan, struct slice *batch, size_t count)
{
    count = id_list_sort_unique(batch, count);
    for (size_t i = 0; i < count; i++) {
        struct slice after = {scan->after, scan->after_len};
        if (batch[i].len == 0 || batch[i].len > USER_ID_BYTES_MAX ||
            (after.len && id_list_compare(batch[i], after) <= 0))
            continue;
        if (scan->count == scan->limit)
            return false;
        add_scanned_user(scan, batch[i]);
        scan->after_len = batch[i].len;
        memcpy(scan->after, batch[i].data, batch[i].len);
    }
    scan->after_len = 0;
    return true;
}

static void scan_online_set(struct online_scan *scan);

static void on_online_set_scanned(void *arg, const struct resp_value *reply)
{
    struct online_scan *scan = arg;
    bool is_batch = redis_state_reply_is(reply, RESP_ARRAY) && reply->count == 2 &&
                    is_online_number(reply->items[0].text) && reply->items[1].type == RESP_ARRAY &&
                    redis_available(scan->state->options.client);
    size_t count = is_batch ? reply->items[1].count : 0;
    struct slice *batch = is_batch ? calloc(count + 1, sizeof(*batch)) : NULL;
    if (!batch) {
        end_online_scan(scan, STATE_UNAVAILABLE, true);
        return;
    }
    for (size_t i = 0; i < count; i++)
        batch[i] = reply->items[1].items[i].text;
    bool fits = add_online_batch(scan, batch, count);
    free(batch);
    if (!fits) {
        end_online_scan(scan, STATE_OK, false);
        return;
    }
    snprintf(scan->cursor, sizeof(scan->cursor), "%.*s", SLICE_FORMAT(reply->items[0].text));
    scan->shard += strcmp(scan->cursor, "0") == 0;
    bool is_last = scan->shard == online_shard_count(scan->state);
    if (is_last || scan->count == scan->limit || ++scan->scans == ONLINE_SCANS_MAX)
        end_online_scan(scan, STATE_OK, is_last);
    else
        scan_online_set(scan);
}

static void scan_online_set(struct online_scan *scan)
{
    char key[REDIS_KEY_BYTES_MAX], count[REDIS_STATE_NUMBER_MAX];
    struct slice set = online_set_key(scan->state, key, scan->shard);
    redis_command(scan->state->options.client, set,
                  REDIS_ARGS(SLICE("SSCAN"), set, slice_of(scan->cursor), SLICE("COUNT"),
                             redis_state_number(count, (int64_t)scan->limit)),
                  on_online_set_scanned, scan);
}

void redis_state_online(struct state_store *store, struct slice after, size_t limit,
                        state_online_done done, void *arg)
{
    struct online_scan *scan = calloc(1, sizeof(*scan));
    struct slice *users = calloc(limit, sizeof(*users));
    char *texts = malloc(limit * USER_ID_BYTES_MAX);
    if (!scan || !users || !texts) {
        free(scan);
        free(users);
        free(texts);
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    *scan = (struct online_scan){.state = redis_state_of(store),
                                 .done = done,
                                 .arg = arg,
                                 .limit = limit,
                                 .users = users,
                                 .texts = texts};
    redis_state_begin(scan->state);
    read_online_place(scan, after);
    scan_online_set(scan);
}

/* ---- counting ---- */

struct online_count {
    struct redis_state *state;
    state_count_done done;
    void *arg;
    unsigned waiting;
    bool failed;
    size_t count;
};

static void on_online_set_counted(void *arg, const struct resp_value *reply)
{
    struct online_count *counting = arg;
    struct redis_state *state = counting->state;
    bool ok = redis_state_reply_is(reply, RESP_INTEGER) && redis_available(state->options.client);
    counting->failed |= !ok;
    counting->count += ok ? (size_t)reply->integer : 0;
    if (--counting->waiting)
        return;
    counting->done(counting->arg, counting->failed ? STATE_UNAVAILABLE : STATE_OK, counting->count);
    free(counting);
    redis_state_end(state);
}

void redis_state_count_online(struct state_store *store, state_count_done done, void *arg)
{
    struct redis_state *state = redis_state_of(store);
    struct online_count *counting = malloc(sizeof(*counting));
    unsigned shards = online_shard_count(state);
    if (!counting) {
        done(arg, STATE_UNAVAILABLE, 0);
        return;
    }
    *counting = (struct online_count){.state = state, .done = done, .arg = arg, .waiting = shards};
    redis_state_begin(state);
    for (unsigned shard = 0; shard < shards; shard++) {
        char key[REDIS_KEY_BYTES_MAX];
        struct slice set = online_set_key(state, key, shard);
        redis_command(state->options.client, set, REDIS_ARGS(SLICE("SCARD"), set),
                      on_online_set_counted, counting);
    }
}

/*
 * Who is online, page by page: the set of users who are online is scanned with SSCAN, on a cluster shard after shard. Most
 * shards of a small cluster are empty, so the sizes of many are asked for at once, and only the others are scanned.
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

enum {
    ONLINE_SCANS_MAX = 64,  /* scans for one page, beyond the first of each shard */
    ONLINE_SIZES_MAX = 512, /* sizes that are asked for at once */
};

struct online_scan {
    struct redis_state *state;
    state_online_done done;
    void *arg;
    size_t limit;
    unsigned scans;
    unsigned shard;
    unsigned sizes_from; /* the shards whose sizes are known: these, up to sizes_to */
    unsigned sizes_to;
    unsigned sizes_waiting;
    bool sizes_failed;
    bool has_users[ONLINE_SIZES_MAX];
    char cursor[REDIS_STATE_NUMBER_MAX];
    size_t after_len; /* 0: the batch at the cursor from its start */
    char after[USER_ID_BYTES_MAX];
    size_t count;
    struct slice *users;
    char *texts; /* USER_ID_BYTES_MAX for each user */
};

/* One answer of several; `shard` is relative to the first of them. */
struct online_size {
    struct online_scan *scan;
    unsigned shard;
};

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
    } else if (resp_parse_integer(shard, &number) &&
               number < redis_state_shard_count(scan->state)) {
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

static void scan_online_sets(struct online_scan *scan);

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
    bool is_next = strcmp(scan->cursor, "0") == 0;
    scan->shard += is_next;
    scan->scans += !is_next;
    scan_online_sets(scan);
}

static void scan_online_set(struct online_scan *scan)
{
    char key[REDIS_KEY_BYTES_MAX], count[REDIS_STATE_NUMBER_MAX];
    struct slice set = redis_state_set_key(scan->state, key, "presence:online", scan->shard);
    redis_command(scan->state->options.client, set,
                  REDIS_ARGS(SLICE("SSCAN"), set, slice_of(scan->cursor), SLICE("COUNT"),
                             redis_state_number(count, (int64_t)scan->limit)),
                  on_online_set_scanned, scan);
}

static void on_online_size(void *arg, const struct resp_value *reply)
{
    struct online_size *size = arg;
    struct online_scan *scan = size->scan;
    bool ok = redis_state_reply_is(reply, RESP_INTEGER);
    scan->sizes_failed |= !ok || !redis_available(scan->state->options.client);
    scan->has_users[size->shard] = ok && reply->integer > 0;
    free(size);
    if (--scan->sizes_waiting)
        return;
    if (scan->sizes_failed)
        end_online_scan(scan, STATE_UNAVAILABLE, true);
    else
        scan_online_sets(scan);
}

static void ask_online_sizes(struct online_scan *scan)
{
    unsigned left = redis_state_shard_count(scan->state) - scan->shard;
    unsigned count = left < ONLINE_SIZES_MAX ? left : ONLINE_SIZES_MAX;
    scan->sizes_from = scan->shard;
    scan->sizes_to = scan->shard + count;
    scan->sizes_waiting = 1;
    for (unsigned i = 0; i < count; i++) {
        char key[REDIS_KEY_BYTES_MAX];
        struct online_size *size = malloc(sizeof(*size));
        if (!size) {
            scan->sizes_failed = true;
            break;
        }
        *size = (struct online_size){scan, i};
        struct slice set =
            redis_state_set_key(scan->state, key, "presence:online", scan->shard + i);
        scan->sizes_waiting++;
        redis_command(scan->state->options.client, set, REDIS_ARGS(SLICE("SCARD"), set),
                      on_online_size, size);
    }
    if (--scan->sizes_waiting == 0)
        end_online_scan(scan, STATE_UNAVAILABLE, true);
}

/* Goes on at the shard and the cursor of the scan. */
static void scan_online_sets(struct online_scan *scan)
{
    bool is_within = scan->shard >= scan->sizes_from && scan->shard < scan->sizes_to;
    while (is_within && !scan->has_users[scan->shard - scan->sizes_from]) {
        snprintf(scan->cursor, sizeof(scan->cursor), "0");
        scan->after_len = 0;
        is_within = ++scan->shard < scan->sizes_to;
    }
    bool is_last = scan->shard == redis_state_shard_count(scan->state);
    if (is_last || scan->count == scan->limit || scan->scans == ONLINE_SCANS_MAX)
        end_online_scan(scan, STATE_OK, is_last);
    else if (is_within)
        scan_online_set(scan);
    else
        ask_online_sizes(scan);
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
    scan_online_sets(scan);
}

/* ---- counting ---- */

struct online_count {
    struct redis_state *state;
    state_count_done done;
    void *arg;
    unsigned next; /* the shard to ask next */
    unsigned waiting;
    bool failed;
    size_t count;
};

static void ask_online_counts(struct online_count *counting);

static void on_online_set_counted(void *arg, const struct resp_value *reply)
{
    struct online_count *counting = arg;
    bool ok = redis_state_reply_is(reply, RESP_INTEGER) &&
              redis_available(counting->state->options.client);
    counting->failed |= !ok;
    counting->count += ok ? (size_t)reply->integer : 0;
    ask_online_counts(counting);
}

/* Asks for as many as may be under way. Runs once for each answer, and at first. */
static void ask_online_counts(struct online_count *counting)
{
    struct redis_state *state = counting->state;
    while (counting->waiting <= ONLINE_SIZES_MAX && !counting->failed &&
           counting->next < redis_state_shard_count(state)) {
        char key[REDIS_KEY_BYTES_MAX];
        struct slice set = redis_state_set_key(state, key, "presence:online", counting->next++);
        counting->waiting++;
        redis_command(state->options.client, set, REDIS_ARGS(SLICE("SCARD"), set),
                      on_online_set_counted, counting);
    }
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
    if (!counting) {
        done(arg, STATE_UNAVAILABLE, 0);
        return;
    }
    *counting = (struct online_count){.state = state, .done = done, .arg = arg, .waiting = 1};
    redis_state_begin(state);
    ask_online_counts(counting);
}

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
    void *arg;
    struct slice *users;
    struct users_read_part *parts;
    size_t count;
    size_t waiting; /* parts, and one while they are being sent */
    bool failed;
    struct presence *presences;
};

static void free_users_read(struct users_read *read)
{
    struct redis_state *state = read->state;
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

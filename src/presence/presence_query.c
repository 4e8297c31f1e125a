#include "presence/presence_query.h"

#include "base/container.h"
#include "base/id_list.h"
#include "presence/visibility/cached_profiles.h"

#include <stdlib.h>
#include <string.h>

/* How often a look asks the ledger while what it asks about keeps changing. */
enum { LOOK_READS_MAX = 5 };

/* The arrays and the viewer's id follow the struct in its allocation. */
struct look {
    struct list of_plane; /* if it is to set views */
    unsigned reads;
    bool outdated;
    struct presence_plane *plane;
    struct presence_query_handler handler;
    struct slice viewer;
    struct id_list users; /* owned */
    struct privacy_decision *decisions;
    struct presence *known; /* what the ledger remembers: last seen and version */
    bool *undecided;        /* of these nothing can be said now */
};

static struct look *make_look(struct slice viewer, const struct slice *users, size_t count)
{
    size_t per_user = sizeof(struct privacy_decision) + sizeof(struct presence) + sizeof(bool);
    struct look *look = malloc(sizeof(*look) + count * per_user + viewer.len);
    if (!look)
        return NULL;
    *look = (struct look){.plane = NULL};
    if (!id_list_copy(&look->users, users, count)) {
        free(look);
        return NULL;
    }
    list_init(&look->of_plane);
    look->known = (struct presence *)(look + 1);
    look->decisions = (struct privacy_decision *)(look->known + count);
    look->undecided = (bool *)(look->decisions + count);
    memset(look->undecided, 0, count * sizeof(bool));
    char *at = (char *)(look->undecided + count);
    memcpy(at, viewer.data, viewer.len);
    look->viewer = (struct slice){at, viewer.len};
    return look;
}

static void free_look(struct look *look)
{
    id_list_free(&look->users);
    free(look);
}

/* A user whom the state store has forgotten may still be remembered by the ledger. */
static struct presence merge(const struct presence *state, const struct presence *ledger)
{
    struct presence merged = *state;
    if (merged.status == PRESENCE_OFFLINE && merged.last_seen_ms == TIME_NONE)
        merged.last_seen_ms = ledger->last_seen_ms;
    if (merged.version < ledger->version)
        merged.version = ledger->version;
    return merged;
}

/* Whether the store, out of reach (NULL) or back without its memory, knows less of the user than was known: the
 * ledger has the version of everybody who left. */
static bool is_behind(const struct look *look, size_t index, const struct presence *state,
                      const struct presence *last)
{
    return !state ||
           (state->version < last->version && look->known[index].version < last->version &&
            resync_may_have_forgotten(look->plane));
}

/* One user as the viewer may see them: as the store says or, where it cannot tell, as was last known, and said to
 * be stale. Of one who is hidden it is not told whether they were known. */
static struct presence see(struct look *look, size_t index, const struct presence *state)
{
    struct last_known *last_known = look->plane->last_known;
    struct presence last;
    struct presence seen;
    bool stale = !state || look->undecided[index];
    if (state)
        last_known_note(last_known, state);
    if (last_known_find(last_known, look->users.ids[index], &last) &&
        is_behind(look, index, state, &last))
        state = &last;
    if (state && !look->undecided[index]) {
        struct presence merged = merge(state, &look->known[index]);
        seen = privacy_apply(&merged, look->decisions[index], look->plane->clock->wall_ms);
        stale |= state == &last && look->decisions[index].view != PRIVACY_HIDDEN;
    } else {
        seen = presence_hidden(look->users.ids[index], look->decisions[index].reason);
    }
    seen.stale = stale;
    return seen;
}

static void read_profiles(void *arg, const struct ledger_profiles_outcome *outcome);

static void ask(struct look *look)
{
    look->outdated = false;
    look->reads++;
    ledger_profiles(look->plane->ledger, look->viewer, look->users.ids, look->users.count,
                    read_profiles, look);
}

static void give_up(const struct presence_query_handler *handler, const struct slice *users,
                    size_t count)
{
    if (handler->undecided)
        handler->undecided(handler->arg, users, count);
    handler->done(handler->arg, false, NULL, 0);
}

static void decide(struct look *look, size_t index, const struct ledger_profile *profile)
{
    look->decisions[index] = privacy_decide(look->viewer, profile);
    look->known[index] = (struct presence){
        .last_seen_ms = profile->last_seen_ms ? profile->last_seen_ms : TIME_NONE,
        .version = (int64_t)profile->presence_version,
    };
}

static void end_undecided(struct look *look)
{
    list_remove(&look->of_plane);
    give_up(&look->handler, look->users.ids, look->users.count);
    free_look(look);
}

/* Whether something changed while it was asked about; then it is asked again, as often as may be. */
static bool ask_again(struct look *look)
{
    if (!look->outdated)
        return false;
    if (look->reads < LOOK_READS_MAX)
        ask(look);
    else
        end_undecided(look);
    return true;
}

static void read_state(void *arg, enum state_status status, const struct presence *presences,
                       size_t count)
{
    struct look *look = arg;
    if (ask_again(look))
        return;
    list_remove(&look->of_plane);
    for (size_t i = 0; i < look->users.count; i++)
        look->known[i] = see(look, i, status == STATE_OK && i < count ? &presences[i] : NULL);
    look->handler.done(look->handler.arg, true, look->known, look->users.count);
    free_look(look);
}

/* Views are set, then the state is read. */
static void go_on(struct look *look)
{
    if (look->handler.decided)
        look->handler.decided(look->handler.arg, look->users.ids, look->decisions,
                              look->users.count);
    state_read(look->plane->store, look->users.ids, look->users.count, read_state, look);
}

/* A subscription needs a view for each user; a query may leave some open. */
static void recalled(void *arg, const struct cached_profile *recalls)
{
    struct look *look = arg;
    size_t known = 0;
    if (ask_again(look))
        return;
    for (size_t i = 0; recalls && i < look->users.count; i++) {
        look->undecided[i] = !recalls[i].known;
        known += recalls[i].known;
        if (recalls[i].known)
            decide(look, i, &recalls[i].profile);
        else
            look->decisions[i] = (struct privacy_decision){.view = PRIVACY_HIDDEN};
    }
    if (known == 0 || (known < look->users.count && look->handler.decided))
        end_undecided(look);
    else
        go_on(look);
}

static void read_profiles(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct look *look = arg;
    if (cached_profiles_help(outcome->status)) {
        cached_profiles_read(look->plane, look->viewer, look->users.ids, look->users.count,
                             recalled, look);
        return;
    }
    if (outcome->status != LEDGER_OK) {
        end_undecided(look);
        return;
    }
    if (ask_again(look))
        return;
    for (size_t i = 0; i < look->users.count; i++)
        decide(look, i, &outcome->profiles[i]);
    go_on(look);
}

void presence_query(struct presence_plane *plane, struct slice viewer, const struct slice *users,
                    size_t count, const struct presence_query_handler *handler)
{
    if (count == 0) {
        handler->done(handler->arg, true, NULL, 0);
        return;
    }
    struct look *look = make_look(viewer, users, count);
    if (!look) {
        give_up(handler, users, count);
        return;
    }
    look->plane = plane;
    look->handler = *handler;
    if (handler->decided)
        list_append(&plane->queries, &look->of_plane);
    ask(look);
}

void presence_query_outdate(struct presence_plane *plane, struct slice user_id)
{
    for (struct list *at = plane->queries.next; at != &plane->queries; at = at->next) {
        struct look *look = CONTAINER_OF(at, struct look, of_plane);
        look->outdated |= id_list_contains(&look->users, user_id);
    }
}

#include "presence/presence_query.h"

#include "base/container.h"
#include "base/id_list.h"
#include "presence/visibility/cached_profiles.h"
#include "presence/visibility/visibility_review.h"

#include <stdlib.h>
#include <string.h>

/* The ledger was not read, so that its version of a user is unknown. */
enum { VERSION_UNREAD = -1 };

/* How often a query reads the ledger while visibility keeps changing. */
enum { QUERY_ATTEMPTS_MAX = 5 };

/* The arrays and the viewer's id follow the struct in its allocation. */
struct pending_query {
    struct list of_plane; /* on plane->queries if it will set views */
    unsigned attempts;
    bool outdated;
    struct presence_plane *plane;
    struct presence_query_handler handler;
    struct slice viewer;
    struct id_list users; /* owned */
    struct privacy_decision *decisions;
    struct presence *known; /* the ledger's last seen and version; then the results */
    bool *undecided;        /* users without a profile */
};

static struct pending_query *presence_query_make(struct slice viewer, const struct slice *users,
                                                 size_t count)
{
    size_t per_user = sizeof(struct privacy_decision) + sizeof(struct presence) + sizeof(bool);
    struct pending_query *query = malloc(sizeof(*query) + count * per_user + viewer.len);
    if (!query)
        return NULL;
    *query = (struct pending_query){.plane = NULL};
    if (!id_list_copy(&query->users, users, count)) {
        free(query);
        return NULL;
    }
    list_init(&query->of_plane);
    query->known = (struct presence *)(query + 1);
    query->decisions = (struct privacy_decision *)(query->known + count);
    query->undecided = (bool *)(query->decisions + count);
    memset(query->undecided, 0, count * sizeof(bool));
    char *at = (char *)(query->undecided + count);
    if (viewer.data) {
        memcpy(at, viewer.data, viewer.len);
        query->viewer = (struct slice){at, viewer.len};
    }
    return query;
}

static void presence_query_free(struct pending_query *query)
{
    id_list_free(&query->users);
    free(query);
}

/* ---- what the viewer sees ---- */

/* Returns the version of a user whose record has expired or is lost. The store can only say what it was at most; the ledger
 * has the version with which the user left, and has it whatever happens to the store. While it does not answer, the version
 * is at least when the user left: a higher one would go back when the ledger answers. */
static int64_t presence_query_unrecorded_version(const struct presence *state,
                                                 const struct presence *ledger)
{
    if (ledger->version == VERSION_UNREAD)
        return state->last_seen_ms == TIME_NONE ? 0 : state->last_seen_ms;
    if (ledger->version == 0)
        return state->version;
    return state->last_seen_ms > ledger->version ? state->last_seen_ms : ledger->version;
}

struct presence presence_query_merge(const struct presence *state, const struct presence *ledger,
                                     int64_t told_version)
{
    struct presence merged = *state;
    if (merged.status == PRESENCE_OFFLINE && merged.last_seen_ms == TIME_NONE)
        merged.last_seen_ms = ledger->last_seen_ms;
    if (state->unrecorded)
        merged.version = presence_query_unrecorded_version(state, ledger);
    if (merged.version < ledger->version)
        merged.version = ledger->version;
    if (merged.version < told_version)
        merged.version = told_version;
    return merged;
}

/* Returns whether the store has no answer (NULL), or viewers were told something later: its data is lost. The ledger has the
 * version of every user who left. */
static bool presence_query_state_is_behind(const struct pending_query *query, size_t index,
                                           const struct presence *state,
                                           const struct presence *last)
{
    return !state ||
           (last_known_is_ahead(last, state) && last->version > query->known[index].version);
}

/* Returns one user's presence as the viewer may see it: the store's or, if that is missing or behind, the
 * last known one, marked stale. Before the store is settled, a missing record may still come. For a hidden user `stale`
 * does not reveal whether there was a record. */
static struct presence presence_query_result(struct pending_query *query, size_t index,
                                             const struct presence *state)
{
    struct presence_plane *plane = query->plane;
    struct slice user_id = query->users.ids[index];
    bool is_undecided = query->undecided[index];
    bool is_hidden = query->decisions[index].view == PRIVACY_HIDDEN;
    bool is_missing = state && state->unrecorded && !resync_is_settled(plane);
    struct presence last = {0}, result;
    bool is_known = last_known_find(plane->last_known, user_id, &last);
    bool is_behind = is_known && presence_query_state_is_behind(query, index, state, &last);
    bool stale = !state || is_undecided || (!is_hidden && (is_behind || is_missing));
    if (state && is_behind)
        settle_queue_check(plane, state);
    if (is_behind)
        state = &last;
    if (state && !is_undecided) {
        struct presence merged = presence_query_merge(state, &query->known[index], last.version);
        if (!is_behind && !is_missing)
            last_known_note(plane->last_known, &merged);
        result = privacy_apply(&merged, query->decisions[index], plane->clock->wall_ms);
    } else {
        result = presence_hidden(user_id, query->decisions[index].reason);
    }
    result.stale = stale;
    return result;
}

/* ---- ledger, then store ---- */

static void on_query_profiles_read(void *arg, const struct ledger_profiles_outcome *outcome);

static void presence_query_read_profiles(struct pending_query *query)
{
    query->outdated = false;
    query->attempts++;
    ledger_profiles(query->plane->ledger, query->viewer, query->users.ids, query->users.count,
                    on_query_profiles_read, query);
}

static void presence_query_give_up(const struct presence_query_handler *handler,
                                   const struct slice *users, size_t count)
{
    if (handler->on_undecided)
        handler->on_undecided(handler->arg, users, count);
    handler->done(handler->arg, false, NULL, 0);
}

static void presence_query_end_undecided(struct pending_query *query)
{
    list_remove(&query->of_plane);
    presence_query_give_up(&query->handler, query->users.ids, query->users.count);
    presence_query_free(query);
}

/* Returns whether visibility changed meanwhile: then the query starts again, or is given up. */
static bool presence_query_restart_if_outdated(struct pending_query *query)
{
    if (!query->outdated)
        return false;
    if (query->attempts < QUERY_ATTEMPTS_MAX)
        presence_query_read_profiles(query);
    else
        presence_query_end_undecided(query);
    return true;
}

static void presence_query_decide(struct pending_query *query, size_t index,
                                  const struct ledger_profile *profile)
{
    query->decisions[index] = query->viewer.data
                                  ? privacy_decide(query->viewer, profile)
                                  : (struct privacy_decision){.view = PRIVACY_EVERYTHING};
    query->known[index] = (struct presence){
        .last_seen_ms = profile->last_seen_ms ? profile->last_seen_ms : TIME_NONE,
        .version = (int64_t)profile->presence_version,
    };
}

static void on_query_state_read(void *arg, enum state_status status,
                                const struct presence *presences, size_t count)
{
    struct pending_query *query = arg;
    if (presence_query_restart_if_outdated(query))
        return;
    list_remove(&query->of_plane);
    for (size_t i = 0; i < query->users.count; i++)
        query->known[i] =
            presence_query_result(query, i, status == STATE_OK && i < count ? &presences[i] : NULL);
    query->handler.done(query->handler.arg, true, query->known, query->users.count);
    presence_query_free(query);
}

/* Views are set before the state is read. */
static void presence_query_read_state(struct pending_query *query)
{
    if (query->handler.on_decided)
        query->handler.on_decided(query->handler.arg, query->users.ids, query->decisions,
                                  query->users.count);
    state_read(query->plane->store, query->users.ids, query->users.count, on_query_state_read,
               query);
}

/* Cached profiles may show less than the ledger, so views that hide are reviewed until the ledger answers. */
static void presence_query_review_hidden(struct presence_plane *plane, struct slice viewer,
                                         const struct id_list *hidden)
{
    for (size_t i = 0; i < hidden->count; i++)
        visibility_review_viewer(plane, hidden->ids[i], viewer);
}

/* Sets the views and reads the state, which may end the query: so the review has ids of its own. */
static void presence_query_read_state_for_now(struct pending_query *query)
{
    struct presence_plane *plane = query->plane;
    struct id_list viewer = {0}, hidden = {0};
    struct slice *ids = malloc(query->users.count * sizeof(*ids));
    size_t count = 0;
    for (size_t i = 0; ids && i < query->users.count; i++)
        if (query->decisions[i].view == PRIVACY_HIDDEN)
            ids[count++] = query->users.ids[i];
    bool copied =
        ids && id_list_copy(&viewer, &query->viewer, 1) && id_list_copy(&hidden, ids, count);
    free(ids);
    presence_query_read_state(query);
    if (copied)
        presence_query_review_hidden(plane, viewer.ids[0], &hidden);
    id_list_free(&viewer);
    id_list_free(&hidden);
}

/* A query that sets views needs a profile of each user; any other may leave users undecided. */
static void on_query_cached_profiles_read(void *arg, const struct cached_profile *profiles)
{
    struct pending_query *query = arg;
    size_t known = 0;
    if (presence_query_restart_if_outdated(query))
        return;
    for (size_t i = 0; profiles && i < query->users.count; i++) {
        query->undecided[i] = !profiles[i].known;
        known += profiles[i].known;
        if (profiles[i].known)
            presence_query_decide(query, i, &profiles[i].profile);
        else
            query->decisions[i] = (struct privacy_decision){.view = PRIVACY_HIDDEN};
        query->known[i].version = VERSION_UNREAD;
    }
    if (known == 0 || (known < query->users.count && query->handler.on_decided))
        presence_query_end_undecided(query);
    else if (query->handler.on_decided)
        presence_query_read_state_for_now(query);
    else
        presence_query_read_state(query);
}

/* For an unfiltered query the ledger only completes what the store has. */
static void presence_query_decide_without_ledger(struct pending_query *query)
{
    for (size_t i = 0; i < query->users.count; i++)
        presence_query_decide(query, i, &(struct ledger_profile){.user = query->users.ids[i]});
    presence_query_read_state(query);
}

static void on_query_profiles_read(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct pending_query *query = arg;
    if (!query->viewer.data && outcome->status != LEDGER_OK) {
        presence_query_decide_without_ledger(query);
        return;
    }
    if (cached_profiles_are_needed(outcome->status)) {
        cached_profiles_read(query->plane, query->viewer, query->users.ids, query->users.count,
                             on_query_cached_profiles_read, query);
        return;
    }
    if (outcome->status != LEDGER_OK) {
        presence_query_end_undecided(query);
        return;
    }
    if (presence_query_restart_if_outdated(query))
        return;
    for (size_t i = 0; i < query->users.count; i++)
        presence_query_decide(query, i, &outcome->profiles[i]);
    presence_query_read_state(query);
}

void presence_query(struct presence_plane *plane, struct slice viewer, const struct slice *users,
                    size_t count, const struct presence_query_handler *handler)
{
    if (count == 0) {
        handler->done(handler->arg, true, NULL, 0);
        return;
    }
    struct pending_query *query = presence_query_make(viewer, users, count);
    if (!query) {
        presence_query_give_up(handler, users, count);
        return;
    }
    query->plane = plane;
    query->handler = *handler;
    if (handler->on_decided)
        list_append(&plane->queries, &query->of_plane);
    presence_query_read_profiles(query);
}

void presence_query_outdate(struct presence_plane *plane, struct slice user_id)
{
    for (struct list *at = plane->queries.next; at != &plane->queries; at = at->next) {
        struct pending_query *query = CONTAINER_OF(at, struct pending_query, of_plane);
        query->outdated |= id_list_contains(&query->users, user_id);
    }
}

#include "api/service/relation_changes.h"

#include "api/contact_events.h"
#include "base/id_list.h"

#include <stdlib.h>

/* Lives from the start until `done` has run. */
struct relation_changes {
    struct session_context *sessions;
    enum ledger_relation_change change;
    relation_changes_done done;
    void *arg;
    struct id_list ids; /* two per pair; owned */
    size_t pair_count;
    struct ledger_relation_result results[LEDGER_RELATIONS_MAX];
    bool is_told[LEDGER_RELATIONS_MAX]; /* somebody of the pair is online, or that is unknown */
    size_t next;                        /* the first pair that was not looked at */
    unsigned telling;
    bool advancing;
};

static void free_relation_changes(struct relation_changes *changes)
{
    id_list_free(&changes->ids);
    free(changes);
}

static void finish_relation_changes(struct relation_changes *changes, enum ledger_status status)
{
    struct ledger_relations_outcome outcome = {status, changes->results,
                                               status == LEDGER_OK ? changes->pair_count : 0};
    changes->done(changes->arg, &outcome);
    free_relation_changes(changes);
}

/* ---- telling ---- */

static void advance_relation_changes(struct relation_changes *changes);

static void on_relation_told(void *arg)
{
    struct relation_changes *changes = arg;
    changes->telling--;
    advance_relation_changes(changes);
}

static void tell_relation(struct relation_changes *changes, size_t at)
{
    const struct ledger_relation_result *result = &changes->results[at];
    struct slice user = changes->ids.ids[2 * at], other = changes->ids.ids[2 * at + 1];
    enum visibility_cause cause = !result->changed                        ? VISIBILITY_REPEATED
                                  : changes->change == LEDGER_CONTACT_END ? VISIBILITY_CONTACT_ENDED
                                                                          : VISIBILITY_BLOCKED;
    changes->telling++;
    if (changes->change == LEDGER_CONTACT_MAKE)
        contact_events_tell_made(changes->sessions, user, other, result->changed, on_relation_told,
                                 changes);
    else
        contact_events_tell_changed(changes->sessions, cause, user, other, result->contact_removed,
                                    on_relation_told, changes);
}

/* A completion may run before its function returns, so only the outermost call goes on. */
static void advance_relation_changes(struct relation_changes *changes)
{
    if (changes->advancing)
        return;
    changes->advancing = true;
    while (changes->next < changes->pair_count && changes->telling < RELATION_CHANGES_TOLD_MAX) {
        size_t at = changes->next++;
        if (changes->is_told[at] && changes->results[at].status == LEDGER_OK)
            tell_relation(changes, at);
    }
    changes->advancing = false;
    if (changes->telling == 0 && changes->next == changes->pair_count)
        finish_relation_changes(changes, LEDGER_OK);
}

/* ---- who is online ---- */

static bool are_routed(const struct state_routes *routes, const struct slice *pair)
{
    for (size_t i = 0; i < routes->count; i++) {
        struct id_list users = {routes->items[i].users, routes->items[i].count};
        if (id_list_contains(&users, pair[0]) || id_list_contains(&users, pair[1]))
            return true;
    }
    struct id_list parked = {routes->parked, routes->parked_count};
    return id_list_contains(&parked, pair[0]) || id_list_contains(&parked, pair[1]);
}

/* While routes are unknown everybody is told, as far as that is possible. */
static void on_relation_routes(void *arg, enum state_status status,
                               const struct state_routes *routes)
{
    struct relation_changes *changes = arg;
    struct graph_reader *graphs = &changes->sessions->presence->graphs;
    for (size_t i = 0; i < changes->pair_count; i++) {
        const struct slice *pair = &changes->ids.ids[2 * i];
        changes->is_told[i] = status != STATE_OK || are_routed(routes, pair);
        if (changes->is_told[i])
            continue; /* telling drops the graphs */
        if (i == 0 || changes->is_told[i - 1] || !slice_equal(pair[0], pair[-2]))
            graph_reader_drop(graphs, pair[0]);
        graph_reader_drop(graphs, pair[1]);
    }
    advance_relation_changes(changes);
}

static void on_relations_stored(void *arg, const struct ledger_relations_outcome *outcome)
{
    struct relation_changes *changes = arg;
    if (outcome->status != LEDGER_OK) {
        finish_relation_changes(changes, outcome->status);
        return;
    }
    struct slice users[2 * LEDGER_RELATIONS_MAX];
    for (size_t i = 0; i < changes->ids.count; i++)
        users[i] = changes->ids.ids[i];
    if (outcome->count)
        memcpy(changes->results, outcome->results, outcome->count * sizeof(*outcome->results));
    state_routes(changes->sessions->delivery->store, users,
                 id_list_sort_unique(users, changes->ids.count), on_relation_routes, changes);
}

void relation_changes_start(struct session_context *sessions, enum ledger_relation_change change,
                            const struct slice *ids, size_t pair_count, relation_changes_done done,
                            void *arg)
{
    struct relation_changes *changes = calloc(1, sizeof(*changes));
    bool made = changes && pair_count <= LEDGER_RELATIONS_MAX &&
                id_list_copy(&changes->ids, ids, 2 * pair_count);
    if (!made) { /* the ledger refuses what is too much; without memory nobody is told */
        free(changes);
        ledger_relations_change(sessions->ledger, RELATION_CHANGES_ACTOR, change, ids, pair_count,
                                done, arg);
        return;
    }
    changes->sessions = sessions;
    changes->change = change;
    changes->pair_count = pair_count;
    changes->done = done;
    changes->arg = arg;
    ledger_relations_change(sessions->ledger, RELATION_CHANGES_ACTOR, change, changes->ids.ids,
                            pair_count, on_relations_stored, changes);
}

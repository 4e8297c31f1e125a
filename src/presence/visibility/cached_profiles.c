#include "presence/visibility/cached_profiles.h"

#include <stdlib.h>

struct recalling {
    struct presence_plane *plane;
    void (*done)(void *arg, const struct cached_profile *recalls);
    void *arg;
    struct slice viewer;
    size_t count;
    size_t waiting; /* answers owed, and one for the asking itself */
    struct cached_profile recalls[];
};

/* What one target's answer goes to. */
struct recalled {
    struct recalling *recalling;
    size_t index;
};

bool cached_profiles_help(enum ledger_status status)
{
    return status == LEDGER_BUSY || status == LEDGER_TIMEOUT || status == LEDGER_UNAVAILABLE;
}

static void answered(struct recalling *recalling)
{
    if (--recalling->waiting)
        return;
    recalling->done(recalling->arg, recalling->recalls);
    free(recalling);
}

/* Counted with the plane's other questions to the graph store, so that it is not left while one is open. */
static void ask(struct recalling *recalling, struct slice user_id, graph_lookup_done done,
                void *arg)
{
    recalling->waiting++;
    recalling->plane->graphs.pending++;
    graph_lookup(recalling->plane->graphs.store, user_id, done, arg);
}

static void heard_target(void *arg, enum state_status status, const struct graph_lookup *audience)
{
    struct recalled recalled = *(struct recalled *)arg;
    struct cached_profile *recall = &recalled.recalling->recalls[recalled.index];
    free(arg);
    recalled.recalling->plane->graphs.pending--;
    if (status == STATE_OK && audience->known) {
        const struct social_graph *graph = &audience->graph;
        recall->known = true;
        recall->profile.settings =
            (struct ledger_settings){(enum ledger_visibility)graph->presence_visibility,
                                     (enum ledger_visibility)graph->last_seen_visibility};
        recall->profile.are_contacts =
            id_list_contains(&graph->contacts, recalled.recalling->viewer);
        recall->profile.blocked_by_target =
            id_list_contains(&graph->blocked, recalled.recalling->viewer);
    }
    answered(recalled.recalling);
}

static void heard_viewer(void *arg, enum state_status status, const struct graph_lookup *audience)
{
    struct recalling *recalling = arg;
    recalling->plane->graphs.pending--;
    for (size_t i = 0; i < recalling->count && status == STATE_OK && audience->known; i++)
        recalling->recalls[i].profile.blocked_by_viewer =
            id_list_contains(&audience->graph.blocked, recalling->recalls[i].profile.user);
    answered(recalling);
}

/* Everybody sees themselves, whatever is cached. */
static void ask_target(struct recalling *recalling, size_t index)
{
    struct cached_profile *recall = &recalling->recalls[index];
    if (slice_equal(recall->profile.user, recalling->viewer)) {
        recall->known = true;
        return;
    }
    struct recalled *recalled = malloc(sizeof(*recalled));
    if (!recalled)
        return;
    *recalled = (struct recalled){recalling, index};
    ask(recalling, recall->profile.user, heard_target, recalled);
}

void cached_profiles_read(struct presence_plane *plane, struct slice viewer,
                          const struct slice *users, size_t count,
                          void (*done)(void *arg, const struct cached_profile *recalls), void *arg)
{
    struct recalling *recalling = NULL;
    if (plane->graphs.store && count <= CACHED_PROFILES_MAX)
        recalling = malloc(sizeof(*recalling) + count * sizeof(recalling->recalls[0]));
    if (!recalling) {
        done(arg, NULL);
        return;
    }
    *recalling = (struct recalling){
        .plane = plane, .done = done, .arg = arg, .viewer = viewer, .count = count, .waiting = 1};
    for (size_t i = 0; i < count; i++)
        recalling->recalls[i] =
            (struct cached_profile){.profile = {.user = users[i], .blocked_by_viewer = true}};
    ask(recalling, viewer, heard_viewer, recalling);
    for (size_t i = 0; i < count; i++)
        ask_target(recalling, i);
    answered(recalling);
}

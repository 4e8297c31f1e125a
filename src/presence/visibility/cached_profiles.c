#include "presence/visibility/cached_profiles.h"

#include <stdlib.h>

struct profiles_read {
    struct presence_plane *plane;
    cached_profiles_done done;
    void *arg;
    struct slice viewer;
    size_t count;
    size_t pending; /* lookups, plus one while they are being started */
    struct cached_profile profiles[];
};

/* The lookup of one target's graph. */
struct target_lookup {
    struct profiles_read *read;
    size_t index;
};

bool cached_profiles_are_needed(enum ledger_status status)
{
    return status == LEDGER_BUSY || status == LEDGER_TIMEOUT || status == LEDGER_UNAVAILABLE;
}

static void profiles_read_finish_one(struct profiles_read *read)
{
    if (--read->pending)
        return;
    read->done(read->arg, read->profiles);
    free(read);
}

/* Counted with the other pending operations of the graph store, so that a drain waits for it. */
static void profiles_read_lookup(struct profiles_read *read, struct slice user_id,
                                 graph_lookup_done done, void *arg)
{
    read->pending++;
    read->plane->graphs.pending++;
    graph_lookup(read->plane->graphs.store, user_id, done, arg);
}

static void on_target_graph_found(void *arg, enum state_status status,
                                  const struct graph_lookup *found)
{
    struct target_lookup target = *(struct target_lookup *)arg;
    struct slice viewer = target.read->viewer;
    struct cached_profile *cached = &target.read->profiles[target.index];
    free(arg);
    target.read->plane->graphs.pending--;
    if (status == STATE_OK && found->known) {
        const struct social_graph *graph = &found->graph;
        cached->known = true;
        cached->profile.settings =
            (struct ledger_settings){(enum ledger_visibility)graph->presence_visibility,
                                     (enum ledger_visibility)graph->last_seen_visibility};
        cached->profile.are_contacts = id_list_contains(&graph->contacts, viewer);
        cached->profile.blocked_by_target = id_list_contains(&graph->blocked, viewer);
    }
    profiles_read_finish_one(target.read);
}

static void on_viewer_graph_found(void *arg, enum state_status status,
                                  const struct graph_lookup *found)
{
    struct profiles_read *read = arg;
    read->plane->graphs.pending--;
    for (size_t i = 0; i < read->count && status == STATE_OK && found->known; i++)
        read->profiles[i].profile.blocked_by_viewer =
            id_list_contains(&found->graph.blocked, read->profiles[i].profile.user);
    profiles_read_finish_one(read);
}

/* Users always see themselves. Without memory for the lookup the target stays unknown. */
static void profiles_read_target(struct profiles_read *read, size_t index)
{
    struct cached_profile *cached = &read->profiles[index];
    if (slice_equal(cached->profile.user, read->viewer)) {
        cached->known = true;
        return;
    }
    struct target_lookup *target = malloc(sizeof(*target));
    if (!target)
        return;
    *target = (struct target_lookup){read, index};
    profiles_read_lookup(read, cached->profile.user, on_target_graph_found, target);
}

void cached_profiles_read(struct presence_plane *plane, struct slice viewer,
                          const struct slice *users, size_t count, cached_profiles_done done,
                          void *arg)
{
    struct profiles_read *read = NULL;
    if (plane->graphs.store && count <= CACHED_PROFILES_MAX)
        read = malloc(sizeof(*read) + count * sizeof(read->profiles[0]));
    if (!read) {
        done(arg, NULL);
        return;
    }
    *read = (struct profiles_read){
        .plane = plane, .done = done, .arg = arg, .viewer = viewer, .count = count, .pending = 1};
    for (size_t i = 0; i < count; i++)
        read->profiles[i] =
            (struct cached_profile){.profile = {.user = users[i], .blocked_by_viewer = true}};
    profiles_read_lookup(read, viewer, on_viewer_graph_found, read);
    for (size_t i = 0; i < count; i++)
        profiles_read_target(read, i);
    profiles_read_finish_one(read);
}

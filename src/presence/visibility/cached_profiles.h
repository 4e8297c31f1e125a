/*
 * Cached profiles: the privacy engine's input, from cached social graphs, while the ledger does not answer.
 *
 * A target's graph has its settings, its blocks and the contacts who are online; the viewer's graph has the
 * viewer's blocks. Together they give the privacy engine the same profile as the ledger, or one that shows
 * less: a viewer who is not cached as online, or whose own graph is not cached, counts as no contact. A
 * target whose graph is not cached is unknown.
 *
 * Part of the presence plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_CACHED_PROFILES_H
#define ROLLCALL_PRESENCE_VISIBILITY_CACHED_PROFILES_H

#include "ledger/ledger.h"
#include "presence/presence_plane.h"

#include <stdbool.h>

enum { CACHED_PROFILES_MAX = 1000 }; /* users in one read; a larger read fails */

/* A profile without last seen and version. */
struct cached_profile {
    bool known;
    struct ledger_profile profile;
};

/* One profile for each user; NULL: out of memory, or too many users. Borrowed for the completion. */
typedef void (*cached_profiles_done)(void *arg, const struct cached_profile *profiles);

/* Returns whether the ledger gave no answer, so that cached profiles are of use. */
bool cached_profiles_are_needed(enum ledger_status status);

/* `done` runs exactly once, possibly before this function returns. The ids must be valid until then. */
void cached_profiles_read(struct presence_plane *plane, struct slice viewer,
                          const struct slice *users, size_t count, cached_profiles_done done,
                          void *arg);

#endif

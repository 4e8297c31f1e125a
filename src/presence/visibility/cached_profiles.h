/*
 * Recall: who may see whom, from the graphs that are cached, for as long as the ledger cannot be asked.
 *
 * A target's graph says what it shows, whom it has blocked and, of its contacts, who is online; the viewer's
 * says whom the viewer has blocked. From both comes a profile for the privacy engine, as the ledger would
 * give it, except that in doubt it says less: a viewer who is not known to be online, or whose own graph
 * is not cached, is no contact. A target whose graph is not cached is not known at all.
 *
 * Part of the presence plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_CACHED_PROFILES_H
#define ROLLCALL_PRESENCE_VISIBILITY_CACHED_PROFILES_H

#include "ledger/ledger.h"
#include "presence/presence_plane.h"

#include <stdbool.h>

enum { CACHED_PROFILES_MAX = 1000 }; /* of one question; of more nothing is known */

/* A profile, where it is known. It knows no last seen and no version. */
struct cached_profile {
    bool known;
    struct ledger_profile profile;
};

/* Whether the ledger's answer was none, so that there is a point in recalling. */
bool cached_profiles_help(enum ledger_status status);

/* `done` runs once, also before this returns; NULL: memory is short, or there are too many. Ids must last
 * until then. */
void cached_profiles_read(struct presence_plane *plane, struct slice viewer,
                          const struct slice *users, size_t count,
                          void (*done)(void *arg, const struct cached_profile *recalls), void *arg);

#endif

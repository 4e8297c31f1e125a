/*
 * Doubts: users of whom nobody may have heard how they are.
 *
 * What the store was asked to do to a lease and did not answer it may have done all the same (state_store.h). Then
 * the user came or went, and no gateway knows, so none has told. Such users are read when the store answers again,
 * and what it says is told as if it had just changed; who heard it before sees that by its version.
 *
 * Paced by uncertain_users_run(), which the plane calls with each presence_reap(): one read at a time, of at most
 * UNCERTAIN_USERS_PER_READ, and none while the store may have come back without its memory (resync.h). Of more than
 * UNCERTAIN_USERS_MAX the newest are left to their next transition. Part of the presence plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_UNCERTAIN_USERS_H
#define ROLLCALL_PRESENCE_UNCERTAIN_USERS_H

#include "base/list.h"
#include "base/slice.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>

struct presence_plane;

enum { UNCERTAIN_USERS_MAX = 4096, UNCERTAIN_USERS_PER_READ = 100 };

/* What the plane keeps for it. */
struct uncertain_users {
    struct list users; /* the longest in doubt first */
    size_t count;
    bool reading;
};

void uncertain_users_init(struct uncertain_users *doubts);
void uncertain_users_free(struct uncertain_users *doubts);

/* `news` is what it is to be told as, of one who is there. */
void uncertain_users_add(struct presence_plane *plane, struct slice user_id,
                         enum presence_news news);

/* Does some of what is due. */
void uncertain_users_run(struct presence_plane *plane);

#endif

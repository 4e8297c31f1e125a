/*
 * Reviews: what may be seen of a user is different (settings, contacts, blocks), so every local
 * subscriber's view is decided anew. Who loses sight is told `unknown` once and then nothing; who gains
 * it is told how things stand.
 *
 * The ledger answers calls in any order, so the newest question counts: a review that another one of the
 * same user has overtaken is dropped, and a subscriber's own look that began before is made again
 * (presence_query_outdate()). A setting is never undone by an older reading of it.
 *
 * Privacy fails closed. While the ledger cannot say who may see, those who could see hear nothing, and
 * the review is tried again with each presence_reap(); without memory for a review they are told
 * `unknown`.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_REVIEW_H
#define ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_REVIEW_H

#include "presence/presence_plane.h"

/* Asks the ledger and sets every local view of this user. */
void visibility_review_start(struct presence_plane *plane, struct slice user_id);

/* The same for one viewer alone, who may see more than before; without memory they do not. */
void visibility_review_viewer(struct presence_plane *plane, struct slice user_id,
                              struct slice viewer);

/* Begins anew where a review of this user is under way, or waits. */
void visibility_review_again(struct presence_plane *plane, struct slice user_id);

/* Takes up what the ledger did not answer. */
void visibility_review_retry(struct presence_plane *plane);

/* Forgets what waits to be tried again; none may be under way. */
void visibility_review_forget_all(struct presence_plane *plane);

#endif

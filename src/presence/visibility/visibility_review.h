/*
 * Visibility reviews: a user's settings, contacts or blocks changed, so the view of every local subscriber
 * is decided again. Subscribers who lose visibility are told `unknown` once and then nothing; those who gain
 * it are told the current state.
 *
 * The ledger answers in any order, so the newest read counts: a review that a newer one of the same user has
 * overtaken is dropped, and a subscriber's own query that began before starts again
 * (presence_query_outdate()). An older read never undoes a newer setting.
 *
 * Privacy fails closed. While the ledger does not answer, subscribers with a view receive nothing, and the
 * review is tried again with each presence_reap(); without memory for a review they are told `unknown`.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_REVIEW_H
#define ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_REVIEW_H

#include "presence/presence_plane.h"

/* Reads the ledger and sets every local view of this user. */
void visibility_review_start(struct presence_plane *plane, struct slice user_id);

/* The same for a single viewer, who may see more than before; when out of memory, the view stays. */
void visibility_review_viewer(struct presence_plane *plane, struct slice user_id,
                              struct slice viewer);

/* Starts again if a review of this user is pending or waits. */
void visibility_review_again(struct presence_plane *plane, struct slice user_id);

/* Tries again reviews that failed, a bounded number of them; those whose viewers are gone end. */
void visibility_review_retry(struct presence_plane *plane);

/* Frees the reviews that wait for the next try; none may be pending. */
void visibility_review_free_all(struct presence_plane *plane);

#endif

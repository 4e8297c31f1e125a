/*
 * The last known presence of users: what this gateway has told, or could have told, its viewers. It answers queries,
 * marked as stale, while the state store is unavailable or has lost the user's record, and it is what the store is
 * compared with afterwards (settle_queue.h): no viewer is told a lower version than before.
 *
 * A fixed table of LAST_KNOWN_USERS entries in sets of LAST_KNOWN_WAYS; in a full set a new user replaces the
 * entry that was noted longest ago. Users are identified by a keyed 64-bit hash. Nothing from here is shown
 * except through the privacy engine. Part of the presence plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_LAST_KNOWN_H
#define ROLLCALL_PRESENCE_LAST_KNOWN_H

#include "protocol/presence.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAST_KNOWN_USERS = 65536, LAST_KNOWN_WAYS = 4 };

struct last_known;

/* Returns NULL when out of memory. */
struct last_known *last_known_make(uint64_t hash_seed);
void last_known_free(struct last_known **known);

/* Notes a presence that the store returned or published, unless a newer version was noted. `known` may be
 * NULL, here and below: then nothing is kept and nothing is found. */
void last_known_note(struct last_known *known, const struct presence *presence);

/* Finds the presence that was noted last; its user_id is the caller's slice. Returns false if there is none. */
bool last_known_find(struct last_known *known, struct slice user_id, struct presence *out);

/* Returns whether viewers were told another state with the version that the store has: the store's clock went back, and
 * whoever made the version did not know all of what was told. They would ignore the store's state. */
bool last_known_collides(const struct presence *told, const struct presence *stored);

/* Returns whether viewers were told something later than what the store has: it lost the record, or its version went
 * back; also if the versions collide. A record that expired is no loss if the user was seen later than the version that was told. */
bool last_known_is_ahead(const struct presence *told, const struct presence *stored);

/* Marks that the user is being settled with the store. Returns false if the user is unknown or marked already. */
bool last_known_begin_claim(struct last_known *known, struct slice user_id);
void last_known_end_claim(struct last_known *known, struct slice user_id);

#endif

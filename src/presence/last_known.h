/*
 * What was last known of users' presence, for when the state store is out of reach: an answer that is old
 * and says so is worth more than none.
 *
 * A fixed table of LAST_KNOWN_USERS places in sets of LAST_KNOWN_WAYS; a user who is new to a full set takes the
 * place of the one noted longest ago. Users are told apart by a keyed hash of 64 bits. Nothing here is ever
 * shown but through the privacy engine. Part of the presence plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_LAST_KNOWN_H
#define ROLLCALL_PRESENCE_LAST_KNOWN_H

#include "protocol/presence.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAST_KNOWN_USERS = 16384, LAST_KNOWN_WAYS = 4 };

struct last_known;

/* NULL when memory is short. */
struct last_known *last_known_make(uint64_t hash_seed);
void last_known_free(struct last_known **known);

/* Notes a presence as the store has it, unless a newer version of it is known. `known` may be NULL, here and
 * below: nothing is kept, and nothing found. */
void last_known_note(struct last_known *known, const struct presence *presence);

/* The presence of this user as it was last noted, in all but the user id, which is the caller's; false: none. */
bool last_known_find(const struct last_known *known, struct slice user_id, struct presence *out);

#endif

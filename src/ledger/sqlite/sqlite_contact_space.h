/*
 * How many contacts users may still get before the bound of a user (LEDGER_CONTACTS_MAX) could be reached.
 *
 * To count a user's contacts reads all of them. But a count stays useful: at least as many contacts as were missing then may be
 * added since, whatever was ended meanwhile. So a user is counted once, and again when these are used up; an import of users with
 * thousands of contacts would otherwise read each of them thousands of times.
 *
 * What is remembered is a lower bound. A transaction that is rolled back may bring ended contacts back, so it is forgotten then.
 * Users share the slots by a keyed hash; whoever comes last has the slot. One per writer, on its thread.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_CONTACT_SPACE_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_CONTACT_SPACE_H

#include "base/hash_key.h"

enum { SQLITE_CONTACT_SPACE_SLOTS = 1 << 16 }; /* a power of two */

struct sqlite_contact_space;

/* Returns NULL when out of memory; then users are counted each time. */
struct sqlite_contact_space *sqlite_contact_space_make(uint64_t seed);
void sqlite_contact_space_free(struct sqlite_contact_space **space);

/* Returns how many contacts the user may get for certain; 0: unknown. `space` may be NULL, as below. */
uint32_t sqlite_contact_space_get(struct sqlite_contact_space *space, struct slice user);

/* The user's contacts were counted. */
void sqlite_contact_space_put(struct sqlite_contact_space *space, struct slice user, uint32_t left);

/* The user gets a contact. */
void sqlite_contact_space_use(struct sqlite_contact_space *space, struct slice user);

void sqlite_contact_space_forget(struct sqlite_contact_space *space);

#endif

/*
 * Sight: who may see one user. What the privacy engine needs to know of the user, read from the ledger
 * once and then asked for any number of viewers, so that an event of one who types in a room costs one
 * reading and not one per viewer.
 *
 * A sight is as true as the moment it was read; whoever keeps one says for how long. The decision itself
 * is privacy.h's.
 */
#ifndef ROLLCALL_PRESENCE_SIGHT_H
#define ROLLCALL_PRESENCE_SIGHT_H

#include "ledger/ledger.h"

#include <stdbool.h>

struct sight;
struct sight_reading;

/* Reads who may see the user. `done` runs once and takes the sight; NULL: the ledger does not answer.
 * Returns the reading, which lasts until `done` runs; NULL (and no `done`) when memory is short. */
struct sight_reading *sight_read(struct ledger_client *ledger, struct slice user_id,
                                 void (*done)(void *arg, struct sight *sight), void *arg);

/* `done` will not run. */
void sight_forget(struct sight_reading **reading);

/* Whether this viewer may see the user at all. */
bool sight_allows(const struct sight *sight, struct slice viewer);

void sight_free(struct sight **sight);

#endif

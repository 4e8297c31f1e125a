/*
 * The slot, of a cluster's 16384, of a key or a sharded channel: CRC16 of the key, or of the text in its
 * first braces, so that keys that are used together can share a slot.
 */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_SLOT_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_SLOT_H

#include "base/slice.h"

#include <stdint.h>

enum { REDIS_SLOTS = 16384, REDIS_SLOT_TAG_LEN = 4 };

uint16_t redis_slot(struct slice key);

/* Writes a text, always the same one, whose slot is this: for keys that belong to a slot and not to a user. All processes
 * and versions must agree on it. */
void redis_slot_write_tag(char out[REDIS_SLOT_TAG_LEN], uint16_t slot);

#endif

/*
 * The slot, of a cluster's 16384, of a key or a sharded channel: CRC16 of the key, or of the text in its
 * first braces, so that keys that are used together can share a slot.
 */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_SLOT_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_SLOT_H

#include "base/slice.h"

#include <stdint.h>

enum { REDIS_SLOTS = 16384 };

uint16_t redis_slot(struct slice key);

#endif

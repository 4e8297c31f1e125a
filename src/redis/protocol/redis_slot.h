/*
 * Which of a cluster's 16384 slots a key or a sharded channel belongs to: CRC16 of the key, or of what
 * stands in its first braces, so that keys that must be touched together can share a slot.
 */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_SLOT_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_SLOT_H

#include "base/slice.h"

#include <stdint.h>

enum { REDIS_SLOTS = 16384 };

uint16_t redis_slot(struct slice key);

#endif

/*
 * Memory in pieces of few sizes, for a simulation that allocates some hundred times in every simulated second: a piece
 * that is freed is the next one of its size that is taken. What the pool has taken from the system it keeps.
 *
 * With sanitizers pool_checked.c takes each piece from malloc(3) instead, so that they see every piece.
 *
 * One thread. Pieces are aligned to 16 bytes.
 */
#ifndef ROLLCALL_SIM_MEMORY_POOL_H
#define ROLLCALL_SIM_MEMORY_POOL_H

#include <stddef.h>

/* Returns NULL when out of memory. */
void *pool_take(size_t bytes);

/* `before` may be NULL. The bytes that both sizes have are kept. */
void *pool_resize(void *data, size_t before, size_t bytes);

/* `bytes` as it was taken or resized. `data` may be NULL. */
void pool_give(void *data, size_t bytes);

#endif

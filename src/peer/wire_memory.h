/*
 * The memory of the lists of one value that was read from a wire (wire.h): allocated in pieces, freed together.
 *
 * All zero is valid and empty; `bytes_max` bounds it (0: by the input alone, since a list takes memory only for items
 * that have bytes). The holder frees it. One thread.
 */
#ifndef ROLLCALL_PEER_WIRE_MEMORY_H
#define ROLLCALL_PEER_WIRE_MEMORY_H

#include <stddef.h>

struct wire_memory_piece;

struct wire_memory {
    struct wire_memory_piece *first;
    size_t bytes;
    size_t bytes_max;
};

/* A wire_alloc, whose `arg` is the memory. */
void *wire_memory_alloc(void *memory, size_t bytes);

/* Leaves it empty. */
void wire_memory_free(struct wire_memory *memory);

#endif

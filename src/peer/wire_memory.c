#include "peer/wire_memory.h"

#include <stdlib.h>

struct wire_memory_piece {
    struct wire_memory_piece *next;
    _Alignas(max_align_t) char bytes[];
};

void *wire_memory_alloc(void *arg, size_t bytes)
{
    struct wire_memory *memory = arg;
    if (memory->bytes_max && bytes > memory->bytes_max - memory->bytes)
        return NULL;
    struct wire_memory_piece *piece = malloc(sizeof(*piece) + bytes);
    if (!piece)
        return NULL;
    piece->next = memory->first;
    memory->first = piece;
    memory->bytes += bytes;
    return piece->bytes;
}

void wire_memory_free(struct wire_memory *memory)
{
    while (memory->first) {
        struct wire_memory_piece *freed = memory->first;
        memory->first = freed->next;
        free(freed);
    }
    memory->bytes = 0;
}

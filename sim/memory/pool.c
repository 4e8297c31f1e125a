#include "memory/pool.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

/* Small pieces have sizes in steps, larger ones in powers of two; the largest are the system's own. */
enum {
    STEP_BYTES = 32,
    SMALL_BYTES_MAX = 2048,
    SMALL_CLASSES = SMALL_BYTES_MAX / STEP_BYTES + 1,
    LARGE_CLASSES = 9,
    LARGE_BYTES_MAX = SMALL_BYTES_MAX << LARGE_CLASSES,
    CHUNK_BYTES = LARGE_BYTES_MAX,
};

struct piece {
    struct piece *next;
};

static struct {
    struct piece *free[SMALL_CLASSES + LARGE_CLASSES];
    char *chunk;
    size_t left;
} pool;

static void *pool_map(size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static size_t pool_class(size_t bytes)
{
    size_t class = SMALL_CLASSES;
    if (bytes <= SMALL_BYTES_MAX)
        return bytes ? (bytes + STEP_BYTES - 1) / STEP_BYTES : 1;
    for (size_t most = 2 * SMALL_BYTES_MAX; bytes > most; most *= 2)
        class ++;
    return class;
}

static size_t pool_class_bytes(size_t class)
{
    return class < SMALL_CLASSES ? class * STEP_BYTES
                                 : (size_t)SMALL_BYTES_MAX << (class - SMALL_CLASSES + 1);
}

/* What is left of a chunk that is too short is lost: at most as much as one piece. */
static void *pool_carve(size_t bytes)
{
    if (pool.left < bytes) {
        char *chunk = pool_map(CHUNK_BYTES);
        if (!chunk)
            return NULL;
        pool.chunk = chunk;
        pool.left = CHUNK_BYTES;
    }
    pool.left -= bytes;
    return pool.chunk + pool.left;
}

void *pool_take(size_t bytes)
{
    if (bytes > LARGE_BYTES_MAX)
        return pool_map(bytes);
    size_t class = pool_class(bytes);
    struct piece *piece = pool.free[class];
    if (!piece)
        return pool_carve(pool_class_bytes(class));
    pool.free[class] = piece->next;
    return piece;
}

void pool_give(void *data, size_t bytes)
{
    struct piece *piece = data;
    if (!piece)
        return;
    if (bytes > LARGE_BYTES_MAX) {
        munmap(data, bytes);
        return;
    }
    size_t class = pool_class(bytes);
    piece->next = pool.free[class];
    pool.free[class] = piece;
}

void *pool_resize(void *data, size_t before, size_t bytes)
{
    bool is_pooled = data && before <= LARGE_BYTES_MAX && bytes <= LARGE_BYTES_MAX;
    if (is_pooled && pool_class(before) == pool_class(bytes))
        return data;
    void *moved = pool_take(bytes);
    if (!moved || !data)
        return moved;
    memcpy(moved, data, before < bytes ? before : bytes);
    pool_give(data, before);
    return moved;
}

/*
 * A blob is immutable bytes shared by reference count: what goes to many is encoded once.
 *
 * Its bytes are a complete WebSocket frame; `payload_at` says where the message itself starts, for
 * transports that put another envelope around it. Counts are plain integers: a blob never leaves
 * the worker that made it.
 */
#ifndef ROLLCALL_BASE_BLOB_H
#define ROLLCALL_BASE_BLOB_H

#include "base/slice.h"

#include <stdint.h>

struct blob {
    uint32_t refs;
    uint32_t len;
    uint8_t payload_at;
    char bytes[];
};

/* A blob with one reference holding `head` (at most 255 bytes) and then `payload`; NULL when memory
 * is short or they are too long. */
struct blob *blob_make(struct slice head, struct slice payload);

static inline struct blob *blob_share(struct blob *blob)
{
    blob->refs++;
    return blob;
}

void blob_drop(struct blob **blob);

static inline struct slice blob_payload(const struct blob *blob)
{
    return (struct slice){blob->bytes + blob->payload_at, blob->len - blob->payload_at};
}

#endif

/*
 * A blob is immutable bytes shared by reference count, so that a message to many connections is
 * encoded once.
 *
 * Its bytes are a complete WebSocket frame; `payload_at` is the offset of the message itself, for
 * transports that wrap it differently. The count is a plain integer: a blob never leaves the worker
 * that made it.
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

/* Makes a blob with one reference that holds `head` (at most 255 bytes) followed by `payload`.
 * Returns NULL when out of memory or when the two are too long. */
struct blob *blob_make(struct slice head, struct slice payload);

static inline struct blob *blob_share(struct blob *blob)
{
    blob->refs++;
    return blob;
}

/* Frees a blob without references. */
void blob_free(struct blob *blob);

static inline void blob_drop(struct blob **blob)
{
    struct blob *dropped = *blob;
    *blob = NULL;
    if (dropped && --dropped->refs == 0)
        blob_free(dropped);
}

static inline struct slice blob_payload(const struct blob *blob)
{
    return (struct slice){blob->bytes + blob->payload_at, blob->len - blob->payload_at};
}

#endif

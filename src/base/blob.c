#include "base/blob.h"

#include <stdlib.h>

struct blob *blob_make(struct slice head, struct slice payload)
{
    size_t len = head.len + payload.len;
    if (len > UINT32_MAX || head.len > UINT8_MAX)
        return NULL;
    struct blob *blob = malloc(sizeof(*blob) + len);
    if (!blob)
        return NULL;
    *blob = (struct blob){.refs = 1, .len = (uint32_t)len, .payload_at = (uint8_t)head.len};
    if (head.len)
        memcpy(blob->bytes, head.data, head.len);
    if (payload.len)
        memcpy(blob->bytes + head.len, payload.data, payload.len);
    return blob;
}

void blob_free(struct blob *blob)
{
    free(blob);
}

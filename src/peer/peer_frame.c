#include "peer/peer_frame.h"

bool peer_frame_write(struct buffer *out, const struct slice *pieces, size_t count)
{
    char length[PEER_FRAME_LENGTH_BYTES];
    size_t before = out->len, len = 0;
    for (size_t i = 0; i < count; i++)
        len += pieces[i].len;
    if (len > PEER_FRAME_BYTES_MAX)
        return false;
    for (int i = 0; i < PEER_FRAME_LENGTH_BYTES; i++)
        length[i] = (char)(len >> (8 * (PEER_FRAME_LENGTH_BYTES - 1 - i)));
    buffer_append(out, length, sizeof(length));
    for (size_t i = 0; i < count; i++)
        buffer_append_slice(out, pieces[i]);
    if (!out->failed)
        return true;
    out->failed = false; /* keep what was there before */
    out->len = before;
    return false;
}

enum peer_frame_result peer_frame_take(struct slice *input, struct slice *frame)
{
    if (input->len < PEER_FRAME_LENGTH_BYTES)
        return PEER_FRAME_INCOMPLETE;
    const unsigned char *head = (const unsigned char *)input->data;
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (len > PEER_FRAME_BYTES_MAX)
        return PEER_FRAME_TOO_LONG;
    if (input->len - PEER_FRAME_LENGTH_BYTES < len)
        return PEER_FRAME_INCOMPLETE;
    *frame = (struct slice){input->data + PEER_FRAME_LENGTH_BYTES, len};
    *input = slice_after(*input, PEER_FRAME_LENGTH_BYTES + len);
    return PEER_FRAME_WHOLE;
}

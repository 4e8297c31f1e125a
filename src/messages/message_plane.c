#include "messages/message_plane.h"

#include "messages/message_cursor.h"

bool message_plane_init(struct message_plane *plane, uint64_t seed)
{
    return message_cursor_init(plane, seed);
}

void message_plane_free(struct message_plane *plane)
{
    message_cursor_free(plane);
}

bool message_plane_idle(const struct message_plane *plane)
{
    return plane->sends == 0 && plane->cursors.size == 0;
}

/*
 * Shared by the files of the call plane: call_plane.c (connections, commands on a call, time),
 * call_plane_request.c (how a call starts to ring) call_losses.c (calls that the store has lost) and call_endings.c
 * (ends that it has lost). Nobody else includes this.
 */
#ifndef ROLLCALL_CALLS_CALL_PLANE_INTERNAL_H
#define ROLLCALL_CALLS_CALL_PLANE_INTERNAL_H

#include "calls/call_plane.h"

/* Makes this gateway responsible for a device that holds a party of this call. */
void call_plane_bind(struct call_plane *plane, const struct call_device *device,
                     const struct call *call);

/* Returns whether the events of a repeated command must be sent: without a binding the store's answer to the
 * first command was lost, and no event was sent. */
static inline bool call_plane_events_were_lost(const struct call_plane *plane,
                                               const struct call_device *device)
{
    return !call_bindings_find(&plane->bindings, &device->conn_id);
}

/* Writes the id of a new call to `out` and returns it. */
struct slice call_plane_make_id(struct call_plane *plane, char out[ULID_TEXT_LEN]);

#endif

/*
 * What the rooms of the call plane share: call_plane.c (connections, commands on a call, time) and
 * call_plane_request.c (how a call comes to ring). Nobody else includes this.
 */
#ifndef ROLLCALL_CALLS_CALL_PLANE_INTERNAL_H
#define ROLLCALL_CALLS_CALL_PLANE_INTERNAL_H

#include "calls/call_plane.h"

/* The device holds a party of a call from now on: this gateway speaks for it. */
void call_plane_bind(struct call_plane *plane, const struct call_device *device);

/* Of what a device has done again: whether it is not known here that it was done. Then the answer to the first time
 * was lost, and nobody has told of it. */
static inline bool call_plane_missed(const struct call_plane *plane,
                                     const struct call_device *device)
{
    return !call_bindings_has(&plane->bindings, &device->conn_id);
}

/* The id of a new call, written to `out`. */
struct slice call_plane_make_id(struct call_plane *plane, char out[ULID_TEXT_LEN]);

#endif

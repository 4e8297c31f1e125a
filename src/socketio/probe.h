/*
 * A probe: a WebSocket that may take over an Engine.IO session from polling.
 *
 *   probe_open() ──► SILENT ──"2probe": "3probe", polls are answered──► SPOKEN ──"5"──► CHOSEN
 *                                                                                         │ in a task
 *        any other packet, a closed connection, PROBE_TIME_MAX_MS: the probe ends;        ▼
 *        polling goes on                                         the client's connection has the socket
 *
 * Packets after "5" belong to the Engine.IO session even before the task has run. It has at most one probe. One
 * thread.
 */
#ifndef ROLLCALL_SOCKETIO_PROBE_H
#define ROLLCALL_SOCKETIO_PROBE_H

#include "api/api_context.h"

#include <stdbool.h>

/* How long an upgrade may take, as in the reference server. */
enum { PROBE_TIME_MAX_MS = 10000 };

struct probe;

/* Serves a WebSocket handshake that names an Engine.IO session. */
void probe_open(struct exchange *exchange, struct slice sid);

/* Serves a WebSocket handshake for an Engine.IO session that has a WebSocket already, or is about to get one: opens
 * it and closes it at once, as the reference server does. */
void probe_open_surplus(struct exchange *exchange);

/* Whether the client has begun to upgrade: polls must be answered at once. */
bool probe_has_spoken(const struct probe *probe);

/* Whether the client has upgraded, though the socket has not moved yet: it may not poll any more. */
bool probe_has_chosen(const struct probe *probe);

/* Closes the probe, since its Engine.IO session ends. */
void probe_abandon(struct probe **probe);

#endif

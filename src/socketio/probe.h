/*
 * A probe: a WebSocket that may take over an Engine.IO session from polling.
 *
 *   probe_open() ──► SILENT ──"2probe": "3probe", polls are released──► SPOKEN ──"5"──► CHOSEN
 *                                                                                         │ in a task
 *        anything else, the peer goes, PROBE_TIME_MAX_MS: closed;                         ▼
 *        the session stays with polling                          the session's connection has the socket
 *
 * What comes after "5" before the task has run is the session's already. There is one probe of a session
 * at a time. One thread.
 */
#ifndef ROLLCALL_SOCKETIO_PROBE_H
#define ROLLCALL_SOCKETIO_PROBE_H

#include "api/api_context.h"

#include <stdbool.h>

/* How long a client may take to change over, as the reference has it. */
enum { PROBE_TIME_MAX_MS = 10000 };

struct probe;

/* A WebSocket handshake that names a session. */
void probe_open(struct exchange *exchange, struct slice sid);

/* Whether it waits for the client to change over: polls should not keep it. */
bool probe_has_spoken(const struct probe *probe);

/* Whether the client has changed over, and only the socket has not yet: it may not poll any more. */
bool probe_has_chosen(const struct probe *probe);

/* Its session ends: closes it. */
void probe_abandon(struct probe **probe);

#endif

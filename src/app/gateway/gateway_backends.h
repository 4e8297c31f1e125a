/*
 * The backends of a gateway's ports: memory and mailboxes, or Redis, peer links and mailboxes. A part of the
 * composition root (gateway_compose.c); only it and worker_ports.c name these backends.
 *
 * A single process needs no further work. In a fleet a gateway claims its id at the start, passes the
 * addresses of its peers to the peer hub every second, and removes its keys when it leaves.
 */
#ifndef ROLLCALL_APP_GATEWAY_GATEWAY_BACKENDS_H
#define ROLLCALL_APP_GATEWAY_GATEWAY_BACKENDS_H

#include "net/listener.h"

#include <stdbool.h>

struct gateway;

/* Fills in the ports. Returns false when out of memory. */
bool gateway_backends_make(struct gateway *gateway);

/* Opens the listener for peer links, if this gateway has it. On failure returns false and explains in `error`. */
bool gateway_backends_listen(struct gateway *gateway, char error[LISTENER_ERROR_TEXT_MAX]);

/* Claims the gateway id. From here on only the gateway's thread uses the backends. */
void gateway_backends_start(struct gateway *gateway);

/* Call it once a second. */
void gateway_backends_tick(struct gateway *gateway);

/* Call it when all connections are gone: removes the gateway from the backends. Call it again until it returns true:
 * then that is done. */
bool gateway_backends_leave(struct gateway *gateway);

/* Completes pending operations, so the planes must still exist; after it no port may be used. */
void gateway_backends_free(struct gateway *gateway);

#endif

/*
 * What stands behind a gateway's ports: memory and mailboxes, or Redis, peer links and mailboxes. A part of
 * the composition root (gateway_compose.c), and the only file that names these backends.
 *
 * On its own a gateway has nothing to do for them. In a fleet it claims its id at the start, tells its peers'
 * addresses to the hub now and then, and takes its keys away when it leaves.
 */
#ifndef ROLLCALL_APP_GATEWAY_BACKENDS_H
#define ROLLCALL_APP_GATEWAY_BACKENDS_H

#include "net/listener.h"

#include <stdbool.h>

struct gateway;

/* Fills in the ports. False when memory is short. */
bool gateway_backends_make(struct gateway *gateway);

/* Opens the peer links' listener, where this gateway has it. False with a sentence in `error`. */
bool gateway_backends_listen(struct gateway *gateway, char error[LISTENER_ERROR_TEXT_MAX]);

/* On the gateway's thread, first: claims the id. */
void gateway_backends_start(struct gateway *gateway);

/* Once a second. */
void gateway_backends_tick(struct gateway *gateway);

/* Everybody has left: whether the backends know it. Called until it is so. */
bool gateway_backends_left(struct gateway *gateway);

/* Answers what is still under way, so the planes must stand; after it no port may be called. */
void gateway_backends_free(struct gateway *gateway);

#endif

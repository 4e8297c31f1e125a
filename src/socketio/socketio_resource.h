/* The HTTP requests of Socket.IO, all to /socket.io/: their routes, and the hook that runs when a head was read. */
#ifndef ROLLCALL_SOCKETIO_SOCKETIO_RESOURCE_H
#define ROLLCALL_SOCKETIO_SOCKETIO_RESOURCE_H

#include "http/http_route.h"

#include <stdbool.h>

enum { SOCKETIO_ROUTE_COUNT = 5 };

extern const struct http_route SOCKETIO_ROUTES[SOCKETIO_ROUTE_COUNT];

/* api_transport.on_head: registers a POST with its Engine.IO session, which takes one at a time. */
bool socketio_on_head(struct exchange *exchange);

#endif

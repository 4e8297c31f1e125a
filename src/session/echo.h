/* A connection that sends back every message through the same frames and queues as all others; conformance
 * suites use it. */
#ifndef ROLLCALL_SESSION_ECHO_H
#define ROLLCALL_SESSION_ECHO_H

#include "base/list.h"
#include "connection/connection.h"

/* Same as connection_open(); the connection owns itself and is in the list `all` until it is gone. */
bool echo_open(struct connection_context *context, struct list *all, struct stream *from,
               struct slice greeting);

/* Ends all connections in the list: the gateway is draining. */
void echo_end_all(struct list *all);

#endif

/* A connection that sends back every message it gets, through the same frames and queues as all
 * others: what conformance suites talk to. */
#ifndef ROLLCALL_SESSION_ECHO_H
#define ROLLCALL_SESSION_ECHO_H

#include "base/list.h"
#include "connection/connection.h"

/* As connection_open(); the connection owns itself and stands in the list `all` until it has gone. */
bool echo_open(struct connection_context *context, struct list *all, struct stream *from,
               struct slice greeting);

/* Ends all in the list: the gateway is draining. */
void echo_end_all(struct list *all);

#endif

/* A connection that sends back every message it gets, through the same frames and queues as all
 * others: what conformance suites talk to. */
#ifndef ROLLCALL_HANDLER_ECHO_H
#define ROLLCALL_HANDLER_ECHO_H

#include "connection/connection.h"

/* As connection_open(); the connection owns itself. */
bool echo_open(struct connection_context *context, struct stream *from, struct slice greeting);

#endif

/*
 * The checks from an HTTP request to a WebSocket, shared by all resources that become one: the handshake, the
 * origin, the capacity for another session. Each check answers the request and returns false when it fails.
 */
#ifndef ROLLCALL_API_HANDSHAKE_H
#define ROLLCALL_API_HANDSHAKE_H

#include "api/api_context.h"
#include "protocol/websocket/websocket_encode.h"

#include <stdbool.h>

enum { HANDSHAKE_GREETING_BYTES_MAX = 256 };

/* Answers with an error and counts a refused connection. */
void handshake_refuse(struct exchange **exchange, unsigned status, enum error_code code,
                      const char *text);

/* Checks the handshake as RFC 6455 requires and writes the accept key. */
bool handshake_check(struct exchange **exchange, char accept[WEBSOCKET_ACCEPT_BYTES + 1]);

/* Checks that the origin is allowed. */
bool handshake_check_origin(struct exchange **exchange);

/* Checks that the gateway takes sessions at present. */
bool handshake_check_capacity(struct exchange **exchange);

/* Reads the device that the request names into `text`; SLICE_NONE: it names none. Returns false, unanswered, when
 * the id is invalid. */
bool handshake_read_device(const struct exchange *exchange, char text[EXCHANGE_PARAMETER_BYTES_MAX],
                           struct slice *device);

/* Writes the 101 answer to `out`. */
struct slice handshake_greeting(char out[HANDSHAKE_GREETING_BYTES_MAX],
                                const struct exchange *exchange, const char *accept);

/* Ends an exchange whose stream was taken over: nothing is answered on it. */
void handshake_end(struct exchange **exchange);

#endif

/*
 * The steps from an HTTP request to a WebSocket, which every resource that becomes one takes: is it a
 * handshake, may this origin, is there room for somebody new. Each answers the request when it fails.
 */
#ifndef ROLLCALL_API_HANDSHAKE_H
#define ROLLCALL_API_HANDSHAKE_H

#include "api/api_context.h"
#include "protocol/websocket/websocket_encode.h"

#include <stdbool.h>

enum { HANDSHAKE_GREETING_BYTES_MAX = 256 };

/* An error, counted as a connection that was refused. */
void handshake_refuse(struct exchange **exchange, unsigned status, enum error_code code,
                      const char *text);

/* The handshake as RFC 6455 wants it; false after an error was answered. */
bool handshake_check(struct exchange **exchange, char accept[WEBSOCKET_ACCEPT_BYTES + 1]);

/* Likewise: the origin must be allowed. */
bool handshake_check_origin(struct exchange **exchange);

/* Likewise: the gateway takes sessions at present. */
bool handshake_check_capacity(struct exchange **exchange);

/* The 101 answer, in `out`. */
struct slice handshake_greeting(char out[HANDSHAKE_GREETING_BYTES_MAX],
                                const struct exchange *exchange, const char *accept);

/* The HTTP connection has given its stream away: nothing is answered on it any more. */
void handshake_end(struct exchange **exchange);

#endif

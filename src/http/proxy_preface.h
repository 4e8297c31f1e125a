/*
 * Connections from trusted proxies whose first bytes have not come yet. They may be a PROXY protocol header, which must
 * be taken from the socket before anything else reads it, TLS included.
 *
 *   accepted ──► waits ──header──► http_listener_accept_from(), with the address that it names
 *                  │ ──other bytes──► the same, with the proxy's address: X-Forwarded-For names the client
 *                  └── malformed: answered 400; too slow, too many: closed
 *
 * Bytes are looked at and stay in the kernel until a header is complete; then exactly the header is read.
 * Bounds: PROXY_PREFACES_MAX connections that wait, gateway.http.header_timeout for each. One thread.
 */
#ifndef ROLLCALL_HTTP_PROXY_PREFACE_H
#define ROLLCALL_HTTP_PROXY_PREFACE_H

#include "base/ip_address.h"
#include "http/http_listener.h"

enum { PROXY_PREFACES_MAX = 4096 };

/* Takes the descriptor of a connection that a trusted proxy with this address has made. */
void proxy_preface_accept(struct http_listener *listener, int fd, const struct ip_address *proxy);

/* Closes all that wait. */
void proxy_preface_close_all(struct http_listener *listener);

#endif

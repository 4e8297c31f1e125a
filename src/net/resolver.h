/*
 * Names to addresses, and addresses to sockets, without blocking a loop: a lookup runs on a short-lived
 * thread of its own, and its answer comes on the loop that asked. Numeric addresses need no thread.
 *
 * Who asks often must pace itself: each lookup costs a thread for as long as the name service takes.
 * A lookup may be cancelled at any time; the thread then ends unheard and frees what is left.
 */
#ifndef ROLLCALL_NET_RESOLVER_H
#define ROLLCALL_NET_RESOLVER_H

#include "net/loop.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { RESOLVER_ADDRESSES_MAX = 8, RESOLVER_HOST_MAX = 253 };

struct resolver_address {
    struct sockaddr_storage storage;
    socklen_t len;
};

struct resolver_lookup;

/* The completion of a lookup. The addresses last the call; where there are none, `error` says why in the
 * system's words. */
typedef void (*resolver_done)(void *arg, const struct resolver_address *addresses, size_t count,
                              const char *error);

/* False when the host is a name. */
bool resolver_numeric(const char *host, uint16_t port, struct resolver_address *out);

/* Begins to connect a socket to it: non-blocking, without Nagle's delay. The descriptor is writable once it
 * is connected; -1, with errno, when that is certain to fail. */
int resolver_connect(const struct resolver_address *address);

/* NULL when there is no memory, descriptor or thread, or the host is too long. Otherwise `done` is called
 * once, later, on the loop, and the lookup is then over and must not be cancelled any more. The addresses
 * last the call; where there are none, `error` says why in the system's words. */
struct resolver_lookup *resolver_start(struct loop *loop, const char *host, uint16_t port,
                                       resolver_done done, void *arg);

/* `done` will not be called. Harmless on NULL. */
void resolver_cancel(struct resolver_lookup **lookup);

#endif

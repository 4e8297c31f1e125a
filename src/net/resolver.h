/*
 * Resolves names to addresses and connects sockets without blocking a loop: a lookup runs on a short-lived
 * thread of its own, and its completion runs on the caller's loop. Numeric addresses need no thread.
 *
 * A caller that looks up often must pace itself: each lookup occupies a thread for as long as the name service
 * takes. A lookup may be cancelled at any time; the thread then ends without a completion and frees the rest.
 * Thread and loop share nothing but one lookup with its own eventfd, which may outlive the loop; a mailbox
 * (mailbox.h) may not.
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

/* The completion of a lookup. The addresses are valid until it returns; if there are none, `error` is the
 * system's text for the reason. */
typedef void (*resolver_done)(void *arg, const struct resolver_address *addresses, size_t count,
                              const char *error);

/* Returns false when the host is a name. */
bool resolver_numeric(const char *host, uint16_t port, struct resolver_address *out);

/* Begins to connect a non-blocking socket without Nagle's delay. The descriptor becomes writable once it is
 * connected. Returns -1, with errno, when connecting fails at once. */
int resolver_connect(const struct resolver_address *address);

/* Returns NULL when there is no memory, descriptor or thread, or the host is too long. Otherwise `done` runs
 * once, later, on the loop; the lookup is then over and must not be cancelled any more. */
struct resolver_lookup *resolver_start(struct loop *loop, const char *host, uint16_t port,
                                       resolver_done done, void *arg);

/* `done` will not run. Does nothing when *lookup is NULL. */
void resolver_cancel(struct resolver_lookup **lookup);

#endif

/*
 * A listener accepts connections on one address, shared with other workers and other processes by
 * SO_REUSEPORT: the kernel spreads new connections over all who listen.
 *
 * It takes at most LISTENER_ACCEPTS_PER_TURN a turn. When descriptors run out it waits
 * LISTENER_REST_MS instead of spinning, and says so. What accepted sockets inherit (TCP_NODELAY, the
 * bound on unsent bytes, keep-alive) is set once, on the listening socket.
 */
#ifndef ROLLCALL_NET_LISTENER_H
#define ROLLCALL_NET_LISTENER_H

#include "net/loop.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { LISTENER_ACCEPTS_PER_TURN = 128, LISTENER_REST_MS = 100, LISTENER_ERROR_TEXT_MAX = 512 };

struct listener_options {
    const char *address; /* HOST:PORT or [V6]:PORT; port 0: any that is free */
    uint16_t port;       /* not 0: instead of the one in `address` */
    int backlog;
    size_t unsent_bytes_max;
};

/* Takes the descriptor. */
typedef void (*listener_on_accepted)(void *arg, int fd);

struct listener {
    struct loop_source source;
    struct wheel_timer rest;
    struct loop *loop;
    listener_on_accepted on_accepted;
    void *arg;
    uint16_t port; /* the one it got */
};

/* False with a sentence in `error`. */
bool listener_open(struct listener *listener, struct loop *loop,
                   const struct listener_options *options, listener_on_accepted on_accepted,
                   void *arg, char error[LISTENER_ERROR_TEXT_MAX]);

/* Accepts what still waits, then closes. Harmless when it is not open. */
void listener_close(struct listener *listener);

#endif

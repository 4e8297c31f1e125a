/*
 * A listener accepts connections on one address. Others may join it, in other workers and other processes of the same
 * user (SO_REUSEPORT): the kernel then spreads new connections over all of them. One that does not join
 * fails with EADDRINUSE where another listens.
 *
 * It accepts at most LISTENER_ACCEPTS_PER_TURN per turn. When descriptors run out it pauses for
 * LISTENER_PAUSE_MS instead of spinning, and logs that. Options that accepted sockets inherit (TCP_NODELAY,
 * the bound on unsent bytes, keep-alive) are set once, on the listening socket.
 */
#ifndef ROLLCALL_NET_LISTENER_H
#define ROLLCALL_NET_LISTENER_H

#include "net/loop.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { LISTENER_ACCEPTS_PER_TURN = 128, LISTENER_PAUSE_MS = 100, LISTENER_ERROR_TEXT_MAX = 512 };

struct listener_options {
    const char *address;  /* HOST:PORT or [V6]:PORT; port 0: any free port */
    uint16_t port;        /* not 0: replaces the port of `address` */
    int accept_queue_max; /* connections that the kernel queues for accept(2) */
    size_t unsent_bytes_max;
    bool joins;  /* may join others on this port */
    bool shared; /* others may join it */
};

/* Takes the descriptor. */
typedef void (*listener_on_accepted)(void *arg, int fd);

struct listener {
    struct loop_source source;
    struct wheel_timer pause;
    struct loop *loop;
    listener_on_accepted on_accepted;
    void *arg;
    uint16_t port; /* the bound one */
};

/* Returns false, with errno and a sentence in `error`. */
bool listener_open(struct listener *listener, struct loop *loop,
                   const struct listener_options *options, listener_on_accepted on_accepted,
                   void *arg, char error[LISTENER_ERROR_TEXT_MAX]);

/* Accepts connections that still wait, then closes. Does nothing when it is not open. */
void listener_close(struct listener *listener);

#endif

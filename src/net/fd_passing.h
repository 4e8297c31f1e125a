/*
 * A passage takes connected sockets from other processes of this machine, each with bytes.
 *
 *   fd_passing_send(): connect, look who is there, one packet with bytes and descriptor, close
 *        │
 *        ▼  a Unix socket in the abstract namespace, which no file outlives
 *   fd_passing_open(): accept, look who it is ──► a guest ──its packet comes──► `received`
 *
 * Who may share a port by SO_REUSEPORT is of one user, and so is who may use a passage: both ends ask the
 * kernel for the other's user and go no further with a stranger, so that nobody gets a client's bytes by
 * taking the name of a process that has gone. A network namespace has its own passages, as it has its
 * own ports.
 *
 * Sending never waits: the kernel queues the packet, or the sender keeps what it has. Nothing is answered;
 * a packet whose receiver goes before it reads it is lost, and its peer's connection ends.
 *
 * Bounds: FD_PASSING_BACKLOG packets on their way, FD_PASSING_BYTES_MAX bytes of each, FD_PASSING_ACCEPTS_PER_TURN
 * a turn. A packet comes right after its connection; of FD_PASSING_SENDERS_MAX that make us wait for it all the
 * same, the oldest has to go. The struct is its owner's and needs no other memory at rest. One thread.
 */
#ifndef ROLLCALL_NET_FD_PASSING_H
#define ROLLCALL_NET_FD_PASSING_H

#include "base/slice.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    FD_PASSING_NAME_BYTES_MAX = 100, /* what an address of the family holds, and less */
    FD_PASSING_BACKLOG = 4096,
    FD_PASSING_BYTES_MAX = 128 * 1024, /* less than what a socket's default send buffer holds */
    FD_PASSING_ACCEPTS_PER_TURN = 128,
    FD_PASSING_SENDERS_MAX = 64,
    FD_PASSING_REST_MS = 100, /* when there are no descriptors left to accept with */
};

struct fd_passing;

/* Takes the descriptor; `bytes` last the call. */
typedef void (*fd_passing_on_received)(void *arg, int fd, struct slice bytes);

/* Another process that has come and not said anything yet. */
struct fd_passing_sender {
    struct loop_source source; /* its descriptor is -1 in a place that is free */
    struct fd_passing *passage;
    uint64_t number; /* of all that came */
};

struct fd_passing {
    struct loop_source source; /* its descriptor is -1 while closed */
    struct wheel_timer rest;
    struct loop *loop;
    struct fd_passing_sender guests[FD_PASSING_SENDERS_MAX];
    uint64_t guest_count; /* that ever came */
    fd_passing_on_received on_received;
    void *arg;
};

/* Opens it under a name that must be nobody's yet. False, with errno, leaves it closed. */
bool fd_passing_open(struct fd_passing *passage, struct loop *loop, struct slice name,
                     fd_passing_on_received on_received, void *arg);

/* What is on its way is lost. Harmless when it is not open. */
void fd_passing_close(struct fd_passing *passage);

/* Gives a socket, and bytes, to who has that name. False: nobody of our user has it, or there is no room;
 * nothing was sent. The descriptor stays the caller's to close in any case. */
bool fd_passing_send(struct slice name, int fd, struct slice bytes);

#endif

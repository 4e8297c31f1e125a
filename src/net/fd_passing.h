/*
 * Descriptor passing: takes connected sockets from other processes on this machine, each with bytes.
 *
 *   fd_passing_send(): connect, check the receiver's user, send one datagram with bytes and descriptor, close
 *        │
 *        ▼  a Unix socket in the abstract namespace, so no file is left behind
 *   fd_passing_open(): accept, check the sender's user ──► a sender ──its datagram arrives──► `on_received`
 *
 * Processes share a port by SO_REUSEPORT only if they run as the same user, and the same holds here: both
 * sides ask the kernel for the other's user and stop when it differs, so that another user cannot receive a
 * client's bytes under the name of a process that has exited. Each network namespace has its own names, as
 * it has its own ports.
 *
 * Sending never waits: the kernel queues the datagram, or the sender keeps its descriptor. There is no answer; a
 * datagram whose receiver exits before it reads it is lost, and the client's connection ends.
 *
 * Bounds: FD_PASSING_QUEUE_MAX datagrams in transit, FD_PASSING_BYTES_MAX bytes in each,
 * FD_PASSING_ACCEPTS_PER_TURN per turn. A datagram follows its connection at once; when
 * FD_PASSING_SENDERS_MAX senders have not sent theirs yet, a new one replaces the oldest. The
 * owner embeds the struct, which allocates nothing while it waits. One thread.
 */
#ifndef ROLLCALL_NET_FD_PASSING_H
#define ROLLCALL_NET_FD_PASSING_H

#include "base/slice.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    FD_PASSING_NAME_BYTES_MAX = 100, /* fits an address of AF_UNIX */
    FD_PASSING_QUEUE_MAX = 4096,
    FD_PASSING_BYTES_MAX = 128 * 1024, /* fits the default send buffer of a socket */
    FD_PASSING_ACCEPTS_PER_TURN = 128,
    FD_PASSING_SENDERS_MAX = 64,
    FD_PASSING_PAUSE_MS = 100, /* when there are no descriptors left to accept with */
};

struct fd_passing;

/* Takes the descriptor; `bytes` are valid until it returns. */
typedef void (*fd_passing_on_received)(void *arg, int fd, struct slice bytes);

/* Another process that has connected and not sent its datagram yet. */
struct fd_passing_sender {
    struct loop_source source; /* fd -1: this place is free */
    struct fd_passing *receiver;
    uint64_t number; /* in the order of connecting */
};

struct fd_passing {
    struct loop_source source; /* fd -1: closed */
    struct wheel_timer pause;
    struct loop *loop;
    struct fd_passing_sender senders[FD_PASSING_SENDERS_MAX];
    uint64_t sender_count; /* ever */
    fd_passing_on_received on_received;
    void *arg;
};

/* Opens it under a name that no other process may have. Returns false, with errno, and leaves it closed. */
bool fd_passing_open(struct fd_passing *receiver, struct loop *loop, struct slice name,
                     fd_passing_on_received on_received, void *arg);

/* Datagrams in transit are lost. Does nothing when it is not open. */
void fd_passing_close(struct fd_passing *receiver);

/* Sends a socket and bytes to the process with that name. Returns false, having sent nothing, when no
 * process of our user has the name or its queue is full. The caller closes its descriptor in any case. */
bool fd_passing_send(struct slice name, int fd, struct slice bytes);

#endif

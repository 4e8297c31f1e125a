/*
 * Simulated TCP sockets: streams of bytes between machines with the latency of their links, a window that fills when the
 * other side does not read, orderly ends and resets, and peers that are gone without a word.
 *
 *   CLOSED ──listen()──► LISTENING
 *      └──connect()──► CONNECTING ──answered──► CONNECTED ──► ended by either side, or reset
 *
 * What a socket has sent lies in the queue of its peer, which therefore also gets what a crashed process had sent before.
 */
#ifndef ROLLCALL_SIM_NETWORK_SOCKET_H
#define ROLLCALL_SIM_NETWORK_SOCKET_H

#include "kernel/descriptor.h"

enum {
    SOCKET_WINDOW_BYTES = 128 * 1024,
    SOCKET_RETRY_FIRST_US = 200 * 1000,
    SOCKET_RETRY_MAX_US = 1600 * 1000,
    SOCKET_CONNECT_RETRIES_MAX = 60,
};

/* Resets all connections of a process that match: with a machine, or with anybody (NULL). Both ends notice. */
void socket_cut_all(struct process *process, const struct machine *with);

/* Bytes that were sent on all sockets so far. */
uint64_t socket_bytes_sent(void);

#endif

/*
 * Many WebSocket clients on one thread.
 *
 * A pool holds up to `capacity` clients, numbered from 0. Each walks
 *
 *   CLOSED -> CONNECTING -> UPGRADING -> OPENING -> READY -> CLOSED
 *
 * `pool_open` starts the walk; the pool speaks HTTP and the opening of the dialect by itself, and
 * calls `ready`. From then on each text message is handed to `text`, after the pool has answered
 * pings and probes. A server that refuses, hangs up or breaks the protocol ends the program: no
 * measurement survives it.
 *
 * Clients come from 127.0.0.1, 127.0.0.2, … in blocks, so that one address's ports never run out.
 * A client owns heap memory only while half a message waits for its other half. Callbacks may
 * open, close and send on any client. Not thread-safe.
 */
#ifndef ROLLCALL_BENCH_POOL_H
#define ROLLCALL_BENCH_POOL_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "dialect.h"
#include "frame.h"

struct job;
struct pool;

enum client_state {
    CLIENT_CLOSED,
    CLIENT_CONNECTING,
    CLIENT_UPGRADING,
    CLIENT_OPENING,
    CLIENT_READY,
};

struct pool_listener {
    struct job *job;
    void (*ready)(struct job *job, size_t client);
    void (*text)(struct job *job, size_t client, const char *text, size_t count);
};

struct pool_settings {
    const struct dialect *dialect;
    uint16_t server_port;
    size_t capacity;
    const char *const *tokens; /* one per client, borrowed for the pool's life */
};

struct pool *pool_new(const struct pool_settings *settings, struct pool_listener listener);
void pool_free(struct pool **pool);

/* The client must be closed. */
void pool_open(struct pool *pool, size_t client);

/* Ends the TCP connection without a close frame, as a phone in a tunnel does. */
void pool_close(struct pool *pool, size_t client);

/* The client must be ready. */
void pool_send(struct pool *pool, size_t client, const struct frame *frame);

/* Waits up to `timeout_ms` for something to happen and handles all of it. */
void pool_turn(struct pool *pool, int timeout_ms);

size_t pool_ready_count(const struct pool *pool);

#endif

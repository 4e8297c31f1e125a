/*
 * Many WebSocket clients on one thread.
 *
 * A pool holds up to `capacity` clients, numbered from 0. The states of each:
 *
 *   CLOSED -> CONNECTING -> UPGRADING -> OPENING -> READY -> CLOSED
 *
 * pool_open() starts a client; the pool does the HTTP upgrade and the opening of the dialect, and then
 * calls `on_ready`. From then on it passes each text message to `on_text`, except pings and probes, which
 * it answers itself. A server that refuses, closes or breaks the protocol ends the program, because the
 * measurement is then worthless.
 *
 * Clients use the addresses 127.0.0.1, 127.0.0.2, … in blocks, so that no address runs out of ports.
 * A client owns heap memory only while a message is incomplete. Callbacks may
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
    void (*on_ready)(struct job *job, size_t client);
    void (*on_text)(struct job *job, size_t client, const char *text, size_t count);
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
void pool_open(struct pool *pool, size_t index);

/* Ends the TCP connection without a close frame, as a lost network does. */
void pool_close(struct pool *pool, size_t index);

/* The client must be ready. */
void pool_send(struct pool *pool, size_t index, const struct frame *frame);

/* Waits up to `timeout_ms` for events and handles all of them. */
void pool_turn(struct pool *pool, int timeout_ms);

size_t pool_ready_count(const struct pool *pool);

#endif

/*
 * Very many clients of a fleet in one process: connect, send heartbeats, come back when a server is lost.
 *
 *   waiting ──its time has come──► connecting ──► upgrading ──connection_established──► ready
 *      ▲                               │              │                                   │
 *      └──────lost or refused: another server, after a jittered delay──────────────────────┘
 *
 * A client takes 32 bytes here; its token is read from a mapped file when it is needed. Heartbeats are spread
 * evenly over the interval by the client's number, so that no timer per client is needed. Unlike pool.h this
 * survives lost connections, counts them, and knows many servers.
 *
 * Single-threaded. An error of this process's own resources ends the program (cost_fail).
 */
#ifndef ROLLCALL_BENCH_SWARM_H
#define ROLLCALL_BENCH_SWARM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../latency.h"

enum {
    SWARM_SERVERS_MAX = 1024,
    SWARM_SLOTS = 2048,
    SWARM_SLOT_MS = 250,
    SWARM_LATENCY_UNIT_US = 10
};

struct swarm_settings {
    uint16_t ports[SWARM_SERVERS_MAX];
    size_t server_count;
    size_t client_count;
    size_t first; /* line of the first client's token; also spreads clients over the servers */
    struct in_addr source; /* address of all clients */
    const char *token_file;
    uint32_t heartbeat_ms;
    size_t connects_at_once; /* at the start; a reconnect waits only for its delay */
    uint32_t
        reconnect_ms; /* the first delay is a random part of this; it doubles with each failure */
};

/* What happened since the last swarm_reset_counts(). */
struct swarm_counts {
    uint64_t heartbeats; /* answered ones */
    uint64_t unanswered; /* heartbeats without an answer when the next one was due */
    uint64_t lost;       /* ready connections that ended */
    uint64_t refused;    /* attempts that failed */
    uint64_t syncs;      /* sync_required received */
    uint64_t bytes_in;
    uint64_t bytes_out;
    struct latency
        round_trips; /* in units of SWARM_LATENCY_UNIT_US, so that it reaches to a second */
    uint32_t slowest_us[SWARM_SLOTS]; /* the slowest heartbeat of each SWARM_SLOT_MS */
    uint32_t comebacks
        [SWARM_SLOTS]; /* by time since the loss, in slots: clients that were ready again */
};

struct swarm;

struct swarm *swarm_new(const struct swarm_settings *settings);
void swarm_free(struct swarm **swarm);

/* Does what is due and handles one batch of events. Waits until something is due, at most some milliseconds. */
void swarm_turn(struct swarm *swarm);

/* Heartbeats are sent at this interval from now on. */
void swarm_set_heartbeat(struct swarm *swarm, uint32_t heartbeat_ms);

size_t swarm_ready_count(const struct swarm *swarm);
const struct swarm_counts *swarm_counts(const struct swarm *swarm);
void swarm_reset_counts(struct swarm *swarm);

#endif

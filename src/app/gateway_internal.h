/*
 * What a gateway is made of, for the files that make it: gateway.c (running), gateway_compose.c (putting
 * it together), gateway_backends.c (what its ports lead to), gateway_drain.c (leaving), and tests that look
 * inside.
 */
#ifndef ROLLCALL_APP_GATEWAY_INTERNAL_H
#define ROLLCALL_APP_GATEWAY_INTERNAL_H

#include "api/api_context.h"
#include "app/gateway.h"
#include "app/gateway_backends.h"
#include "app/gateway_messages.h"
#include "ledger/last_seen.h"
#include "ledger/ledger_request_inbox.h"
#include "net/fd_passing.h"
#include "net/listener.h"
#include "routing/delivery.h"
#include "session/session.h"
#include "socketio/polling.h"

/* Whether the state store may be told of the gateway: only while its id is its own. */
enum gateway_claim { GATEWAY_UNCLAIMED, GATEWAY_CLAIMED, GATEWAY_LEAVING, GATEWAY_LEFT };

struct gateway {
    struct gateway_parts parts;
    size_t index;
    char id[GATEWAY_ID_BYTES_MAX];
    struct loop loop;
    struct random random;
    struct metrics metrics;
    struct mailbox mailbox;
    struct stream_set streams;
    struct listener listener;
    struct fd_passing passage; /* from other processes on this port */
    struct encoder encoder;
    struct router router;
    struct bus *bus;
    struct state_store *store;
    struct redis_client *redis; /* these two of a fleet's; NULL on its own */
    struct redis_info *redis_info;
    struct ledger_request_inbox ledger_inbox; /* what the ledger has answered */
    struct ledger_client ledger;
    struct last_seen last_seen;
    struct verifier verifier;
    struct presence_plane presence;
    struct typing_plane typing;
    struct call_plane calls;
    struct chat_plane chats;
    struct gateway_messages messages;
    struct session_context handlers;
    struct api_context rest;
    struct polling_set polling;
    struct delivery delivery;
    struct wheel_timer housekeeping;
    struct wheel_timer reaping;
    struct mail drain_order;   /* its own, so that it needs no memory */
    atomic_bool drain_ordered; /* from any thread */
    struct wheel_timer drain_deadline;
    size_t connections_reported; /* what the store was told last, and when */
    int64_t reported_at_ms;
    int64_t gateways_learned_at_ms;
    enum gateway_claim claim;
};

/* Registers on the bus and starts the timers; gateway_run() does it first. */
void gateway_start(struct gateway *gateway);

/* The gateway as others are told of it, and telling them. */
struct gateway_info gateway_describe(const struct gateway *gateway);
void gateway_report(struct gateway *gateway);

/* What composition wires in. */
void gateway_gap(void *arg, struct slice topic);
void gateway_received(void *arg, struct slice topic, struct slice payload);
void gateway_close_session(void *arg, struct slice user_id, const struct ulid *conn_id);
void gateway_housekeep(struct wheel_timer *timer);
void gateway_reap(struct wheel_timer *timer);
void gateway_drain_time_is_up(struct wheel_timer *timer);

/* Likewise: sets the metrics that show how things stand rather than what has happened. */
void gateway_sample(void *arg);

/* On the gateway's own thread: tells everybody, spreads the closings, stops accepting. */
void gateway_start_drain(struct gateway *gateway);

/* Everybody has gone and what they left is written, or the time for that is up. */
bool gateway_is_drained(struct gateway *gateway);

#endif

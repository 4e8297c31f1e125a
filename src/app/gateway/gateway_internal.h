/*
 * The parts of a gateway, for the files that implement it: gateway.c (running), gateway_compose.c
 * (composition), gateway_backends.c (backends of its ports), gateway_drain.c (leaving), and for tests.
 */
#ifndef ROLLCALL_APP_GATEWAY_GATEWAY_INTERNAL_H
#define ROLLCALL_APP_GATEWAY_GATEWAY_INTERNAL_H

#include "api/api_context.h"
#include "app/control/control_socket.h"
#include "app/gateway/gateway.h"
#include "app/gateway/gateway_backends.h"
#include "app/gateway/gateway_hooks.h"
#include "app/gateway/gateway_messages.h"
#include "app/gateway/gateway_webhooks.h"
#include "app/gateway/memory_pressure.h"
#include "app/gateway/worker_ports.h"
#include "ledger/last_seen.h"
#include "ledger/ledger_request_inbox.h"
#include "net/fd_passing.h"
#include "net/listener.h"
#include "routing/delivery.h"
#include "routing/delivery_receiver.h"
#include "session/revocation_watch.h"
#include "session/session.h"
#include "socketio/socketio_adapter.h"
#include "socketio/socketio_context.h"

/* The gateway reports to the state store only while it is CLAIMED, that is, while its id is its own. */
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
    struct listener operations;   /* for operators; the first gateway of a process has it */
    struct fd_passing fd_passing; /* connections from other processes on this port */
    struct encoder encoder;
    struct router router;
    struct worker_ports ports;
    struct ledger_request_inbox ledger_inbox; /* finished ledger requests */
    struct ledger_client ledger;
    struct last_seen last_seen;
    struct verifier verifier;
    struct revocation_watch revocations;
    struct presence_plane presence;
    struct typing_plane typing;
    struct call_plane calls;
    struct chat_plane chats;
    struct gateway_messages messages;
    struct session_context sessions;
    struct gateway_hooks hooks;
    struct api_context rest;
    struct socketio_context socketio;
    struct socketio_adapter adapter;
    struct redis_pubsub *adapter_channels; /* NULL: socketio.adapter is off */
    struct delivery delivery;
    struct delivery_receiver receiver;
    struct everyone everyone;
    struct control_socket control[2]; /* the second where the ledger's file is elsewhere */
    struct webhook_sender *webhooks;  /* NULL: there are no endpoints */
    struct memory_pressure pressure;
    struct loop_task memory_check; /* soon after this worker has come to hold much more */
    struct wheel_timer housekeeping;
    struct wheel_timer reaping;
    struct mail drain_order;   /* part of the gateway, so that a drain needs no memory */
    atomic_bool drain_ordered; /* from any thread */
    struct wheel_timer drain_deadline;
    size_t connections_reported; /* the count in the last report to the store */
    bool draining_reported;
    int64_t reported_at_ms;
    int64_t gateways_read_at_ms;
    enum gateway_claim claim;
};

/* Subscribes on the bus and starts the timers; gateway_run() calls it first. */
void gateway_start(struct gateway *gateway);

/* The gateway as the store shows it to others, and the report of it to the store. */
struct gateway_info gateway_describe(const struct gateway *gateway);
void gateway_report(struct gateway *gateway);

/* Callbacks that gateway_compose.c and gateway_backends.c register. */
void gateway_on_gap(void *arg, struct slice topic);
void gateway_on_event(void *arg, struct slice topic, struct slice payload);
void gateway_close_session(void *arg, struct slice user_id, const struct ulid *conn_id,
                           enum closing_reason reason);
void gateway_on_displaced(void *arg, struct slice gateway_id, struct slice user_id,
                          const struct ulid *conn_id);
void gateway_housekeep(struct wheel_timer *timer);
void gateway_on_memory_grown(struct memory_account *account);
void gateway_check_memory(struct loop_task *task);
void gateway_reap(struct wheel_timer *timer);
void gateway_on_drain_timeout(struct wheel_timer *timer);

/* The same: sets the gauges. */
void gateway_sample(void *arg);

/* On the gateway's own thread: stops accepting, warns all clients and spreads the closings. */
void gateway_start_drain(struct gateway *gateway);

/* Ends the gateway's thread: nothing reaches the ledger or a client from here on. gateway_run() calls it last. */
void gateway_stop(struct gateway *gateway);

/* Returns true when all connections are gone and their data is written, or the drain timeout has passed. */
bool gateway_is_drained(struct gateway *gateway);

#endif

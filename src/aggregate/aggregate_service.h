/*
 * The aggregator's half: serves calls of gateways over peer links. The other end of aggregate_client.h.
 *
 *   links ──frames──▶ sessions ──calls──▶ the handler of the operation ──▶ a store or the bus on Redis
 *     ▲                                                                        │
 *     └──────────── answers, in any order; notices ◀───────────────────────────┘
 *
 * A session begins with an accepted hello, one of the same version; terms that differ from ours are logged. It ends with its link; calls under
 * way are then executed, and their answers dropped.
 *
 * A call is executed only while its caller waits for it. A link measures how much later than the earliest frames others
 * arrive (each has the sender's monotonic time; the smallest difference of the last minutes is the clocks'). A call that is
 * more than AGGREGATE_SILENCE_MS late was stuck: in a network, or in our own sockets while this process was stopped. Its
 * caller has cut the link and asked another aggregator, so it is answered as undone. So a process that was stopped for
 * minutes and continues writes nothing of what waited for it.
 *
 * Bounds: AGGREGATE_SERVICE_LINKS_MAX links, and AGGREGATE_SERVICE_PENDING_MAX that have not authenticated. A link with
 * AGGREGATE_SERVICE_LINK_CALLS_MAX unanswered calls, or AGGREGATE_SERVICE_LINK_BYTES_MAX of unread answers, is not read until
 * both have halved. A notice that finds AGGREGATE_SERVICE_NOTICE_BYTES_MAX queued closes its link: the gateway reads anew
 * what it may have missed. A frame that is none, or a call with a body that is none, closes its link too.
 *
 * One thread, that of the loop.
 */
#ifndef ROLLCALL_AGGREGATE_AGGREGATE_SERVICE_H
#define ROLLCALL_AGGREGATE_AGGREGATE_SERVICE_H

#include "aggregate/aggregate_frame.h"
#include "metrics/metrics.h"
#include "net/listener.h"
#include "peer/peer_link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AGGREGATE_SERVICE_LINKS_MAX = 32768,
    AGGREGATE_SERVICE_PENDING_MAX = 1024,
    AGGREGATE_SERVICE_LINK_CALLS_MAX = 16384,
    AGGREGATE_SERVICE_LINK_BYTES_MAX = 8 << 20,
    AGGREGATE_SERVICE_NOTICE_BYTES_MAX = 32 << 20,
};

struct aggregate_service;
struct aggregate_session;

/* One call that is being served. Whoever gets it answers it exactly once. */
struct aggregate_served {
    struct aggregate_session *session;
    uint64_t id;
    enum aggregate_operation operation;
};

struct aggregate_service_owner {
    /* A gateway said hello. Returns what is kept for the session; NULL refuses it for want of memory. */
    void *(*on_opened)(void *arg, struct aggregate_session *session,
                       const struct aggregate_frame *hello);
    /* The link has closed; `kept` is freed here. Answers of calls under way are dropped. */
    void (*on_closed)(void *arg, void *kept);
    /* Takes the call. Returns false, having taken nothing, when the body is none of the operation. */
    bool (*on_call)(void *arg, void *kept, struct aggregate_served *served, struct slice body);
};

struct aggregate_service_options {
    struct peer_link_options links;
    struct aggregate_terms terms;
    struct metrics *metrics;
    const char *address; /* HOST:PORT to listen on; port 0: any */
    const struct aggregate_service_owner *owner;
    void *arg;
};

/* What the options point to is borrowed for the service's life. Returns NULL with a reason in `error`. */
struct aggregate_service *aggregate_service_open(const struct aggregate_service_options *options,
                                                 char error[LISTENER_ERROR_TEXT_MAX]);

uint16_t aggregate_service_port(const struct aggregate_service *service);

/* Says to all gateways whether Redis answers. False at the start. */
void aggregate_service_set_available(struct aggregate_service *service, bool available);

/* Answers and frees the call. */
void aggregate_served_answer(struct aggregate_served *served, struct slice body);
void aggregate_served_undone(struct aggregate_served *served);

/* Says something to the session's gateway. */
void aggregate_session_notify(struct aggregate_session *session, enum aggregate_notice notice,
                              struct slice body);

/* The gateway's id, valid as long as the session. */
struct slice aggregate_session_gateway(const struct aggregate_session *session);

/* Accepts no more links and says to all gateways that this aggregator leaves. Calls are still served. */
void aggregate_service_drain(struct aggregate_service *service);

/* Returns whether no call is unanswered and all answers are sent. */
bool aggregate_service_is_drained(const struct aggregate_service *service);

/* Closes the links. Only while the loop makes no turn; calls under way must have been answered or be answered in
 * on_closed(). */
void aggregate_service_free(struct aggregate_service **service);

#endif

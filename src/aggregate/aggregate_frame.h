/*
 * What a gateway and an aggregator say to each other over a peer link: one frame is one of the kinds below.
 *
 *   gateway                                        aggregator
 *   HELLO version, who it is, its terms      ──►
 *                                            ◄──   WELCOME whether Redis answers, or REFUSAL with a reason
 *   CALL id, operation, when it was sent     ──►
 *                                            ◄──   ANSWER id, outcome; or UNDONE id: certainly nothing was done
 *                                            ◄──   NOTICE what the gateway did not ask for
 *   PING when it was sent                    ──►
 *                                            ◄──   PONG
 *
 * The terms are the settings with which both sides compute, and on which they should agree. What the body of a call, an
 * answer or a notice holds is its operation's matter (store/aggregate/, bus/aggregate/). An accepted frame has one form:
 * writing what was read gives the same bytes. A codec without I/O; slices that were read point into the input.
 *
 * A change of any frame or body raises AGGREGATE_VERSION; the two sides refuse each other then, and say so.
 */
#ifndef ROLLCALL_AGGREGATE_AGGREGATE_FRAME_H
#define ROLLCALL_AGGREGATE_AGGREGATE_FRAME_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    AGGREGATE_VERSION = 1,
    AGGREGATE_ID_BYTES_MAX = 128, /* of a gateway, an instance, a process */
    AGGREGATE_REASON_BYTES_MAX = 256,
};

enum aggregate_kind {
    AGGREGATE_HELLO,
    AGGREGATE_WELCOME,
    AGGREGATE_REFUSAL,
    AGGREGATE_CALL,
    AGGREGATE_ANSWER,
    AGGREGATE_UNDONE,
    AGGREGATE_NOTICE,
    AGGREGATE_PING,
    AGGREGATE_PONG,
    AGGREGATE_KIND_COUNT
};

/* id, name in the log and in metrics */
#define AGGREGATE_OPERATIONS(ROW)                                                                  \
    ROW(STATE_CLAIM, "state_claim")                                                                \
    ROW(STATE_PUT, "state_put")                                                                    \
    ROW(STATE_RELEASE, "state_release")                                                            \
    ROW(STATE_GONE, "state_gone")                                                                  \
    ROW(STATE_UNCLAIM, "state_unclaim")                                                            \
    ROW(STATE_OPEN, "state_open")                                                                  \
    ROW(STATE_RENEW, "state_renew")                                                                \
    ROW(STATE_SET_IDLE, "state_set_idle")                                                          \
    ROW(STATE_CLOSE, "state_close")                                                                \
    ROW(STATE_SETTLE, "state_settle")                                                              \
    ROW(STATE_READ, "state_read")                                                                  \
    ROW(STATE_SET_CALL, "state_set_call")                                                          \
    ROW(STATE_ROUTES, "state_routes")                                                              \
    ROW(STATE_LEASES, "state_leases")                                                              \
    ROW(STATE_FIND, "state_find")                                                                  \
    ROW(STATE_HISTORY, "state_history")                                                            \
    ROW(STATE_REAP, "state_reap")                                                                  \
    ROW(STATE_FORGET, "state_forget")                                                              \
    ROW(STATE_GATEWAYS, "state_gateways")                                                          \
    ROW(STATE_ONLINE, "state_online")                                                              \
    ROW(STATE_COUNT_ONLINE, "state_count_online")                                                  \
    ROW(GRAPH_LOOKUP, "graph_lookup")                                                              \
    ROW(GRAPH_PUT, "graph_put")                                                                    \
    ROW(GRAPH_DROP, "graph_drop")                                                                  \
    ROW(GRAPH_SET_ONLINE, "graph_set_online")                                                      \
    ROW(TYPING_START, "typing_start")                                                              \
    ROW(TYPING_STOP, "typing_stop")                                                                \
    ROW(TYPING_READ, "typing_read")                                                                \
    ROW(CALL_REQUEST, "call_request")                                                              \
    ROW(CALL_RING_UNHEARD, "call_ring_unheard")                                                    \
    ROW(CALL_DECLARE, "call_declare")                                                              \
    ROW(CALL_ANSWER, "call_answer")                                                                \
    ROW(CALL_REJECT, "call_reject")                                                                \
    ROW(CALL_END, "call_end")                                                                      \
    ROW(CALL_GET, "call_get")                                                                      \
    ROW(CALL_ATTACH, "call_attach")                                                                \
    ROW(CALL_DETACH, "call_detach")                                                                \
    ROW(CALL_RENEW, "call_renew")                                                                  \
    ROW(CALL_REAP, "call_reap")                                                                    \
    ROW(BUDGET_TAKE, "budget_take")                                                                \
    ROW(RECOVERY_PARK, "recovery_park")                                                            \
    ROW(RECOVERY_APPEND, "recovery_append")                                                        \
    ROW(RECOVERY_TAKE, "recovery_take")                                                            \
    ROW(TOPIC_PUBLISH, "topic_publish")                                                            \
    ROW(TOPIC_SUBSCRIBE, "topic_subscribe")                                                        \
    ROW(TOPIC_UNSUBSCRIBE, "topic_unsubscribe")

enum aggregate_operation {
#define AGGREGATE_OPERATION_ID(id, name) AGGREGATE_##id,
    AGGREGATE_OPERATIONS(AGGREGATE_OPERATION_ID)
#undef AGGREGATE_OPERATION_ID
        AGGREGATE_OPERATION_COUNT
};

enum aggregate_notice {
    AGGREGATE_AVAILABLE,   /* Redis answers the aggregator */
    AGGREGATE_UNAVAILABLE, /* it does not */
    AGGREGATE_FENCED,      /* another process has the gateway's id */
    AGGREGATE_CLAIMED,     /* body: what became of the gateway's claim */
    AGGREGATE_REGISTERED,  /* body: the gateway's record is in Redis */
    AGGREGATE_RIVAL,       /* body: the process that has the gateway's record. Does it still run? */
    AGGREGATE_EVENT,       /* body: topic, payload */
    AGGREGATE_LIVE,        /* body: the topic whose subscription is live, or live again */
    AGGREGATE_CALL_LOST, /* body: a connection whose device is in no call any more, of any gateway */
    AGGREGATE_LEAVING,   /* the aggregator ends: use another one */
    AGGREGATE_NOTICE_COUNT
};

/* The settings on which both sides should agree, in the order in which a hello has them. */
enum aggregate_term {
    AGGREGATE_LEASE_WINDOW_MS,
    AGGREGATE_OFFLINE_GRACE_MS,
    AGGREGATE_TYPING_TTL_MS,
    AGGREGATE_TYPING_RATE,
    AGGREGATE_RING_TIMEOUT_MS,
    AGGREGATE_RECONNECT_GRACE_MS,
    AGGREGATE_RECOVERY_MS,
    AGGREGATE_TERM_COUNT
};

struct aggregate_terms {
    int64_t values[AGGREGATE_TERM_COUNT];
};

/* Each kind uses the fields that its comment names; the others are zero. */
struct aggregate_frame {
    enum aggregate_kind kind;
    uint64_t version;        /* HELLO, WELCOME */
    struct slice gateway_id; /* HELLO, and the next three */
    struct slice instance;   /* names one life of the gateway, as redis_state.h has it */
    struct slice process;    /* empty: unknown */
    struct aggregate_terms terms;
    bool is_available;   /* WELCOME */
    struct slice reason; /* REFUSAL, for people to read */
    uint64_t id;         /* CALL, ANSWER, UNDONE */
    unsigned operation;  /* CALL: an enum aggregate_operation */
    unsigned notice;     /* NOTICE: an enum aggregate_notice */
    int64_t sent_ms;     /* CALL, PING: by the sender's monotonic clock */
    struct slice body;   /* CALL, ANSWER, NOTICE */
};

void aggregate_frame_write(struct buffer *out, const struct aggregate_frame *frame);

/* Returns false when the input is no frame of this version. */
bool aggregate_frame_read(struct slice in, struct aggregate_frame *frame);

const char *aggregate_operation_name(enum aggregate_operation operation);

/* The name of the setting. */
const char *aggregate_term_name(enum aggregate_term term);

#endif

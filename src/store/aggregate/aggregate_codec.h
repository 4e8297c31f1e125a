/*
 * What gateways and aggregators say about the stores: for each operation its arguments and its outcome, as unions, and one
 * description of each that serves both directions (peer/wire.h).
 *
 * A new operation is a row in AGGREGATE_OPERATIONS (aggregate/aggregate_frame.h), a row in the table of shapes
 * (aggregate_codec.c), a function that forwards it (aggregate_state.c, …) and one that serves it (aggregate_serve_….c). A new
 * field of a port's struct is one line in the function that passes the struct. Both raise AGGREGATE_VERSION.
 *
 * Reading trusts nothing: every text and list has the bound of its port. Slices that were read point into the input, lists
 * into the memory that the reader gives.
 */
#ifndef ROLLCALL_STORE_AGGREGATE_AGGREGATE_CODEC_H
#define ROLLCALL_STORE_AGGREGATE_AGGREGATE_CODEC_H

#include "aggregate/aggregate_frame.h"
#include "peer/wire.h"
#include "peer/wire_memory.h"
#include "store/budget_store.h"
#include "store/call_store.h"
#include "store/graph_store.h"
#include "store/recovery_store.h"
#include "store/state_store.h"
#include "store/typing_store.h"

enum {
    AGGREGATE_USERS_MAX = 1 << 18,       /* of one read or one question for routes */
    AGGREGATE_ITEMS_MAX = 1 << 18,       /* of a list in an outcome */
    AGGREGATE_RENEWALS_MAX = 512,        /* of one call */
    AGGREGATE_CAUSE_BYTES_MAX = 64,      /* of a transition in a history */
    AGGREGATE_MEMORY_MAX = 64 << 20,     /* of the lists of one frame */
    AGGREGATE_PID_BYTES_MAX = 256,       /* of a parked session's ids */
    AGGREGATE_TOPIC_BYTES_MAX = 1024,    /* of its subscriptions */
    AGGREGATE_EVENT_BYTES_MAX = 8 << 20, /* of its events */
};

struct aggregate_ids {
    const struct slice *items;
    size_t count;
};

struct aggregate_renewals {
    const struct lease_renewal *items;
    size_t count;
};

/* A user, one of their connections and a flag: what many operations are about. */
struct aggregate_subject {
    struct slice user_id;
    bool has_conn;
    struct ulid conn_id;
    bool flag; /* idle, in a call, online */
};

struct aggregate_put {
    struct gateway_info info;
    int64_t put_ms; /* the gateway's monotonic time; comes back when the record is in Redis */
};

struct aggregate_call_arguments {
    struct slice id; /* empty: the one call that the user is in */
    struct call_device device;
    struct slice other; /* the callee of a request */
};

union aggregate_arguments {
    struct aggregate_put put; /* STATE_CLAIM, STATE_PUT */
    struct slice process;     /* STATE_GONE */
    struct lease open;
    struct state_claim settle;
    struct aggregate_renewals renew;
    struct aggregate_subject subject; /* operations about one user of state, graph */
    struct aggregate_ids users;       /* STATE_READ, STATE_ROUTES */
    struct ulid conn_id;              /* STATE_FIND */
    uint64_t max;                     /* STATE_REAP, CALL_REAP */
    struct {
        struct slice after;
        uint64_t limit;
    } page; /* STATE_ONLINE */
    struct {
        struct slice user_id;
        uint64_t ticket;
        struct social_graph graph;
    } graph_put;
    struct {
        struct slice user_id;
        bool online;
        int64_t version;
    } graph_online;
    struct {
        struct slice chat_id;
        struct slice user_id;
        bool has_conn;
        struct ulid conn_id;
        uint64_t max;
    } typing;
    struct aggregate_call_arguments call;
    struct {
        const struct call_device *items;
        size_t count;
    } devices; /* CALL_RENEW */
    struct budget_claim claim;
    struct parked_session park;
    struct {
        struct aggregate_ids users;
        struct recovery_event event;
    } append;
    struct {
        struct slice user_id;
        struct slice pid;
        uint64_t offset;
        int64_t missed_ms; /* since when the gateway has missed no event; negative: it never has */
    } take;
};

union aggregate_outcome {
    enum state_status
        status; /* first in every outcome of the state, graph, typing and budget stores */
    struct {
        enum state_status status;
        struct state_transition transition;
    } transition;
    struct {
        enum state_status status;
        const struct state_transition *items;
        size_t count;
    } transitions;
    struct {
        enum state_status status;
        const struct lease_renewal *items; /* only their results */
        size_t count;
    } renewals;
    struct {
        enum state_status status;
        const struct presence *items;
        size_t count;
    } presences;
    struct {
        enum state_status status;
        struct state_routes routes;
    } routes;
    struct {
        enum state_status status;
        const struct lease *items;
        size_t count;
    } leases; /* STATE_FIND too */
    struct {
        enum state_status status;
        const struct state_history *items;
        size_t count;
    } history;
    struct {
        enum state_status status;
        const struct gateway_info *items;
        size_t count;
    } gateways;
    struct {
        enum state_status status;
        struct state_online page;
    } online;
    struct {
        enum state_status status;
        uint64_t count;
    } count;
    struct {
        enum state_status status;
        struct graph_lookup lookup;
    } lookup;
    struct {
        enum state_status status;
        struct typing_outcome outcome;
    } typing_start;
    struct {
        enum state_status status;
        bool stopped;
    } typing_stop;
    struct {
        enum state_status status;
        const struct typing_user *items;
        size_t count;
    } typing_users;
    struct {
        enum state_status status;
        struct budget_outcome outcome;
    } budget;
    struct {
        unsigned result; /* enum call_result */
        bool has_call;
        struct call call;
    } call;
    struct {
        const struct call *items;
        size_t count;
    } calls;
    struct {
        bool is_there;
        struct parked_session session;
    } taken;
};

/* Append a body to `out`, which is sticky in failure. */
void aggregate_codec_write_arguments(struct buffer *out, enum aggregate_operation operation,
                                     const union aggregate_arguments *arguments);
void aggregate_codec_write_outcome(struct buffer *out, enum aggregate_operation operation,
                                   const union aggregate_outcome *outcome);

/* Return false when the body is none of this operation. The caller frees the memory in both cases. */
bool aggregate_codec_read_arguments(struct slice body, enum aggregate_operation operation,
                                    union aggregate_arguments *arguments,
                                    struct wire_memory *memory);
bool aggregate_codec_read_outcome(struct slice body, enum aggregate_operation operation,
                                  union aggregate_outcome *outcome, struct wire_memory *memory);

/* Whether the operation is about a store; others are about topics (bus/aggregate/). */
bool aggregate_codec_has(enum aggregate_operation operation);

/* Whether the operation changes something: without an answer it may have. */
bool aggregate_codec_writes(enum aggregate_operation operation);

/* ---- the bodies of notices ---- */

/* AGGREGATE_CLAIMED: an enum redis_claim, and since when the id is taken. */
struct aggregate_claimed {
    unsigned result;
    struct slice since;
};

/* AGGREGATE_REGISTERED */
struct aggregate_registered {
    int64_t put_ms; /* of the put whose record is in Redis */
    bool made;      /* Redis did not have it before */
};

void aggregate_codec_pass_claimed(struct wire *wire, struct aggregate_claimed *claimed);
void aggregate_codec_pass_registered(struct wire *wire, struct aggregate_registered *registered);

#endif

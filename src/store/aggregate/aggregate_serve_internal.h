/*
 * The parts of the aggregator's half:
 *
 *   aggregate_serve.c         making and freeing, sessions, the table of operations
 *   aggregate_serve_state.c   the state store, the gateway's record
 *   aggregate_serve_stores.c  the other stores
 */
#ifndef ROLLCALL_STORE_AGGREGATE_AGGREGATE_SERVE_INTERNAL_H
#define ROLLCALL_STORE_AGGREGATE_AGGREGATE_SERVE_INTERNAL_H

#include "aggregate/aggregate_client.h"
#include "base/list.h"
#include "store/aggregate/aggregate_serve.h"

struct aggregate_stores {
    struct aggregate_stores_options options;
    struct state_store *state; /* of no gateway */
    struct graph_store *graph;
    struct typing_store *typing;
    struct call_store *calls;
    struct budget_store *budgets;
    struct recovery_store *recovery; /* NULL: no session is parked */
    struct list sessions;
};

/* When a put was sent, by the gateway's clock, and when it arrived here. */
struct aggregate_put_mark {
    int64_t put_ms;
    int64_t arrived_ms;
};

struct aggregate_stores_session {
    struct list place;
    struct aggregate_stores *stores;
    struct aggregate_session *session;
    struct aggregate_terms terms; /* the gateway's */
    struct state_store *state;    /* writes as the gateway */
    /* Keeps the gateway's record, while this aggregator is its home; NULL: it is not. Only this one has claimed the id: the
     * gateway itself stops writing when its record may have expired (aggregate_state.h), here and everywhere. */
    struct state_store *record;
    /* Of the puts that are not known to be in Redis: the first one, and the last one. */
    bool has_put;
    struct aggregate_put_mark first_put;
    struct aggregate_put_mark last_put;
    char instance[AGGREGATE_INSTANCE_LEN + 1];
    char process[AGGREGATE_ID_BYTES_MAX + 1];
    char gone[AGGREGATE_ID_BYTES_MAX +
              1]; /* a process of which the gateway says that it runs no more */
};

typedef void (*aggregate_serve)(struct aggregate_stores_session *session,
                                struct aggregate_served *served,
                                const union aggregate_arguments *arguments);

/* Encodes the outcome, answers and frees the call. */
void aggregate_serve_answer(struct aggregate_served *served,
                            const union aggregate_outcome *outcome);

/* Answers an operation that has no outcome. */
void aggregate_serve_done(struct aggregate_served *served);

/* ---- aggregate_serve_state.c ---- */

struct state_store *aggregate_serve_make_state(struct aggregate_stores_session *session);

void aggregate_serve_claim(struct aggregate_stores_session *session,
                           struct aggregate_served *served,
                           const union aggregate_arguments *arguments);
void aggregate_serve_put(struct aggregate_stores_session *session, struct aggregate_served *served,
                         const union aggregate_arguments *arguments);
void aggregate_serve_release(struct aggregate_stores_session *session,
                             struct aggregate_served *served,
                             const union aggregate_arguments *arguments);
void aggregate_serve_gone(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments);
void aggregate_serve_unclaim(struct aggregate_stores_session *session,
                             struct aggregate_served *served,
                             const union aggregate_arguments *arguments);
void aggregate_serve_open(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments);
void aggregate_serve_renew(struct aggregate_stores_session *session,
                           struct aggregate_served *served,
                           const union aggregate_arguments *arguments);
void aggregate_serve_settle(struct aggregate_stores_session *session,
                            struct aggregate_served *served,
                            const union aggregate_arguments *arguments);
void aggregate_serve_change(struct aggregate_stores_session *session,
                            struct aggregate_served *served,
                            const union aggregate_arguments *arguments);
void aggregate_serve_read(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments);
void aggregate_serve_user(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments);
void aggregate_serve_fleet(struct aggregate_stores_session *session,
                           struct aggregate_served *served,
                           const union aggregate_arguments *arguments);

/* ---- aggregate_serve_stores.c ---- */

bool aggregate_serve_make_stores(struct aggregate_stores *stores);

void aggregate_serve_graph(struct aggregate_stores_session *session,
                           struct aggregate_served *served,
                           const union aggregate_arguments *arguments);
void aggregate_serve_typing(struct aggregate_stores_session *session,
                            struct aggregate_served *served,
                            const union aggregate_arguments *arguments);
void aggregate_serve_call(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments);
void aggregate_serve_budget(struct aggregate_stores_session *session,
                            struct aggregate_served *served,
                            const union aggregate_arguments *arguments);
void aggregate_serve_recovery(struct aggregate_stores_session *session,
                              struct aggregate_served *served,
                              const union aggregate_arguments *arguments);

#endif

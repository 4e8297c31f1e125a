/* The functions that pass arguments and outcomes, one file for the state store and one for the others, and the parts that
 * they share. Each takes a union aggregate_arguments or a union aggregate_outcome. */
#ifndef ROLLCALL_STORE_AGGREGATE_AGGREGATE_CODEC_INTERNAL_H
#define ROLLCALL_STORE_AGGREGATE_AGGREGATE_CODEC_INTERNAL_H

#include "store/aggregate/aggregate_codec.h"

typedef void (*aggregate_pass_item)(struct wire *wire, void *item);

/* Passes a list of structs; use AGGREGATE_PASS_LIST(). */
void aggregate_pass_list(struct wire *wire, const void **items, size_t *count, size_t item_bytes,
                         size_t count_max, aggregate_pass_item pass);

#define AGGREGATE_PASS_LIST(wire, list, count, count_max, pass)                                    \
    do {                                                                                           \
        const void *passed_items = (list);                                                         \
        aggregate_pass_list(wire, &passed_items, &(count), sizeof(*(list)), count_max, pass);      \
        (list) = passed_items;                                                                     \
    } while (0)

static inline void aggregate_pass_user(struct wire *wire, struct slice *user)
{
    wire_text(wire, user, 1, USER_ID_BYTES_MAX);
}

static inline void aggregate_pass_optional_user(struct wire *wire, struct slice *user)
{
    wire_text(wire, user, 0, USER_ID_BYTES_MAX);
}

static inline void aggregate_pass_gateway(struct wire *wire, struct slice *gateway)
{
    wire_text(wire, gateway, 0, GATEWAY_ID_BYTES_MAX);
}

static inline void aggregate_pass_ulid(struct wire *wire, struct ulid *ulid)
{
    wire_bytes(wire, ulid->bytes, sizeof(ulid->bytes));
}

static inline void aggregate_pass_size(struct wire *wire, size_t *size)
{
    uint64_t number = *size;
    wire_number(wire, &number, SIZE_MAX);
    if (!wire->out)
        *size = (size_t)number;
}

void aggregate_pass_status(struct wire *wire, enum state_status *status);

/* ---- aggregate_codec_state.c ---- */

void aggregate_pass_put(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_process(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_open(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_renew(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_settle(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_subject(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_users(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_conn_id(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_max(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_page(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_no_arguments(struct wire *wire, union aggregate_arguments *arguments);

void aggregate_pass_transition(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_transitions(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_renewals(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_presences(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_routes(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_leases(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_history(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_gateways(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_online(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_count(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_only_status(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_no_outcome(struct wire *wire, union aggregate_outcome *outcome);

/* ---- aggregate_codec_stores.c ---- */

void aggregate_pass_graph_put(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_graph_online(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_typing(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_call_arguments(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_devices(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_claim(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_park(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_append(struct wire *wire, union aggregate_arguments *arguments);
void aggregate_pass_take(struct wire *wire, union aggregate_arguments *arguments);

void aggregate_pass_lookup(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_typing_start(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_typing_stop(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_typing_users(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_budget(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_call(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_calls(struct wire *wire, union aggregate_outcome *outcome);
void aggregate_pass_taken(struct wire *wire, union aggregate_outcome *outcome);

#endif

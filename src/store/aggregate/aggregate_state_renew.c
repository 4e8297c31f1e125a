#include "base/container.h"
#include "store/aggregate/aggregate_state_internal.h"

#include <stdlib.h>

/* One renew operation of the port: copies of its renewals, which go to several aggregators in several calls. */
struct renew_operation {
    state_renewals_done done;
    void *arg;
    size_t waiting;   /* renewals without a result, and one more until all are gathered */
    bool is_answered; /* for at least one of them */
    size_t count;
    struct lease_renewal renewals[];
};

/* The renewals of one call. */
struct renew_call {
    size_t count;
    struct gathered_renewal items[];
};

static void end_renewal(struct renew_operation *operation)
{
    if (--operation->waiting)
        return;
    operation->done(operation->arg,
                    operation->is_answered || !operation->count ? STATE_OK : STATE_UNAVAILABLE,
                    operation->renewals, operation->count);
    free(operation);
}

static void set_renewal_result(struct gathered_renewal *gathered, bool lost, bool failed)
{
    struct renew_operation *operation = gathered->operation;
    operation->renewals[gathered->index].lost = lost;
    operation->renewals[gathered->index].failed = failed;
    operation->is_answered |= !failed;
    end_renewal(operation);
}

/* ---- the filter ---- */

static size_t filter_bit(const struct ulid *conn_id)
{
    /* The end of an id is random. */
    const uint8_t *bytes = conn_id->bytes + sizeof(conn_id->bytes) - 2;
    return (size_t)(bytes[0] << 8 | bytes[1]) % AGGREGATE_FILTER_BITS;
}

static void note_in_filter(struct aggregate_state *state, const struct ulid *conn_id)
{
    size_t bit = filter_bit(conn_id);
    state->filter[bit / 8] |= (uint8_t)(1U << bit % 8);
}

static bool may_be_gathered(const struct aggregate_state *state, const struct ulid *conn_id)
{
    size_t bit = filter_bit(conn_id);
    return state->gathered_count && state->filter[bit / 8] >> bit % 8 & 1;
}

/* ---- calls ---- */

static void complete_renew_call(const struct aggregate_forwarded *forwarded,
                                const union aggregate_outcome *outcome)
{
    struct renew_call *call = forwarded->arg;
    bool is_whole = outcome && outcome->renewals.count == call->count;
    for (size_t i = 0; i < call->count; i++) {
        const struct lease_renewal *renewed = is_whole ? &outcome->renewals.items[i] : NULL;
        set_renewal_result(&call->items[i], renewed && renewed->lost, !renewed || renewed->failed);
    }
    free(call);
}

static void send_renew_call(struct aggregate_state *state, struct gathered_renewal *items,
                            size_t count)
{
    struct lease_renewal renewals[AGGREGATE_RENEWALS_MAX];
    struct renew_call *call = malloc(sizeof(*call) + count * sizeof(*items));
    if (!call) {
        for (size_t i = 0; i < count; i++)
            set_renewal_result(&items[i], false, true);
        return;
    }
    call->count = count;
    memcpy(call->items, items, count * sizeof(*items));
    for (size_t i = 0; i < count; i++)
        renewals[i] = items[i].operation->renewals[items[i].index];
    aggregate_forward_to(state->options.client, items[0].aggregator, AGGREGATE_STATE_RENEW,
                         &(union aggregate_arguments){.renew = {renewals, count}},
                         complete_renew_call, NULL, call);
}

static int compare_aggregators(const void *a, const void *b)
{
    const struct gathered_renewal *left = a, *right = b;
    return (left->aggregator > right->aggregator) - (left->aggregator < right->aggregator);
}

/* Sends all that waits, at most AGGREGATE_RENEWALS_MAX in one call. A completion may gather anew. */
static void flush_renewals(struct aggregate_state *state)
{
    size_t count = state->gathered_count;
    struct gathered_renewal *items = state->gathered;
    if (state->is_flushing || !count)
        return;
    loop_cancel_timer(state->options.loop, &state->gather_timer);
    state->is_flushing = true;
    state->gathered = state->sending;
    state->sending = items;
    state->gathered_count = 0;
    memset(state->filter, 0, sizeof(state->filter));
    for (size_t i = 0; i < count; i++)
        items[i].aggregator = aggregate_client_route(
            state->options.client,
            aggregate_slot_of(items[i].operation->renewals[items[i].index].user_id));
    qsort(items, count, sizeof(*items), compare_aggregators);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && items[to].aggregator == items[from].aggregator &&
                        to - from < AGGREGATE_RENEWALS_MAX;
             to++)
            ;
        send_renew_call(state, items + from, to - from);
    }
    state->is_flushing = false;
}

static void on_gather_timer(struct wheel_timer *timer)
{
    flush_renewals(CONTAINER_OF(timer, struct aggregate_state, gather_timer));
}

void aggregate_state_flush_before(struct aggregate_state *state, const struct ulid *conn_id)
{
    if (may_be_gathered(state, conn_id))
        flush_renewals(state);
}

/* ---- the operation ---- */

static struct renew_operation *make_renew_operation(const struct lease_renewal *renewals,
                                                    size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += renewals[i].user_id.len;
    struct renew_operation *operation =
        malloc(sizeof(*operation) + count * sizeof(*renewals) + bytes);
    if (!operation)
        return NULL;
    *operation = (struct renew_operation){.waiting = count + 1, .count = count};
    char *at = (char *)(operation->renewals + count);
    for (size_t i = 0; i < count; i++) {
        operation->renewals[i] = renewals[i];
        operation->renewals[i].user_id = slice_copy_to(&at, renewals[i].user_id);
    }
    return operation;
}

static void fail_renewals(struct lease_renewal *renewals, size_t count, state_renewals_done done,
                          void *arg)
{
    for (size_t i = 0; i < count; i++) {
        renewals[i].lost = false;
        renewals[i].failed = true;
    }
    done(arg, count ? STATE_UNAVAILABLE : STATE_OK, renewals, count);
}

void aggregate_state_renew(struct state_store *store, struct lease_renewal *renewals, size_t count,
                           state_renewals_done done, void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    bool may_renew =
        aggregate_client_usable(state->options.client) > 0 && aggregate_state_may_write(state);
    struct renew_operation *operation =
        count && may_renew ? make_renew_operation(renewals, count) : NULL;
    if (!operation) {
        fail_renewals(renewals, count, done, arg);
        return;
    }
    operation->done = done;
    operation->arg = arg;
    for (size_t i = 0; i < count; i++) {
        if (state->gathered_count == AGGREGATE_GATHERED_MAX)
            flush_renewals(state);
        if (state->gathered_count == AGGREGATE_GATHERED_MAX) { /* this runs inside a flush */
            set_renewal_result(&(struct gathered_renewal){operation, i, 0}, false, true);
            continue;
        }
        note_in_filter(state, &operation->renewals[i].conn_id);
        state->gathered[state->gathered_count++] = (struct gathered_renewal){operation, i, 0};
    }
    if (state->gathered_count && !wheel_is_set(&state->gather_timer))
        loop_set_timer(state->options.loop, &state->gather_timer,
                       aggregate_state_now_ms(state) + state->options.renewal_delay_ms);
    end_renewal(operation);
}

/* ---- life ---- */

bool aggregate_state_renew_init(struct aggregate_state *state)
{
    state->gather_timer.fire = on_gather_timer;
    state->gathered = malloc(AGGREGATE_GATHERED_MAX * sizeof(*state->gathered));
    state->sending = malloc(AGGREGATE_GATHERED_MAX * sizeof(*state->sending));
    return state->gathered && state->sending;
}

void aggregate_state_renew_stop(struct aggregate_state *state)
{
    size_t count = state->gathered_count;
    loop_cancel_timer(state->options.loop, &state->gather_timer);
    state->gathered_count = 0;
    for (size_t i = 0; i < count; i++)
        set_renewal_result(&state->gathered[i], false, true);
}

#include "base/container.h"
#include "store/aggregate/aggregate_forward.h"
#include "store/aggregate/aggregate_stores.h"

#include <stdlib.h>

struct aggregate_call_store {
    struct call_store store;
    struct aggregate_client *client;
    struct aggregate_listener listener;
    call_device_lost on_lost; /* of the last renewal; NULL: there was none */
    void *lost_arg;
};

static struct aggregate_call_store *call_store_of(struct call_store *store)
{
    return CONTAINER_OF(store, struct aggregate_call_store, store);
}

/* ---- operations with an answer ---- */

static void complete_answer(const struct aggregate_forwarded *forwarded,
                            const union aggregate_outcome *outcome)
{
    struct call_answer answer = {.result = forwarded->status == STATE_UNKNOWN ? CALL_UNKNOWN
                                                                              : CALL_UNAVAILABLE};
    if (outcome)
        answer.result = outcome->call.result;
    if (outcome && outcome->call.has_call)
        answer.call = &outcome->call.call;
    ((call_answer_done)forwarded->done)(forwarded->arg, &answer);
}

/* Operations of one user keep their order, so the user's slot decides. */
static void forward_call(struct call_store *store, enum aggregate_operation operation,
                         struct aggregate_call_arguments call, call_answer_done done, void *arg)
{
    aggregate_forward(call_store_of(store)->client, call.device.user_id, operation,
                      &(union aggregate_arguments){.call = call}, SLICE_NONE, complete_answer,
                      (aggregate_any_done)done, arg);
}

static void aggregate_call_request(struct call_store *store, struct slice id,
                                   const struct call_device *caller, struct slice callee,
                                   call_answer_done done, void *arg)
{
    forward_call(store, AGGREGATE_CALL_REQUEST,
                 (struct aggregate_call_arguments){id, *caller, callee}, done, arg);
}

static void aggregate_call_ring_unheard(struct call_store *store, struct slice id,
                                        const struct call_device *caller, struct slice callee,
                                        call_answer_done done, void *arg)
{
    forward_call(store, AGGREGATE_CALL_RING_UNHEARD,
                 (struct aggregate_call_arguments){id, *caller, callee}, done, arg);
}

static void aggregate_call_declare(struct call_store *store, struct slice id,
                                   const struct call_device *caller, call_answer_done done,
                                   void *arg)
{
    forward_call(store, AGGREGATE_CALL_DECLARE,
                 (struct aggregate_call_arguments){id, *caller, SLICE_NONE}, done, arg);
}

static void aggregate_call_answer(struct call_store *store, struct slice id,
                                  const struct call_device *callee, call_answer_done done,
                                  void *arg)
{
    forward_call(store, AGGREGATE_CALL_ANSWER,
                 (struct aggregate_call_arguments){id, *callee, SLICE_NONE}, done, arg);
}

static struct aggregate_call_arguments call_of_user(struct slice id, struct slice user_id)
{
    return (struct aggregate_call_arguments){.id = id, .device.user_id = user_id};
}

static void aggregate_call_reject(struct call_store *store, struct slice id, struct slice user_id,
                                  call_answer_done done, void *arg)
{
    forward_call(store, AGGREGATE_CALL_REJECT, call_of_user(id, user_id), done, arg);
}

static void aggregate_call_end(struct call_store *store, struct slice id, struct slice user_id,
                               call_answer_done done, void *arg)
{
    forward_call(store, AGGREGATE_CALL_END, call_of_user(id, user_id), done, arg);
}

static void aggregate_call_get(struct call_store *store, struct slice id, struct slice user_id,
                               call_answer_done done, void *arg)
{
    forward_call(store, AGGREGATE_CALL_GET, call_of_user(id, user_id), done, arg);
}

static void aggregate_call_attach(struct call_store *store, const struct call_device *device,
                                  call_answer_done done, void *arg)
{
    forward_call(store, AGGREGATE_CALL_ATTACH, (struct aggregate_call_arguments){.device = *device},
                 done, arg);
}

static void aggregate_call_detach(struct call_store *store, struct slice user_id,
                                  const struct ulid *conn_id, call_answer_done done, void *arg)
{
    forward_call(
        store, AGGREGATE_CALL_DETACH,
        (struct aggregate_call_arguments){.device = {.user_id = user_id, .conn_id = *conn_id}},
        done, arg);
}

/* ---- renewals and the reaper ---- */

static void on_call_notice(struct aggregate_listener *listener, size_t aggregator,
                           enum aggregate_notice notice, struct slice body)
{
    struct aggregate_call_store *calls =
        CONTAINER_OF(listener, struct aggregate_call_store, listener);
    struct ulid conn_id;
    (void)aggregator;
    if (notice != AGGREGATE_CALL_LOST || !calls->on_lost || body.len != sizeof(conn_id.bytes))
        return;
    memcpy(conn_id.bytes, body.data, sizeof(conn_id.bytes));
    calls->on_lost(calls->lost_arg, &conn_id);
}

static void aggregate_call_renew(struct call_store *store, const struct call_device *devices,
                                 size_t count, call_device_lost on_lost, void *arg)
{
    struct aggregate_call_store *calls = call_store_of(store);
    calls->on_lost = on_lost;
    calls->lost_arg = arg;
    if (count > CALL_RENEWALS_MAX)
        count = CALL_RENEWALS_MAX;
    if (count)
        aggregate_forward(calls->client, devices[0].user_id, AGGREGATE_CALL_RENEW,
                          &(union aggregate_arguments){.devices = {devices, count}}, SLICE_NONE,
                          NULL, NULL, NULL);
}

static void complete_reap(const struct aggregate_forwarded *forwarded,
                          const union aggregate_outcome *outcome)
{
    ((call_reap_done)forwarded->done)(forwarded->arg, outcome ? outcome->calls.items : NULL,
                                      outcome ? outcome->calls.count : 0);
}

static void aggregate_call_reap(struct call_store *store, size_t max, call_reap_done done,
                                void *arg)
{
    aggregate_forward(call_store_of(store)->client, SLICE("call_reap"), AGGREGATE_CALL_REAP,
                      &(union aggregate_arguments){.max = max}, SLICE_NONE, complete_reap,
                      (aggregate_any_done)done, arg);
}

/* ---- life ---- */

static void aggregate_call_free(struct call_store *store)
{
    struct aggregate_call_store *calls = call_store_of(store);
    aggregate_client_unlisten(&calls->listener);
    free(calls);
}

static const struct call_store_operations OPERATIONS = {
    .request = aggregate_call_request,
    .ring_unheard = aggregate_call_ring_unheard,
    .declare = aggregate_call_declare,
    .answer = aggregate_call_answer,
    .reject = aggregate_call_reject,
    .end = aggregate_call_end,
    .get = aggregate_call_get,
    .attach = aggregate_call_attach,
    .detach = aggregate_call_detach,
    .renew = aggregate_call_renew,
    .reap = aggregate_call_reap,
    .free = aggregate_call_free,
};

struct call_store *aggregate_call_make(struct aggregate_client *client)
{
    struct aggregate_call_store *calls = calloc(1, sizeof(*calls));
    if (!calls)
        return NULL;
    calls->store.operations = &OPERATIONS;
    calls->client = client;
    calls->listener.on_notice = on_call_notice;
    aggregate_client_listen(client, &calls->listener);
    return &calls->store;
}

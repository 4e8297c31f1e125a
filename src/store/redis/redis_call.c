#include "store/redis/redis_call.h"

#include "base/container.h"
#include "store/redis/redis_call_internal.h"
#include "store/redis/redis_lua.h"

#include <stdlib.h>

struct redis_call_backend *redis_call_backend_of(struct call_store *store)
{
    return CONTAINER_OF(store, struct redis_call_backend, store);
}

/* ---- operations on one call ---- */

/* Operations by a device pass the device and its connection to the script. */
static void run_call_operation(struct call_operation *operation, struct slice id,
                               struct slice nonce)
{
    struct slice conn = {operation->conn, ULID_TEXT_LEN};
    bool by_device = operation->device.data != NULL;
    redis_call_run(operation->calls, operation->verb, id,
                   by_device ? REDIS_ARGS(nonce, operation->user, operation->device, conn)
                             : REDIS_ARGS(nonce, operation->user, conn),
                   call_operation_on_reply, operation);
}

static void on_call_claim_read(void *arg, const struct resp_value *reply)
{
    struct call_operation *operation = arg;
    if (call_operation_read_claim(operation, reply))
        run_call_operation(operation, call_claim_call_id(&operation->claim),
                           call_claim_nonce(&operation->claim));
}

/* Returns NULL when out of memory; the plan is completed then. */
static struct call_operation *begin_call_operation(struct call_store *store,
                                                   const struct call_operation *plan)
{
    struct call_operation *operation = call_operation_make(redis_call_backend_of(store), plan);
    if (!operation)
        plan->done(plan->arg, &(struct call_answer){CALL_UNAVAILABLE, NULL});
    return operation;
}

/* Runs the plan on the call that it names, or on the one that its user is in. */
static void start_call_operation(struct call_store *store, const struct call_operation *plan)
{
    struct call_operation *operation = begin_call_operation(store, plan);
    if (!operation)
        return;
    if (operation->id.data)
        run_call_operation(operation, operation->id, SLICE(""));
    else
        redis_call_run_claim(operation->calls, operation->user,
                             REDIS_ARGS(SLICE("read"), SLICE("")), on_call_claim_read, operation);
}

/* ---- the port ---- */

static void start_call_request(struct call_store *store, struct slice id,
                               const struct call_device *caller, struct slice callee, bool unheard,
                               call_answer_done done, void *arg)
{
    struct call_operation *operation =
        begin_call_operation(store, &(struct call_operation){.done = done,
                                                             .arg = arg,
                                                             .id = id,
                                                             .user = caller->user_id,
                                                             .device = caller->device_id,
                                                             .callee = callee,
                                                             .conn_id = caller->conn_id,
                                                             .unheard = unheard});
    if (operation)
        redis_call_request(operation);
}

static void redis_call_store_request(struct call_store *store, struct slice id,
                                     const struct call_device *caller, struct slice callee,
                                     call_answer_done done, void *arg)
{
    start_call_request(store, id, caller, callee, false, done, arg);
}

static void redis_call_store_ring_unheard(struct call_store *store, struct slice id,
                                          const struct call_device *caller, struct slice callee,
                                          call_answer_done done, void *arg)
{
    start_call_request(store, id, caller, callee, true, done, arg);
}

static void redis_call_store_declare(struct call_store *store, struct slice id,
                                     const struct call_device *caller, call_answer_done done,
                                     void *arg)
{
    redis_call_store_request(store, id, caller, SLICE_NONE, done, arg);
}

static void redis_call_store_answer(struct call_store *store, struct slice id,
                                    const struct call_device *callee, call_answer_done done,
                                    void *arg)
{
    start_call_operation(store, &(struct call_operation){.done = done,
                                                         .arg = arg,
                                                         .verb = "answer",
                                                         .id = id,
                                                         .user = callee->user_id,
                                                         .device = callee->device_id,
                                                         .conn_id = callee->conn_id});
}

static void redis_call_store_reject(struct call_store *store, struct slice id, struct slice user_id,
                                    call_answer_done done, void *arg)
{
    start_call_operation(
        store, &(struct call_operation){
                   .done = done, .arg = arg, .verb = "reject", .id = id, .user = user_id});
}

static void redis_call_store_end(struct call_store *store, struct slice id, struct slice user_id,
                                 call_answer_done done, void *arg)
{
    start_call_operation(store,
                         &(struct call_operation){
                             .done = done, .arg = arg, .verb = "end", .id = id, .user = user_id});
}

static void redis_call_store_get(struct call_store *store, struct slice id, struct slice user_id,
                                 call_answer_done done, void *arg)
{
    start_call_operation(store,
                         &(struct call_operation){
                             .done = done, .arg = arg, .verb = "get", .id = id, .user = user_id});
}

static void redis_call_store_attach(struct call_store *store, const struct call_device *device,
                                    call_answer_done done, void *arg)
{
    start_call_operation(store, &(struct call_operation){.done = done,
                                                         .arg = arg,
                                                         .verb = "attach",
                                                         .user = device->user_id,
                                                         .device = device->device_id,
                                                         .conn_id = device->conn_id});
}

static void redis_call_store_detach(struct call_store *store, struct slice user_id,
                                    const struct ulid *conn_id, call_answer_done done, void *arg)
{
    start_call_operation(
        store,
        &(struct call_operation){
            .done = done, .arg = arg, .verb = "detach", .user = user_id, .conn_id = *conn_id});
}

static void redis_call_store_free(struct call_store *store)
{
    struct redis_call_backend *calls = redis_call_backend_of(store);
    calls->is_freed = true;
    redis_unobserve(&calls->observer);
    redis_calls_begin(calls);
    redis_call_end_paused(calls);
    redis_calls_end(calls);
}

static const struct call_store_operations OPERATIONS = {
    .request = redis_call_store_request,
    .ring_unheard = redis_call_store_ring_unheard,
    .declare = redis_call_store_declare,
    .answer = redis_call_store_answer,
    .reject = redis_call_store_reject,
    .end = redis_call_store_end,
    .get = redis_call_store_get,
    .attach = redis_call_store_attach,
    .detach = redis_call_store_detach,
    .renew = redis_call_renew,
    .reap = redis_call_reap,
    .free = redis_call_store_free,
};

struct call_store *redis_call_make(const struct redis_call_options *options)
{
    struct redis_call_backend *calls = malloc(sizeof(*calls));
    if (!calls)
        return NULL;
    *calls = (struct redis_call_backend){
        .store = {&OPERATIONS},
        .options = *options,
        .keys.cluster = redis_is_cluster(options->client),
    };
    list_init(&calls->paused);
    if (!redis_script_init(&calls->call_script, slice_of(REDIS_LUA_CALLS)) ||
        !redis_script_init(&calls->claim_script, slice_of(REDIS_LUA_CALL_CLAIM))) {
        free(calls);
        return NULL;
    }
    redis_call_quiet_init(calls);
    return &calls->store;
}

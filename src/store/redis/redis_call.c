#include "store/redis/redis_call.h"

#include "base/container.h"
#include "store/redis/redis_call_internal.h"
#include "store/redis/redis_lua.h"

#include <stdlib.h>

static struct call_port *port_of(struct call_store *store)
{
    return CONTAINER_OF(store, struct call_port, store);
}

/* ---- operations on one call ---- */

static void answered(void *arg, const struct resp_value *reply)
{
    call_errand_end_with(arg, reply);
}

/* The operation's words after the id. Devices and connections are there for those that want them. */
static void run(struct call_errand *errand, struct slice id, struct slice claim)
{
    struct slice conn = {errand->conn, ULID_TEXT_LEN};
    bool by_device = errand->device.data != NULL;
    call_run(errand->port, errand->operation, id,
             by_device ? REDIS_ARGS(claim, errand->user, errand->device, conn)
                       : REDIS_ARGS(claim, errand->user, conn),
             answered, errand);
}

static void read_claim(void *arg, const struct resp_value *reply)
{
    struct call_errand *errand = arg;
    if (call_errand_take_claim(errand, reply))
        run(errand, call_claim_id(&errand->claim), call_claim_key(&errand->claim));
}

/* An errand for the plan; NULL: answered, for want of memory. */
static struct call_errand *begin(struct call_store *store, const struct call_errand *plan)
{
    struct call_errand *errand = call_errand_make(port_of(store), plan);
    if (!errand)
        plan->done(plan->arg, &(struct call_answer){CALL_UNAVAILABLE, NULL});
    return errand;
}

/* Runs the plan's operation on the call it names, or on the one its user is in. */
static void start(struct call_store *store, const struct call_errand *plan)
{
    struct call_errand *errand = begin(store, plan);
    if (!errand)
        return;
    if (errand->id.data)
        run(errand, errand->id, SLICE(""));
    else
        call_run_claim(errand->port, errand->user, REDIS_ARGS(SLICE("read"), SLICE("")), read_claim,
                       errand);
}

/* ---- the port ---- */

static void request(struct call_store *store, struct slice id, const struct call_device *caller,
                    struct slice callee, call_answer_done done, void *arg)
{
    struct call_errand *errand = begin(store, &(struct call_errand){.done = done,
                                                                    .arg = arg,
                                                                    .id = id,
                                                                    .user = caller->user_id,
                                                                    .device = caller->device_id,
                                                                    .callee = callee,
                                                                    .conn_id = caller->conn_id});
    if (errand)
        call_request_start(errand);
}

static void declare(struct call_store *store, struct slice id, const struct call_device *caller,
                    call_answer_done done, void *arg)
{
    request(store, id, caller, SLICE_NONE, done, arg);
}

static void answer_call(struct call_store *store, struct slice id, const struct call_device *callee,
                        call_answer_done done, void *arg)
{
    start(store, &(struct call_errand){.done = done,
                                       .arg = arg,
                                       .operation = "answer",
                                       .id = id,
                                       .user = callee->user_id,
                                       .device = callee->device_id,
                                       .conn_id = callee->conn_id});
}

static void reject(struct call_store *store, struct slice id, struct slice user_id,
                   call_answer_done done, void *arg)
{
    start(store, &(struct call_errand){
                     .done = done, .arg = arg, .operation = "reject", .id = id, .user = user_id});
}

static void end_call(struct call_store *store, struct slice id, struct slice user_id,
                     call_answer_done done, void *arg)
{
    start(store, &(struct call_errand){
                     .done = done, .arg = arg, .operation = "end", .id = id, .user = user_id});
}

static void get(struct call_store *store, struct slice id, struct slice user_id,
                call_answer_done done, void *arg)
{
    start(store, &(struct call_errand){
                     .done = done, .arg = arg, .operation = "get", .id = id, .user = user_id});
}

static void attach(struct call_store *store, const struct call_device *device,
                   call_answer_done done, void *arg)
{
    start(store, &(struct call_errand){.done = done,
                                       .arg = arg,
                                       .operation = "attach",
                                       .user = device->user_id,
                                       .device = device->device_id,
                                       .conn_id = device->conn_id});
}

static void detach(struct call_store *store, struct slice user_id, const struct ulid *conn_id,
                   call_answer_done done, void *arg)
{
    start(
        store,
        &(struct call_errand){
            .done = done, .arg = arg, .operation = "detach", .user = user_id, .conn_id = *conn_id});
}

static void renew(struct call_store *store, const struct call_device *devices, size_t count,
                  call_device_lost lost, void *arg)
{
    call_renew_start(port_of(store), devices, count, lost, arg);
}

static void reap(struct call_store *store, size_t max, call_reap_done done, void *arg)
{
    call_reap_start(port_of(store), max, done, arg);
}

static void free_port(struct call_store *store)
{
    struct call_port *port = port_of(store);
    port->is_freed = true;
    call_port_hold(port);
    call_request_end_paused(port);
    call_port_let_go(port);
}

static const struct call_store_operations OPERATIONS = {
    .request = request,
    .declare = declare,
    .answer = answer_call,
    .reject = reject,
    .end = end_call,
    .get = get,
    .attach = attach,
    .detach = detach,
    .renew = renew,
    .reap = reap,
    .free = free_port,
};

struct call_store *redis_call_make(const struct redis_call_options *options)
{
    struct call_port *port = malloc(sizeof(*port));
    if (!port)
        return NULL;
    *port = (struct call_port){
        .store = {&OPERATIONS},
        .options = *options,
        .keys.cluster = redis_is_cluster(options->client),
    };
    list_init(&port->paused);
    if (!redis_script_init(&port->calls, slice_of(REDIS_LUA_CALLS)) ||
        !redis_script_init(&port->claims, slice_of(REDIS_LUA_CALL_CLAIM))) {
        free(port);
        return NULL;
    }
    return &port->store;
}

#include "store/memory/memory_calls.h"

#include "base/container.h"
#include "store/memory/memory_call_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct memory_calls {
    pthread_mutex_t lock;
    struct memory_call_table table;
};

struct memory_calls_port {
    struct call_store store;
    struct memory_calls *calls;
    const struct clock *clock;
};

struct memory_calls *memory_calls_make(const struct memory_calls_options *options)
{
    struct memory_calls *calls = calloc(1, sizeof(*calls));
    if (!calls)
        return NULL;
    pthread_mutex_init(&calls->lock, NULL);
    if (!memory_call_table_init(&calls->table, options))
        memory_calls_free(&calls);
    return calls;
}

void memory_calls_free(struct memory_calls **calls)
{
    struct memory_calls *freed = *calls;
    *calls = NULL;
    if (!freed)
        return;
    memory_call_table_free(&freed->table);
    pthread_mutex_destroy(&freed->lock);
    free(freed);
}

static struct memory_calls_port *memory_calls_port_of(struct call_store *store)
{
    return CONTAINER_OF(store, struct memory_calls_port, store);
}

static struct memory_call_table *lock_memory_call_table(struct memory_calls_port *port)
{
    pthread_mutex_lock(&port->calls->lock);
    return &port->calls->table;
}

/* Ends an operation: copies the call, unlocks the table and runs the completion. */
static void answer_memory_call(struct memory_calls_port *port, enum call_result result,
                               const struct memory_call *found, call_answer_done done, void *arg)
{
    struct memory_call copy;
    struct call borrowed;
    if (found)
        copy = *found;
    pthread_mutex_unlock(&port->calls->lock);
    if (found)
        borrowed = memory_call_borrow(&copy);
    done(arg, &(struct call_answer){result, found ? &borrowed : NULL});
}

static void memory_calls_request(struct call_store *store, struct slice id,
                                 const struct call_device *caller, struct slice callee,
                                 call_answer_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call *call;
    enum call_result result = memory_call_table_request(lock_memory_call_table(port), id, caller,
                                                        callee, false, port->clock, &call);
    answer_memory_call(port, result, call, done, arg);
}

static void memory_calls_ring_unheard(struct call_store *store, struct slice id,
                                      const struct call_device *caller, struct slice callee,
                                      call_answer_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call *call;
    enum call_result result = memory_call_table_request(lock_memory_call_table(port), id, caller,
                                                        callee, true, port->clock, &call);
    answer_memory_call(port, result, call, done, arg);
}

static void memory_calls_declare(struct call_store *store, struct slice id,
                                 const struct call_device *caller, call_answer_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call *call;
    enum call_result result =
        memory_call_table_declare(lock_memory_call_table(port), id, caller, port->clock, &call);
    answer_memory_call(port, result, call, done, arg);
}

static void memory_calls_answer(struct call_store *store, struct slice id,
                                const struct call_device *callee, call_answer_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call *call;
    enum call_result result =
        memory_call_table_answer(lock_memory_call_table(port), id, callee, port->clock, &call);
    answer_memory_call(port, result, call, done, arg);
}

static void memory_calls_reject(struct call_store *store, struct slice id, struct slice user_id,
                                call_answer_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call *call;
    enum call_result result =
        memory_call_table_reject(lock_memory_call_table(port), id, user_id, port->clock, &call);
    answer_memory_call(port, result, call, done, arg);
}

static void memory_calls_end(struct call_store *store, struct slice id, struct slice user_id,
                             call_answer_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call *call;
    enum call_result result =
        memory_call_table_end(lock_memory_call_table(port), id, user_id, port->clock, &call);
    answer_memory_call(port, result, call, done, arg);
}

static void memory_calls_get(struct call_store *store, struct slice id, struct slice user_id,
                             call_answer_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call *call;
    enum call_result result =
        memory_call_table_get(lock_memory_call_table(port), id, user_id, &call);
    answer_memory_call(port, result, call, done, arg);
}

static void memory_calls_attach(struct call_store *store, const struct call_device *device,
                                call_answer_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call *call;
    enum call_result result =
        memory_call_table_attach(lock_memory_call_table(port), device, port->clock, &call);
    answer_memory_call(port, result, call, done, arg);
}

static void memory_calls_detach(struct call_store *store, struct slice user_id,
                                const struct ulid *conn_id, call_answer_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call *call;
    enum call_result result = memory_call_table_detach(lock_memory_call_table(port), user_id,
                                                       conn_id, port->clock, &call);
    answer_memory_call(port, result, call, done, arg);
}

static void memory_calls_renew(struct call_store *store, const struct call_device *devices,
                               size_t count, call_device_lost on_lost, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct ulid lost[CALL_RENEWALS_MAX];
    size_t lost_count = 0;
    assert(count <= CALL_RENEWALS_MAX);
    struct memory_call_table *table = lock_memory_call_table(port);
    for (size_t i = 0; i < count; i++)
        if (!memory_call_table_renew(table, &devices[i], port->clock))
            lost[lost_count++] = devices[i].conn_id;
    pthread_mutex_unlock(&port->calls->lock);
    for (size_t i = 0; i < lost_count; i++)
        on_lost(arg, &lost[i]);
}

static void memory_calls_reap(struct call_store *store, size_t max, call_reap_done done, void *arg)
{
    struct memory_calls_port *port = memory_calls_port_of(store);
    struct memory_call copies[CALL_REAP_MAX];
    struct call ended[CALL_REAP_MAX];
    const struct memory_call *call;
    size_t count = 0;
    if (max > CALL_REAP_MAX)
        max = CALL_REAP_MAX;
    struct memory_call_table *table = lock_memory_call_table(port);
    while (count < max && (call = memory_call_table_reap_one(table, port->clock)))
        copies[count++] = *call;
    memory_call_table_forget(table, port->clock);
    pthread_mutex_unlock(&port->calls->lock);
    for (size_t i = 0; i < count; i++)
        ended[i] = memory_call_borrow(&copies[i]);
    done(arg, ended, count);
}

static void memory_calls_free_port(struct call_store *store)
{
    free(memory_calls_port_of(store));
}

static const struct call_store_operations MEMORY_CALLS_OPERATIONS = {
    .request = memory_calls_request,
    .ring_unheard = memory_calls_ring_unheard,
    .declare = memory_calls_declare,
    .answer = memory_calls_answer,
    .reject = memory_calls_reject,
    .end = memory_calls_end,
    .get = memory_calls_get,
    .attach = memory_calls_attach,
    .detach = memory_calls_detach,
    .renew = memory_calls_renew,
    .reap = memory_calls_reap,
    .free = memory_calls_free_port,
};

struct call_store *memory_calls_store(struct memory_calls *calls, const struct clock *clock)
{
    struct memory_calls_port *port = malloc(sizeof(*port));
    if (!port)
        return NULL;
    *port = (struct memory_calls_port){{&MEMORY_CALLS_OPERATIONS}, calls, clock};
    return &port->store;
}

#include "store/memory/memory_calls.h"

#include "base/container.h"
#include "store/memory/memory_call_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct memory_calls {
    pthread_mutex_t lock;
    struct memory_call_table book;
};

struct memory_port {
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
    if (!memory_call_table_init(&calls->book, options))
        memory_calls_free(&calls);
    return calls;
}

void memory_calls_free(struct memory_calls **calls)
{
    struct memory_calls *freed = *calls;
    *calls = NULL;
    if (!freed)
        return;
    memory_call_table_free(&freed->book);
    pthread_mutex_destroy(&freed->lock);
    free(freed);
}

static struct memory_port *port_of(struct call_store *store)
{
    return CONTAINER_OF(store, struct memory_port, store);
}

static struct memory_call_table *lock(struct memory_port *port)
{
    pthread_mutex_lock(&port->calls->lock);
    return &port->calls->book;
}

static void unlock(struct memory_port *port)
{
    pthread_mutex_unlock(&port->calls->lock);
}

/* Ends an operation: what it found is copied, the lock given back, the completion run. */
static void answer(struct memory_port *port, enum call_result result,
                   const struct memory_call *found, call_answer_done done, void *arg)
{
    struct memory_call copy;
    struct call view;
    if (found)
        copy = *found;
    unlock(port);
    if (found)
        view = memory_call_view(&copy);
    done(arg, &(struct call_answer){result, found ? &view : NULL});
}

static void memory_request(struct call_store *store, struct slice id,
                           const struct call_device *caller, struct slice callee,
                           call_answer_done done, void *arg)
{
    struct memory_port *port = port_of(store);
    struct memory_call *call;
    enum call_result result =
        memory_call_table_request(lock(port), id, caller, callee, port->clock, &call);
    answer(port, result, call, done, arg);
}

static void memory_declare(struct call_store *store, struct slice id,
                           const struct call_device *caller, call_answer_done done, void *arg)
{
    struct memory_port *port = port_of(store);
    struct memory_call *call;
    enum call_result result = memory_call_table_declare(lock(port), id, caller, port->clock, &call);
    answer(port, result, call, done, arg);
}

static void memory_answer(struct call_store *store, struct slice id,
                          const struct call_device *callee, call_answer_done done, void *arg)
{
    struct memory_port *port = port_of(store);
    struct memory_call *call;
    enum call_result result = memory_call_table_answer(lock(port), id, callee, port->clock, &call);
    answer(port, result, call, done, arg);
}

static void memory_reject(struct call_store *store, struct slice id, struct slice user_id,
                          call_answer_done done, void *arg)
{
    struct memory_port *port = port_of(store);
    struct memory_call *call;
    enum call_result result = memory_call_table_reject(lock(port), id, user_id, port->clock, &call);
    answer(port, result, call, done, arg);
}

static void memory_end(struct call_store *store, struct slice id, struct slice user_id,
                       call_answer_done done, void *arg)
{
    struct memory_port *port = port_of(store);
    struct memory_call *call;
    enum call_result result = memory_call_table_end(lock(port), id, user_id, port->clock, &call);
    answer(port, result, call, done, arg);
}

static void memory_get(struct call_store *store, struct slice id, struct slice user_id,
                       call_answer_done done, void *arg)
{
    struct memory_port *port = port_of(store);
    struct memory_call *call;
    enum call_result result = memory_call_table_get(lock(port), id, user_id, &call);
    answer(port, result, call, done, arg);
}

static void memory_attach(struct call_store *store, const struct call_device *device,
                          call_answer_done done, void *arg)
{
    struct memory_port *port = port_of(store);
    struct memory_call *call;
    enum call_result result = memory_call_table_attach(lock(port), device, port->clock, &call);
    answer(port, result, call, done, arg);
}

static void memory_detach(struct call_store *store, struct slice user_id,
                          const struct ulid *conn_id, call_answer_done done, void *arg)
{
    struct memory_port *port = port_of(store);
    struct memory_call *call;
    enum call_result result =
        memory_call_table_detach(lock(port), user_id, conn_id, port->clock, &call);
    answer(port, result, call, done, arg);
}

static void memory_renew(struct call_store *store, const struct call_device *devices, size_t count,
                         call_device_lost lost, void *arg)
{
    struct memory_port *port = port_of(store);
    struct ulid gone[CALL_RENEWALS_MAX];
    size_t gone_count = 0;
    assert(count <= CALL_RENEWALS_MAX);
    struct memory_call_table *book = lock(port);
    for (size_t i = 0; i < count; i++)
        if (!memory_call_table_renew(book, &devices[i], port->clock))
            gone[gone_count++] = devices[i].conn_id;
    unlock(port);
    for (size_t i = 0; i < gone_count; i++)
        lost(arg, &gone[i]);
}

static void memory_reap(struct call_store *store, size_t max, call_reap_done done, void *arg)
{
    struct memory_port *port = port_of(store);
    struct memory_call copies[CALL_REAP_MAX];
    struct call views[CALL_REAP_MAX];
    const struct memory_call *call;
    size_t count = 0;
    if (max > CALL_REAP_MAX)
        max = CALL_REAP_MAX;
    struct memory_call_table *book = lock(port);
    while (count < max && (call = memory_call_table_reap_one(book, port->clock)))
        copies[count++] = *call;
    memory_call_table_forget(book, port->clock);
    unlock(port);
    for (size_t i = 0; i < count; i++)
        views[i] = memory_call_view(&copies[i]);
    done(arg, views, count);
}

static void memory_free(struct call_store *store)
{
    free(port_of(store));
}

static const struct call_store_operations OPERATIONS = {
    .request = memory_request,
    .declare = memory_declare,
    .answer = memory_answer,
    .reject = memory_reject,
    .end = memory_end,
    .get = memory_get,
    .attach = memory_attach,
    .detach = memory_detach,
    .renew = memory_renew,
    .reap = memory_reap,
    .free = memory_free,
};

struct call_store *memory_calls_store(struct memory_calls *calls, const struct clock *clock)
{
    struct memory_port *port = malloc(sizeof(*port));
    if (!port)
        return NULL;
    *port = (struct memory_port){{&OPERATIONS}, calls, clock};
    return &port->store;
}

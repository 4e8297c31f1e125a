#include "calls/call_bindings.h"

#include "base/container.h"

#include <stdlib.h>

static struct slice call_binding_key(const struct ulid *conn_id)
{
    return (struct slice){(const char *)conn_id->bytes, sizeof(conn_id->bytes)};
}

static bool call_binding_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(
        call_binding_key(&CONTAINER_OF(node, struct call_binding, node)->device.conn_id), key);
}

bool call_bindings_init(struct call_bindings *bindings, uint64_t seed)
{
    list_init(&bindings->all);
    return table_init(&bindings->by_connection, seed, call_binding_matches);
}

void call_bindings_take(struct call_bindings *bindings, struct call_binding *binding)
{
    table_remove(&bindings->by_connection, &binding->node);
    list_remove(&binding->waiting);
}

static void call_binding_free(struct call_bindings *bindings, struct call_binding *binding)
{
    call_bindings_take(bindings, binding);
    free(binding);
}

void call_bindings_free(struct call_bindings *bindings)
{
    while (!list_empty(&bindings->all))
        call_binding_free(bindings, CONTAINER_OF(bindings->all.next, struct call_binding, waiting));
    table_free(&bindings->by_connection);
}

static struct call_binding *call_binding_make(const struct call_device *device,
                                              const struct call *call)
{
    struct call_binding *binding =
        malloc(sizeof(*binding) + device->user_id.len + device->device_id.len + call->id.len +
               call->caller.user_id.len + call->callee.user_id.len);
    if (!binding)
        return NULL;
    char *at = binding->bytes;
    *binding = (struct call_binding){.device.conn_id = device->conn_id, .call = *call};
    binding->device.user_id = slice_copy_to(&at, device->user_id);
    binding->device.device_id = slice_copy_to(&at, device->device_id);
    binding->call.id = slice_copy_to(&at, call->id);
    binding->call.caller =
        (struct call_device){.user_id = slice_copy_to(&at, call->caller.user_id)};
    binding->call.callee =
        (struct call_device){.user_id = slice_copy_to(&at, call->callee.user_id)};
    return binding;
}

bool call_bindings_add(struct call_bindings *bindings, const struct call_device *device,
                       const struct call *call)
{
    struct call_binding *binding = call_binding_make(device, call);
    if (!binding)
        return false;
    call_bindings_remove(bindings, &device->conn_id);
    table_insert(&bindings->by_connection, &binding->node,
                 call_binding_key(&binding->device.conn_id));
    list_append(&bindings->all, &binding->waiting);
    return true;
}

struct call_binding *call_bindings_find(const struct call_bindings *bindings,
                                        const struct ulid *conn_id)
{
    struct table_node *node = table_find(&bindings->by_connection, call_binding_key(conn_id));
    return node ? CONTAINER_OF(node, struct call_binding, node) : NULL;
}

bool call_bindings_remove(struct call_bindings *bindings, const struct ulid *conn_id)
{
    struct call_binding *binding = call_bindings_find(bindings, conn_id);
    if (binding)
        call_binding_free(bindings, binding);
    return binding != NULL;
}

/* While a batch is renewed, its own bindings may be taken, but not the binding after it. */
void call_bindings_renew(const struct call_bindings *bindings, struct call_store *store,
                         call_device_lost on_lost, void *arg)
{
    const struct list *at = bindings->all.next;
    while (at != &bindings->all) {
        struct call_device devices[CALL_RENEWALS_MAX];
        size_t count = 0;
        for (; at != &bindings->all && count < CALL_RENEWALS_MAX; at = at->next)
            devices[count++] = CONTAINER_OF(at, struct call_binding, waiting)->device;
        call_store_renew(store, devices, count, on_lost, arg);
    }
}

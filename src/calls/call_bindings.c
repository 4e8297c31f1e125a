#include "calls/call_bindings.h"

#include "base/container.h"

#include <stdlib.h>

static struct slice call_binding_key(const struct ulid *conn_id)
{
    return (struct slice){(const char *)conn_id->bytes, sizeof(conn_id->bytes)};
}

static bool call_binding_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(call_binding_key(&CONTAINER_OF(node, struct call_binding, node)->conn_id),
                       key);
}

bool call_bindings_init(struct call_bindings *bindings, uint64_t seed)
{
    list_init(&bindings->all);
    return table_init(&bindings->by_connection, seed, call_binding_matches);
}

static void call_binding_free(struct call_bindings *bindings, struct call_binding *binding)
{
    table_remove(&bindings->by_connection, &binding->node);
    list_remove(&binding->of_all);
    free(binding);
}

void call_bindings_free(struct call_bindings *bindings)
{
    while (!list_empty(&bindings->all))
        call_binding_free(bindings, CONTAINER_OF(bindings->all.next, struct call_binding, of_all));
    table_free(&bindings->by_connection);
}

bool call_bindings_add(struct call_bindings *bindings, const struct call_device *device)
{
    if (table_find(&bindings->by_connection, call_binding_key(&device->conn_id)))
        return true;
    struct call_binding *binding =
        malloc(sizeof(*binding) + device->user_id.len + device->device_id.len);
    if (!binding)
        return false;
    binding->conn_id = device->conn_id;
    binding->user_len = (uint8_t)device->user_id.len;
    binding->device_len = (uint8_t)device->device_id.len;
    memcpy(binding->bytes, device->user_id.data, device->user_id.len);
    memcpy(binding->bytes + binding->user_len, device->device_id.data, device->device_id.len);
    table_insert(&bindings->by_connection, &binding->node, call_binding_key(&binding->conn_id));
    list_append(&bindings->all, &binding->of_all);
    return true;
}

bool call_bindings_has(const struct call_bindings *bindings, const struct ulid *conn_id)
{
    return table_find(&bindings->by_connection, call_binding_key(conn_id)) != NULL;
}

bool call_bindings_remove(struct call_bindings *bindings, const struct ulid *conn_id)
{
    struct table_node *node = table_find(&bindings->by_connection, call_binding_key(conn_id));
    if (node)
        call_binding_free(bindings, CONTAINER_OF(node, struct call_binding, node));
    return node != NULL;
}

static void on_call_binding_lost(void *arg, const struct ulid *conn_id)
{
    call_bindings_remove(arg, conn_id);
}

/* While a batch is renewed, its own bindings may be removed, but not the binding after it. */
void call_bindings_renew(struct call_bindings *bindings, struct call_store *store)
{
    struct list *at = bindings->all.next;
    while (at != &bindings->all) {
        struct call_device devices[CALL_RENEWALS_MAX];
        size_t count = 0;
        for (; at != &bindings->all && count < CALL_RENEWALS_MAX; at = at->next) {
            struct call_binding *binding = CONTAINER_OF(at, struct call_binding, of_all);
            devices[count++] = (struct call_device){
                {binding->bytes, binding->user_len},
                {binding->bytes + binding->user_len, binding->device_len},
                binding->conn_id,
            };
        }
        call_store_renew(store, devices, count, on_call_binding_lost, bindings);
    }
}

/*
 * The connections of this gateway that hold a party of a call (store/call_store.h), so that it knows
 * for whom to speak: whom to renew, and whose end to tell the store.
 *
 * It may hold more than the truth (a call that another gateway ended), never less; renewing shows which
 * are lost. One thread.
 */
#ifndef ROLLCALL_CALLS_CALL_BINDINGS_H
#define ROLLCALL_CALLS_CALL_BINDINGS_H

#include "base/list.h"
#include "base/table.h"
#include "store/call_store.h"

struct call_binding {
    struct table_node node;
    struct list of_all;
    struct ulid conn_id;
    uint8_t user_len;
    uint8_t device_len;
    char bytes[]; /* user, device */
};

struct call_bindings {
    struct table by_connection;
    struct list all;
};

/* False when memory is short. */
bool call_bindings_init(struct call_bindings *bindings, uint64_t seed);
void call_bindings_free(struct call_bindings *bindings);

/* False when memory is short. */
bool call_bindings_add(struct call_bindings *bindings, const struct call_device *device);

bool call_bindings_has(const struct call_bindings *bindings, const struct ulid *conn_id);

/* False: there was none. */
bool call_bindings_remove(struct call_bindings *bindings, const struct ulid *conn_id);

/* Renews all of them. Those the store does not know are removed. */
void call_bindings_renew(struct call_bindings *bindings, struct call_store *store);

#endif

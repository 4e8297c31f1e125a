/*
 * Call bindings: the connections of this gateway that hold a party of a call (store/call_store.h). The
 * gateway renews these parties and reports to the store when such a connection ends.
 *
 * A binding may outlive its call (another gateway ended it), but no party is without one; a renewal shows
 * which bindings are lost. One thread.
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

/* Returns false when out of memory. */
bool call_bindings_init(struct call_bindings *bindings, uint64_t seed);
void call_bindings_free(struct call_bindings *bindings);

/* Returns false when out of memory. */
bool call_bindings_add(struct call_bindings *bindings, const struct call_device *device);

bool call_bindings_has(const struct call_bindings *bindings, const struct ulid *conn_id);

/* Returns false if there was none. */
bool call_bindings_remove(struct call_bindings *bindings, const struct ulid *conn_id);

/* Renews all parties and removes the bindings that have no party in the store. */
void call_bindings_renew(struct call_bindings *bindings, struct call_store *store);

#endif

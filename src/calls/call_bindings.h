/*
 * Call bindings: the connections of this gateway that hold a party of a call (store/call_store.h). The
 * gateway renews these parties and reports to the store when such a connection ends.
 *
 * A binding may outlive its call (another gateway ended it), but no party is without one; a renewal shows
 * which bindings are lost. It knows its call as it was when the connection was bound, so that the parties can be told
 * when the store has lost the call (call_losses.h). One thread.
 */
#ifndef ROLLCALL_CALLS_CALL_BINDINGS_H
#define ROLLCALL_CALLS_CALL_BINDINGS_H

#include "base/list.h"
#include "base/table.h"
#include "store/call_store.h"

struct call_plane;

struct call_binding {
    struct table_node node;
    struct list
        waiting; /* on call_bindings.all; of one that was taken: on call_losses.waiting, or alone */
    struct call_device device;
    struct call call;         /* as it was when the connection was bound */
    struct call_plane *plane; /* of one that was taken, like the next four (call_losses.h) */
    bool is_gone;             /* its connection has ended */
    bool was_missing;         /* the store did not have the call before */
    bool is_claimed;          /* this gateway has declared it, or may have */
    uint8_t tellings;         /* how often the device was told that the call ended */
    char bytes[];             /* the ids in `device` and `call` */
};

struct call_bindings {
    struct table by_connection;
    struct list all;
};

/* Returns false when out of memory. */
bool call_bindings_init(struct call_bindings *bindings, uint64_t seed);
void call_bindings_free(struct call_bindings *bindings);

/* Binds a device's connection to its call, instead of what it was bound to. Returns false when out of memory: then
 * nothing has changed. */
bool call_bindings_add(struct call_bindings *bindings, const struct call_device *device,
                       const struct call *call);

/* Returns NULL if there is none. */
struct call_binding *call_bindings_find(const struct call_bindings *bindings,
                                        const struct ulid *conn_id);

/* Returns false if there was none. */
bool call_bindings_remove(struct call_bindings *bindings, const struct ulid *conn_id);

/* Takes a binding out of the bindings; the caller frees it. */
void call_bindings_take(struct call_bindings *bindings, struct call_binding *binding);

/* Renews all parties. `on_lost` runs for the bindings that have no party in the store; it may take its own. */
void call_bindings_renew(const struct call_bindings *bindings, struct call_store *store,
                         call_device_lost on_lost, void *arg);

#endif

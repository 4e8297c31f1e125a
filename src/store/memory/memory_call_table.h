/*
 * The table of calls in progress in memory: the rules of store/call_store.h, without locks and completions
 * (memory_calls.c holds the lock around every function).
 *
 * A call is in `calls` from its beginning until it is forgotten. While it is not ENDED, each of its parties is
 * in `users`, which makes the user busy. The callee of an unheard call is no party. Four lists hold what waits, each in the order in which its entries
 * fall due, since all entries of a list wait equally long:
 *
 *   ringing    calls      ring timeout      nobody answered
 *   attached   parties    lease window      the gateway of the device died
 *   detached   parties    reconnect grace   the device did not come back
 *   ended      calls      CALL_ENDED_KEPT_MS
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_CALL_TABLE_H
#define ROLLCALL_STORE_MEMORY_MEMORY_CALL_TABLE_H

#include "base/clock.h"
#include "store/memory/memory_call.h"
#include "store/memory/memory_calls.h"

struct memory_call_table {
    struct table calls;
    struct table users;
    struct list ringing;
    struct list attached;
    struct list detached;
    struct list ended;
    size_t ended_count;
    struct memory_calls_options options;
};

/* Returns false when out of memory. */
bool memory_call_table_init(struct memory_call_table *table,
                            const struct memory_calls_options *options);
void memory_call_table_free(struct memory_call_table *table);

/* The transitions of the port; `unheard` makes a request a ring_unheard(). `*call` is the call of the answer, or NULL; it belongs to the table. */
enum call_result memory_call_table_request(struct memory_call_table *table, struct slice id,
                                           const struct call_device *caller, struct slice callee,
                                           bool unheard, const struct clock *now,
                                           struct memory_call **call);
enum call_result memory_call_table_declare(struct memory_call_table *table, struct slice id,
                                           const struct call_device *caller,
                                           const struct clock *now, struct memory_call **call);
enum call_result memory_call_table_answer(struct memory_call_table *table, struct slice id,
                                          const struct call_device *callee, const struct clock *now,
                                          struct memory_call **call);
enum call_result memory_call_table_reject(struct memory_call_table *table, struct slice id,
                                          struct slice user_id, const struct clock *now,
                                          struct memory_call **call);
enum call_result memory_call_table_end(struct memory_call_table *table, struct slice id,
                                       struct slice user_id, const struct clock *now,
                                       struct memory_call **call);
enum call_result memory_call_table_get(struct memory_call_table *table, struct slice id,
                                       struct slice user_id, struct memory_call **call);
enum call_result memory_call_table_attach(struct memory_call_table *table,
                                          const struct call_device *device, const struct clock *now,
                                          struct memory_call **call);
enum call_result memory_call_table_detach(struct memory_call_table *table, struct slice user_id,
                                          const struct ulid *conn_id, const struct clock *now,
                                          struct memory_call **call);

/* Returns false if this device is in no call. */
bool memory_call_table_renew(struct memory_call_table *table, const struct call_device *device,
                             const struct clock *now);

/* Ends and returns the next call that is due; NULL if none is. */
struct memory_call *memory_call_table_reap_one(struct memory_call_table *table,
                                               const struct clock *now);

/* Forgets the calls that ended long enough ago, and the oldest ended calls beyond the bound. */
void memory_call_table_forget(struct memory_call_table *table, const struct clock *now);

#endif

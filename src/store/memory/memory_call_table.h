/*
 * The book of calls under way in memory: the rules of store/call_store.h, without locks and
 * completions (memory_calls.c holds the lock around every function here).
 *
 * A call is in `calls` from its beginning until it is forgotten. While it is not ENDED each of its
 * parties is in `users`, which is what makes a user busy. Waiting is four lists, each in the order in
 * which its members fall due, since each waits for one constant time:
 *
 *   ringing   calls      ring timeout      no answer
 *   held      parties    lease window      the gateway of the device died
 *   loose     parties    reconnect grace   the device did not come back
 *   ended     calls      CALL_ENDED_KEPT_MS
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
    struct list held;
    struct list loose;
    struct list ended;
    size_t ended_count;
    struct memory_calls_options options;
};

/* False when memory is short. */
bool memory_call_table_init(struct memory_call_table *book,
                            const struct memory_calls_options *options);
void memory_call_table_free(struct memory_call_table *book);

/* The transitions of the port. *call is what the answer shows, NULL for none; it is the book's. */
enum call_result memory_call_table_request(struct memory_call_table *book, struct slice id,
                                           const struct call_device *caller, struct slice callee,
                                           const struct clock *now, struct memory_call **call);
enum call_result memory_call_table_declare(struct memory_call_table *book, struct slice id,
                                           const struct call_device *caller,
                                           const struct clock *now, struct memory_call **call);
enum call_result memory_call_table_answer(struct memory_call_table *book, struct slice id,
                                          const struct call_device *callee, const struct clock *now,
                                          struct memory_call **call);
enum call_result memory_call_table_reject(struct memory_call_table *book, struct slice id,
                                          struct slice user_id, const struct clock *now,
                                          struct memory_call **call);
enum call_result memory_call_table_end(struct memory_call_table *book, struct slice id,
                                       struct slice user_id, const struct clock *now,
                                       struct memory_call **call);
enum call_result memory_call_table_get(struct memory_call_table *book, struct slice id,
                                       struct slice user_id, struct memory_call **call);
enum call_result memory_call_table_attach(struct memory_call_table *book,
                                          const struct call_device *device, const struct clock *now,
                                          struct memory_call **call);
enum call_result memory_call_table_detach(struct memory_call_table *book, struct slice user_id,
                                          const struct ulid *conn_id, const struct clock *now,
                                          struct memory_call **call);

/* False: this device is in no call. */
bool memory_call_table_renew(struct memory_call_table *book, const struct call_device *device,
                             const struct clock *now);

/* Ends the next call that is due; NULL: none is. */
struct memory_call *memory_call_table_reap_one(struct memory_call_table *book,
                                               const struct clock *now);

/* Forgets what ended long enough ago, or too many of it. */
void memory_call_table_forget(struct memory_call_table *book, const struct clock *now);

#endif

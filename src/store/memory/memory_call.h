/* The record of one call in memory. memory_call_table.h moves it through its states. */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_CALL_H
#define ROLLCALL_STORE_MEMORY_MEMORY_CALL_H

#include "base/list.h"
#include "base/table.h"
#include "store/call_store.h"

struct memory_call;

struct memory_party {
    struct table_node node; /* in `users`, by user */
    struct list waiting;    /* on `attached` or `detached`; on neither until the callee answers */
    struct memory_call *call;
    struct ulid conn_id;
    int64_t due_at_ms;
    bool attached;
    uint8_t user_len; /* 0: the call was declared, without a callee */
    uint8_t device_len;
    char user[USER_ID_BYTES_MAX];
    char device[DEVICE_ID_BYTES_MAX];
};

struct memory_call {
    struct table_node node; /* in `calls`, by id */
    struct list waiting;    /* on `ringing` or `ended`; on neither while ACCEPTED */
    enum call_state state;
    enum call_reason reason;
    bool unheard; /* the callee is no party: not in `users`, and found by no operation */
    struct memory_party caller;
    struct memory_party callee;
    int64_t due_at_ms;
    int64_t started_at_ms;
    int64_t answered_at_ms;
    int64_t ended_at_ms;
    uint8_t id_len;
    char id[CALL_ID_BYTES_MAX];
};

/* Returns a ringing call without devices, in no table and on no list; NULL when out of memory. `callee` may be
 * SLICE_NONE. */
struct memory_call *memory_call_make(struct slice id, struct slice caller, struct slice callee);

struct slice memory_call_id(const struct memory_call *call);
struct slice memory_party_user(const struct memory_party *party);
bool memory_party_is_callee(const struct memory_party *party);

/* Whether the party takes part with this device. */
bool memory_party_is_device(const struct memory_party *party, struct slice device_id);

/* Returns the call as the port shows it; its ids are borrowed from the record. */
struct call memory_call_borrow(const struct memory_call *call);

#endif

/* The record of one call in memory; what moves it through its states is memory_call_table.h. */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_CALL_H
#define ROLLCALL_STORE_MEMORY_MEMORY_CALL_H

#include "base/list.h"
#include "base/table.h"
#include "store/call_store.h"

struct memory_call;

struct memory_party {
    struct table_node node; /* in `users`, by user */
    struct list waiting;    /* held or loose; of a callee who has not answered in neither */
    struct memory_call *call;
    struct ulid conn_id;
    int64_t due_at_ms;
    bool attached;
    uint8_t user_len; /* 0: the call was declared, there is no callee */
    uint8_t device_len;
    char user[USER_ID_BYTES_MAX];
    char device[DEVICE_ID_BYTES_MAX];
};

struct memory_call {
    struct table_node node; /* in `calls`, by id */
    struct list waiting;    /* ringing or ended; in neither while ACCEPTED */
    enum call_state state;
    enum call_reason reason;
    struct memory_party caller;
    struct memory_party callee;
    int64_t due_at_ms;
    int64_t started_at_ms;
    int64_t answered_at_ms;
    int64_t ended_at_ms;
    uint8_t id_len;
    char id[CALL_ID_BYTES_MAX];
};

/* A ringing call without devices, in no table and no list; NULL when memory is short. `callee` may be
 * SLICE_NONE. */
struct memory_call *memory_call_make(struct slice id, struct slice caller, struct slice callee);

struct slice memory_call_id(const struct memory_call *call);
struct slice memory_party_user(const struct memory_party *party);
bool memory_party_is_callee(const struct memory_party *party);

/* Whether the party takes part with this device. */
bool memory_party_is_device(const struct memory_party *party, struct slice device_id);

/* A view into the call, which must last as long. */
struct call memory_call_view(const struct memory_call *call);

#endif

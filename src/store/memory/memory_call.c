#include "store/memory/memory_call.h"

#include <assert.h>
#include <stdlib.h>

struct slice memory_call_id(const struct memory_call *call)
{
    return (struct slice){call->id, call->id_len};
}

struct slice memory_party_user(const struct memory_party *party)
{
    return (struct slice){party->user, party->user_len};
}

bool memory_party_is_callee(const struct memory_party *party)
{
    return party == &party->call->callee;
}

bool memory_party_is_device(const struct memory_party *party, struct slice device_id)
{
    return party->device_len > 0 &&
           slice_equal((struct slice){party->device, party->device_len}, device_id);
}

static void init_memory_party(struct memory_call *call, struct memory_party *party,
                              struct slice user_id)
{
    assert(user_id.len <= USER_ID_BYTES_MAX);
    party->call = call;
    list_init(&party->waiting);
    party->user_len = (uint8_t)user_id.len;
    if (user_id.len)
        memcpy(party->user, user_id.data, user_id.len);
}

struct memory_call *memory_call_make(struct slice id, struct slice caller, struct slice callee)
{
    assert(id.len > 0 && id.len <= CALL_ID_BYTES_MAX);
    struct memory_call *call = calloc(1, sizeof(*call));
    if (!call)
        return NULL;
    call->state = CALL_RINGING;
    list_init(&call->waiting);
    call->id_len = (uint8_t)id.len;
    memcpy(call->id, id.data, id.len);
    init_memory_party(call, &call->caller, caller);
    init_memory_party(call, &call->callee, callee);
    return call;
}

static struct call_device borrow_memory_party(const struct memory_party *party)
{
    return (struct call_device){
        .user_id = party->user_len ? memory_party_user(party) : SLICE_NONE,
        .device_id =
            party->device_len ? (struct slice){party->device, party->device_len} : SLICE_NONE,
        .conn_id = party->conn_id,
    };
}

struct call memory_call_borrow(const struct memory_call *call)
{
    return (struct call){
        .id = memory_call_id(call),
        .state = call->state,
        .reason = call->reason,
        .caller = borrow_memory_party(&call->caller),
        .callee = borrow_memory_party(&call->callee),
        .unheard = call->unheard,
        .started_at_ms = call->started_at_ms,
        .answered_at_ms = call->answered_at_ms,
        .ended_at_ms = call->ended_at_ms,
    };
}

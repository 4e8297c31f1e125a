#include "store/memory/memory_call_table.h"

#include "base/container.h"

#include <assert.h>
#include <stdlib.h>

static bool memory_call_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(memory_call_id(CONTAINER_OF(node, struct memory_call, node)), key);
}

static bool memory_party_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(memory_party_user(CONTAINER_OF(node, struct memory_party, node)), key);
}

bool memory_call_table_init(struct memory_call_table *table,
                            const struct memory_calls_options *options)
{
    *table = (struct memory_call_table){.options = *options};
    list_init(&table->ringing);
    list_init(&table->attached);
    list_init(&table->detached);
    list_init(&table->ended);
    return table_init(&table->calls, options->hash_seed, memory_call_matches) &&
           table_init(&table->users, options->hash_seed, memory_party_matches);
}

static void free_memory_call(struct table_node *node, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(node, struct memory_call, node));
}

void memory_call_table_free(struct memory_call_table *table)
{
    table_each(&table->calls, free_memory_call, NULL);
    table_free(&table->calls);
    table_free(&table->users);
}

static struct memory_call *find_memory_call(const struct memory_call_table *table, struct slice id)
{
    struct table_node *node = table_find(&table->calls, id);
    return node ? CONTAINER_OF(node, struct memory_call, node) : NULL;
}

static struct memory_party *find_party_of_user(const struct memory_call_table *table,
                                               struct slice user_id)
{
    struct table_node *node = table_find(&table->users, user_id);
    return node ? CONTAINER_OF(node, struct memory_party, node) : NULL;
}

/* Returns the user's party of the call `id`, or of the call the user is in if `id` is SLICE_NONE. */
static struct memory_party *find_party_of_call(const struct memory_call_table *table,
                                               struct slice id, struct slice user_id)
{
    if (!id.data)
        return find_party_of_user(table, user_id);
    struct memory_call *call = find_memory_call(table, id);
    if (call && slice_equal(memory_party_user(&call->caller), user_id))
        return &call->caller;
    return call && !call->unheard && slice_equal(memory_party_user(&call->callee), user_id)
               ? &call->callee
               : NULL;
}

/* ---- parties ---- */

static void set_memory_party_attached(struct memory_call_table *table, struct memory_party *party,
                                      bool attached, const struct clock *now)
{
    party->attached = attached;
    party->due_at_ms = now->now_ms + (attached ? table->options.lease_window_ms
                                               : table->options.reconnect_grace_ms);
    list_remove(&party->waiting);
    list_append(attached ? &table->attached : &table->detached, &party->waiting);
}

static void bind_memory_party_device(struct memory_call_table *table, struct memory_party *party,
                                     const struct call_device *device, const struct clock *now)
{
    assert(device->device_id.len > 0 && device->device_id.len <= DEVICE_ID_BYTES_MAX);
    party->device_len = (uint8_t)device->device_id.len;
    memcpy(party->device, device->device_id.data, device->device_id.len);
    party->conn_id = device->conn_id;
    set_memory_party_attached(table, party, true, now);
}

static void remove_memory_party(struct memory_call_table *table, struct memory_party *party)
{
    bool is_unheard = party->call->unheard && memory_party_is_callee(party);
    list_remove(&party->waiting);
    if (party->user_len && !is_unheard)
        table_remove(&table->users, &party->node);
}

/* ---- calls ---- */

/* Asserts what holds for a call between two operations. */
static void assert_memory_call(const struct memory_call_table *table,
                               const struct memory_call *call)
{
    bool is_live = call->state != CALL_ENDED;
    assert(is_live == (call->reason == CALL_REASON_NONE));
    assert(is_live == (call->ended_at_ms == 0));
    assert(is_live ==
           (find_party_of_user(table, memory_party_user(&call->caller)) == &call->caller));
    assert((call->state == CALL_ACCEPTED) == list_empty(&call->waiting));
    assert(!is_live || call->caller.device_len > 0);
    assert(call->state != CALL_RINGING || call->callee.device_len == 0);
    assert(call->state != CALL_ACCEPTED ||
           (call->callee.user_len == 0) == (call->callee.device_len == 0));
}

/* Every change of state goes through here. */
static void set_memory_call_state(struct memory_call_table *table, struct memory_call *call,
                                  enum call_state state, enum call_reason reason,
                                  const struct clock *now)
{
    assert(call->state != CALL_ENDED && (call->state != CALL_ACCEPTED || state == CALL_ENDED));
    call->state = state;
    call->reason = reason;
    list_remove(&call->waiting);
    if (state == CALL_ACCEPTED) {
        call->answered_at_ms = now->wall_ms;
    } else {
        call->ended_at_ms = now->wall_ms;
        call->due_at_ms = now->now_ms + CALL_ENDED_KEPT_MS;
        list_append(&table->ended, &call->waiting);
        table->ended_count++;
        remove_memory_party(table, &call->caller);
        remove_memory_party(table, &call->callee);
    }
    assert_memory_call(table, call);
}

/* Returns a ringing call whose caller is bound to a device; NULL when out of memory. */
static struct memory_call *make_ringing_call(struct memory_call_table *table, struct slice id,
                                             const struct call_device *caller, struct slice callee,
                                             bool unheard, const struct clock *now)
{
    struct memory_call *call = memory_call_make(id, caller->user_id, callee);
    if (!call)
        return NULL;
    call->unheard = unheard;
    call->started_at_ms = now->wall_ms;
    call->due_at_ms = now->now_ms + table->options.ring_timeout_ms;
    table_insert(&table->calls, &call->node, id);
    list_append(&table->ringing, &call->waiting);
    table_insert(&table->users, &call->caller.node, caller->user_id);
    if (callee.len && !unheard)
        table_insert(&table->users, &call->callee.node, callee);
    bind_memory_party_device(table, &call->caller, caller, now);
    assert_memory_call(table, call);
    return call;
}

static void accept_memory_call(struct memory_call_table *table, struct memory_call *call,
                               const struct call_device *callee, const struct clock *now)
{
    bind_memory_party_device(table, &call->callee, callee, now);
    set_memory_call_state(table, call, CALL_ACCEPTED, CALL_REASON_NONE, now);
}

enum call_result memory_call_table_request(struct memory_call_table *table, struct slice id,
                                           const struct call_device *caller, struct slice callee,
                                           bool unheard, const struct clock *now,
                                           struct memory_call **call)
{
    assert(!slice_equal(caller->user_id, callee));
    struct memory_call *known = find_memory_call(table, id);
    struct memory_party *own = find_party_of_user(table, caller->user_id);
    bool is_repeated = known && known->state == CALL_RINGING &&
                       slice_equal(memory_party_user(&known->caller), caller->user_id) &&
                       slice_equal(memory_party_user(&known->callee), callee) &&
                       memory_party_is_device(&known->caller, caller->device_id);
    *call = NULL;
    if (is_repeated) {
        *call = known;
        return CALL_REPEATED;
    }
    if (own) {
        *call = own->call;
        bool crosses = own->call->state == CALL_RINGING && memory_party_is_callee(own) &&
                       slice_equal(memory_party_user(&own->call->caller), callee);
        if (!crosses)
            return CALL_CALLER_BUSY;
        accept_memory_call(table, own->call, caller, now);
        return CALL_GLARE;
    }
    if (known)
        return CALL_ID_TAKEN;
    if (!unheard && find_party_of_user(table, callee))
        return CALL_CALLEE_BUSY;
    *call = make_ringing_call(table, id, caller, callee, unheard, now);
    return *call ? CALL_DONE : CALL_UNAVAILABLE;
}

enum call_result memory_call_table_declare(struct memory_call_table *table, struct slice id,
                                           const struct call_device *caller,
                                           const struct clock *now, struct memory_call **call)
{
    struct memory_party *own = find_party_of_user(table, caller->user_id);
    *call = own ? own->call : NULL;
    if (own)
        return CALL_CALLER_BUSY;
    if (find_memory_call(table, id))
        return CALL_ID_TAKEN;
    *call = make_ringing_call(table, id, caller, SLICE_NONE, false, now);
    if (!*call)
        return CALL_UNAVAILABLE;
    set_memory_call_state(table, *call, CALL_ACCEPTED, CALL_REASON_NONE, now);
    return CALL_DONE;
}

enum call_result memory_call_table_answer(struct memory_call_table *table, struct slice id,
                                          const struct call_device *callee, const struct clock *now,
                                          struct memory_call **call)
{
    struct memory_party *own = find_party_of_call(table, id, callee->user_id);
    *call = own ? own->call : NULL;
    if (!own)
        return CALL_NOT_FOUND;
    if (own->call->state == CALL_ACCEPTED && memory_party_is_callee(own) &&
        memory_party_is_device(own, callee->device_id))
        return CALL_REPEATED;
    if (own->call->state != CALL_RINGING)
        return CALL_WRONG_STATE;
    if (!memory_party_is_callee(own))
        return CALL_WRONG_PARTY;
    accept_memory_call(table, own->call, callee, now);
    return CALL_DONE;
}

enum call_result memory_call_table_reject(struct memory_call_table *table, struct slice id,
                                          struct slice user_id, const struct clock *now,
                                          struct memory_call **call)
{
    struct memory_party *own = find_party_of_call(table, id, user_id);
    *call = own ? own->call : NULL;
    if (!own)
        return CALL_NOT_FOUND;
    if (own->call->state != CALL_RINGING)
        return CALL_WRONG_STATE;
    if (!memory_party_is_callee(own))
        return CALL_WRONG_PARTY;
    set_memory_call_state(table, own->call, CALL_ENDED, CALL_REASON_REJECTED, now);
    return CALL_DONE;
}

enum call_result memory_call_table_end(struct memory_call_table *table, struct slice id,
                                       struct slice user_id, const struct clock *now,
                                       struct memory_call **call)
{
    struct memory_party *own = find_party_of_call(table, id, user_id);
    *call = own ? own->call : NULL;
    if (!own)
        return CALL_NOT_FOUND;
    if (own->call->state == CALL_ENDED)
        return CALL_WRONG_STATE;
    enum call_reason reason =
        memory_party_is_callee(own) ? CALL_REASON_REJECTED : CALL_REASON_CANCELLED;
    if (own->call->state == CALL_ACCEPTED)
        reason = CALL_REASON_HANGUP;
    set_memory_call_state(table, own->call, CALL_ENDED, reason, now);
    return CALL_DONE;
}

enum call_result memory_call_table_get(struct memory_call_table *table, struct slice id,
                                       struct slice user_id, struct memory_call **call)
{
    struct memory_party *own = find_party_of_call(table, id, user_id);
    *call = own ? own->call : NULL;
    return own ? CALL_DONE : CALL_NOT_FOUND;
}

/* ---- devices ---- */

enum call_result memory_call_table_attach(struct memory_call_table *table,
                                          const struct call_device *device, const struct clock *now,
                                          struct memory_call **call)
{
    struct memory_party *own = find_party_of_user(table, device->user_id);
    *call = own ? own->call : NULL;
    if (own && memory_party_is_device(own, device->device_id)) {
        bind_memory_party_device(table, own, device, now);
        return CALL_DONE;
    }
    if (!own)
        return CALL_NOT_FOUND;
    return memory_party_is_callee(own) && own->call->state == CALL_RINGING ? CALL_RINGS
                                                                           : CALL_ELSEWHERE;
}

enum call_result memory_call_table_detach(struct memory_call_table *table, struct slice user_id,
                                          const struct ulid *conn_id, const struct clock *now,
                                          struct memory_call **call)
{
    struct memory_party *own = find_party_of_user(table, user_id);
    *call = NULL;
    if (!own || !own->attached || !ulid_equal(&own->conn_id, conn_id))
        return CALL_NOT_FOUND;
    set_memory_party_attached(table, own, false, now);
    *call = own->call;
    return CALL_DONE;
}

/* Takes over a detached party, which another connection of the same device had held. */
bool memory_call_table_renew(struct memory_call_table *table, const struct call_device *device,
                             const struct clock *now)
{
    struct memory_party *own = find_party_of_user(table, device->user_id);
    if (!own || !memory_party_is_device(own, device->device_id))
        return false;
    if (!own->attached)
        own->conn_id = device->conn_id;
    set_memory_party_attached(table, own, true, now);
    return true;
}

/* ---- time ---- */

/* Returns the first party of the list if it is due. */
static struct memory_party *first_due_party(const struct list *list, const struct clock *now)
{
    struct memory_party *first = CONTAINER_OF(list->next, struct memory_party, waiting);
    return !list_empty(list) && first->due_at_ms <= now->now_ms ? first : NULL;
}

/* Returns the first call of the list if it is due. */
static struct memory_call *first_due_call(const struct list *list, const struct clock *now)
{
    struct memory_call *first = CONTAINER_OF(list->next, struct memory_call, waiting);
    return !list_empty(list) && first->due_at_ms <= now->now_ms ? first : NULL;
}

struct memory_call *memory_call_table_reap_one(struct memory_call_table *table,
                                               const struct clock *now)
{
    struct memory_call *unanswered = first_due_call(&table->ringing, now);
    if (unanswered) {
        set_memory_call_state(table, unanswered, CALL_ENDED, CALL_REASON_TIMEOUT, now);
        return unanswered;
    }
    struct memory_party *lost = first_due_party(&table->detached, now);
    if (!lost)
        lost = first_due_party(&table->attached, now);
    if (!lost)
        return NULL;
    set_memory_call_state(table, lost->call, CALL_ENDED, CALL_REASON_DISCONNECTED, now);
    return lost->call;
}

void memory_call_table_forget(struct memory_call_table *table, const struct clock *now)
{
    while (table->ended_count > MEMORY_CALLS_ENDED_MAX || first_due_call(&table->ended, now)) {
        struct memory_call *oldest = CONTAINER_OF(table->ended.next, struct memory_call, waiting);
        list_remove(&oldest->waiting);
        table->ended_count--;
        table_remove(&table->calls, &oldest->node);
        free(oldest);
    }
}

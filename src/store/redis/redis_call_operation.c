#include "store/redis/redis_call_internal.h"

#include <assert.h>
#include <stdlib.h>

enum { CLAIM_EXTRA_MS = 60000 };

/* ---- operations ---- */

void redis_calls_begin(struct redis_call_backend *calls)
{
    calls->pending++;
}

void redis_calls_end(struct redis_call_backend *calls)
{
    if (--calls->pending == 0 && calls->is_freed)
        free(calls);
}

void redis_calls_on_ignored_reply(void *arg, const struct resp_value *reply)
{
    (void)reply;
    redis_calls_end(arg);
}

struct call_operation *call_operation_make(struct redis_call_backend *calls,
                                           const struct call_operation *plan)
{
    struct call_operation *operation = malloc(sizeof(*operation) + plan->id.len + plan->user.len +
                                              plan->device.len + plan->callee.len);
    if (!operation)
        return NULL;
    char *at = (char *)(operation + 1);
    *operation = *plan;
    operation->calls = calls;
    operation->id = slice_copy_to(&at, plan->id);
    operation->user = slice_copy_to(&at, plan->user);
    operation->device = slice_copy_to(&at, plan->device);
    operation->callee = slice_copy_to(&at, plan->callee);
    ulid_write(operation->conn, &operation->conn_id);
    redis_calls_begin(calls);
    return operation;
}

void call_operation_finish(struct call_operation *operation, enum call_result result,
                           const struct call *call)
{
    struct redis_call_backend *calls = operation->calls;
    if (operation->done)
        operation->done(operation->arg, &(struct call_answer){result, call});
    else if (result == CALL_NOT_FOUND)
        operation->on_lost(operation->arg, &operation->conn_id);
    free(operation);
    redis_calls_end(calls);
}

void call_operation_on_reply(void *arg, const struct resp_value *reply)
{
    struct call_operation *operation = arg;
    static const struct {
        const char *name;
        enum call_result result;
    } RESULTS[] = {
        {"done", CALL_DONE},
        {"ended", CALL_DONE},
        {"repeated", CALL_REPEATED},
        {"rings", CALL_RINGS},
        {"elsewhere", CALL_ELSEWHERE},
        {"wrong_state", CALL_WRONG_STATE},
        {"wrong_party", CALL_WRONG_PARTY},
    };
    struct slice name = redis_call_reply_result(reply);
    struct call call;
    if (slice_is(name, "none")) {
        call_operation_finish(operation, CALL_NOT_FOUND, NULL);
        return;
    }
    if (slice_is(name, "ended"))
        redis_call_acknowledge_end(operation->calls, reply);
    for (size_t i = 0; i < sizeof(RESULTS) / sizeof(RESULTS[0]); i++)
        if (slice_is(name, RESULTS[i].name) && redis_call_parse_reply(reply, &call)) {
            call_operation_finish(operation, RESULTS[i].result, &call);
            return;
        }
    bool may_have_happened = !reply && !slice_is(slice_of(operation->verb), "get");
    call_operation_finish(operation, may_have_happened ? CALL_UNKNOWN : CALL_UNAVAILABLE, NULL);
}

bool call_operation_read_claim(struct call_operation *operation, const struct resp_value *reply)
{
    if (operation->calls->is_freed || !redis_call_parse_claim(reply, &operation->claim))
        call_operation_finish(operation, CALL_UNAVAILABLE, NULL);
    else if (operation->claim.len == 0)
        call_operation_finish(operation, CALL_NOT_FOUND, NULL);
    else
        return true;
    return false;
}

/* ---- scripts ---- */

size_t redis_call_shard_count(const struct redis_call_backend *calls)
{
    return calls->keys.cluster ? REDIS_CALL_SHARDS : 1;
}

struct slice redis_call_index_key(const struct redis_call_backend *calls,
                                  char out[REDIS_CALL_INDEX_MAX], size_t shard)
{
    int len = calls->keys.cluster ? snprintf(out, REDIS_CALL_INDEX_MAX, "calls:due:{%zu}", shard)
                                  : snprintf(out, REDIS_CALL_INDEX_MAX, "calls:due");
    return (struct slice){out, (size_t)len};
}

int64_t redis_call_claim_ttl_ms(const struct redis_call_backend *calls)
{
    return calls->options.ring_timeout_ms + calls->options.lease_window_ms + CLAIM_EXTRA_MS;
}

/* "call:" or "call:{5}:". */
static struct slice call_key_prefix(const struct redis_call_backend *calls, size_t shard,
                                    char out[16])
{
    int len =
        calls->keys.cluster ? snprintf(out, 16, "call:{%zu}:", shard) : snprintf(out, 16, "call:");
    return (struct slice){out, (size_t)len};
}

/* Runs the script on a shard's index and, unless it is empty, on one record. */
static void run_call_script(struct redis_call_backend *calls, const char *verb, size_t shard,
                            struct slice record_key, struct slice first,
                            struct redis_args arguments, redis_reply_done done, void *arg)
{
    enum { ARGUMENTS_FIRST = 6 };
    const struct redis_call_options *options = &calls->options;
    struct redis_store_number time, ring, grace, window;
    char index[REDIS_CALL_INDEX_MAX];
    struct slice keys[] = {redis_call_index_key(calls, index, shard), record_key};
    struct slice all[ARGUMENTS_FIRST + CALL_ARGUMENTS_MAX] = {
        slice_of(verb),
        redis_store_time(&time, options->clock),
        redis_store_number(&ring, options->ring_timeout_ms),
        redis_store_number(&grace, options->reconnect_grace_ms),
        redis_store_number(&window, options->lease_window_ms),
        first,
    };
    assert(arguments.count <= CALL_ARGUMENTS_MAX);
    for (size_t i = 0; i < arguments.count; i++)
        all[ARGUMENTS_FIRST + i] = arguments.items[i];
    redis_eval(options->client, &calls->call_script,
               (struct redis_args){keys, record_key.len ? 2 : 1},
               (struct redis_args){all, ARGUMENTS_FIRST + arguments.count}, done, arg);
}

void redis_call_run(struct redis_call_backend *calls, const char *verb, struct slice id,
                    struct redis_args arguments, redis_reply_done done, void *arg)
{
    size_t shard = redis_slot(id) % redis_call_shard_count(calls);
    char text[16], key[REDIS_KEY_BYTES_MAX];
    struct slice prefix = call_key_prefix(calls, shard, text);
    memcpy(key, prefix.data, prefix.len);
    memcpy(key + prefix.len, id.data, id.len);
    run_call_script(calls, verb, shard, (struct slice){key, prefix.len + id.len}, id, arguments,
                    done, arg);
}

void redis_call_run_shard(struct redis_call_backend *calls, const char *verb, size_t shard,
                          struct redis_args arguments, redis_reply_done done, void *arg)
{
    char text[16];
    run_call_script(calls, verb, shard, SLICE_NONE, call_key_prefix(calls, shard, text), arguments,
                    done, arg);
}

void redis_call_run_claim(struct redis_call_backend *calls, struct slice user,
                          struct redis_args arguments, redis_reply_done done, void *arg)
{
    char key[REDIS_KEY_BYTES_MAX];
    redis_eval(calls->options.client, &calls->claim_script,
               REDIS_ARGS(redis_key_user(&calls->keys, key, "user:", user, ":call")), arguments,
               done, arg);
}

/* ---- replies ---- */

/* The items of a reply that shows a call. */
enum {
    AT_RESULT,
    AT_ID,
    AT_NONCE,
    AT_STATE,
    AT_REASON,
    AT_CALLER,
    AT_CALLEE = AT_CALLER + 3,
    AT_STARTED = AT_CALLEE + 3,
    AT_ANSWERED,
    AT_ENDED,
    AT_UNHEARD,
    CALL_REPLY_ITEMS,
};

struct slice redis_call_reply_result(const struct resp_value *reply)
{
    bool is_valid = redis_store_is_array(reply, 1) && reply->items[AT_RESULT].type == RESP_TEXT;
    return is_valid ? reply->items[AT_RESULT].text : SLICE_NONE;
}

/* A party is three items: user, device and connection. An empty text means none. */
static bool parse_call_party(const struct resp_value *items, struct call_device *party)
{
    *party = (struct call_device){
        .user_id = items[0].text.len ? items[0].text : SLICE_NONE,
        .device_id = items[1].text.len ? items[1].text : SLICE_NONE,
    };
    if (!ulid_parse(items[2].text, &party->conn_id))
        party->conn_id = (struct ulid){{0}};
    return items[0].text.len <= USER_ID_BYTES_MAX && items[1].text.len <= DEVICE_ID_BYTES_MAX;
}

bool redis_call_parse_reply(const struct resp_value *reply, struct call *call)
{
    if (!redis_store_is_array(reply, CALL_REPLY_ITEMS))
        return false;
    const struct resp_value *items = reply->items;
    for (size_t i = AT_RESULT; i < AT_STARTED; i++)
        if (items[i].type != RESP_TEXT)
            return false;
    int state = 0, reason = 0;
    while (state <= CALL_ENDED &&
           !slice_is(items[AT_STATE].text, call_state_name((enum call_state)state)))
        state++;
    while (reason < CALL_REASON_COUNT &&
           !slice_is(items[AT_REASON].text, call_reason_name((enum call_reason)reason)))
        reason++;
    *call = (struct call){
        .id = items[AT_ID].text,
        .state = (enum call_state)state,
        .reason = (enum call_reason)reason,
        .started_at_ms = redis_store_integer(&items[AT_STARTED]),
        .answered_at_ms = redis_store_integer(&items[AT_ANSWERED]),
        .ended_at_ms = redis_store_integer(&items[AT_ENDED]),
        .unheard = items[AT_UNHEARD].type == RESP_TEXT && items[AT_UNHEARD].text.len > 0,
    };
    return state <= CALL_ENDED && reason < CALL_REASON_COUNT && call->id.len > 0 &&
           call->id.len <= CALL_ID_BYTES_MAX &&
           parse_call_party(&items[AT_CALLER], &call->caller) && call->caller.user_id.data &&
           parse_call_party(&items[AT_CALLEE], &call->callee);
}

bool redis_call_parse_claim(const struct resp_value *reply, struct call_claim *claim)
{
    if (!reply || reply->type != RESP_TEXT)
        return false;
    claim->len = reply->text.len;
    if (claim->len == 0)
        return true;
    if (claim->len <= ULID_TEXT_LEN || claim->len > REDIS_CALL_CLAIM_BYTES_MAX)
        return false;
    memcpy(claim->bytes, reply->text.data, claim->len);
    return true;
}

struct slice call_claim_value(const struct call_claim *claim)
{
    return (struct slice){claim->bytes, claim->len};
}

struct slice call_claim_nonce(const struct call_claim *claim)
{
    return (struct slice){claim->bytes, ULID_TEXT_LEN};
}

struct slice call_claim_call_id(const struct call_claim *claim)
{
    return slice_after(call_claim_value(claim), ULID_TEXT_LEN);
}

void redis_call_acknowledge_end(struct redis_call_backend *calls, const struct resp_value *reply)
{
    struct call call;
    struct call_claim claim;
    if (!redis_call_parse_reply(reply, &call) || reply->items[AT_NONCE].text.len != ULID_TEXT_LEN)
        return;
    memcpy(claim.bytes, reply->items[AT_NONCE].text.data, ULID_TEXT_LEN);
    memcpy(claim.bytes + ULID_TEXT_LEN, call.id.data, call.id.len);
    claim.len = ULID_TEXT_LEN + call.id.len;
    redis_calls_begin(calls);
    redis_call_run(calls, "acknowledge", call.id, REDIS_NO_ARGS, redis_calls_on_ignored_reply,
                   calls);
    const struct slice users[CALL_SIDES] = {call.caller.user_id, call.callee.user_id};
    for (size_t i = 0; i < CALL_SIDES; i++) {
        if (!users[i].data)
            continue;
        redis_calls_begin(calls);
        redis_call_run_claim(calls, users[i],
                             REDIS_ARGS(SLICE("release"), call_claim_value(&claim)),
                             redis_calls_on_ignored_reply, calls);
    }
}

/* Renewals keep calls alive, and the reaper ends those that are overdue. */
#include "store/redis/redis_call_internal.h"

#include <assert.h>
#include <stdlib.h>

/* ---- renewals ---- */

/* A device that is not in the call any more is lost. With a malformed reply nobody is lost. */
static void on_call_renewed(void *arg, const struct resp_value *reply)
{
    bool is_lost = slice_is(redis_call_reply_result(reply), "none");
    call_operation_finish(arg, is_lost ? CALL_NOT_FOUND : CALL_DONE, NULL);
}

static void on_renewed_claim_read(void *arg, const struct resp_value *reply)
{
    struct call_operation *operation = arg;
    if (call_operation_read_claim(operation, reply))
        redis_call_run(operation->calls, "renew", call_claim_call_id(&operation->claim),
                       REDIS_ARGS(call_claim_nonce(&operation->claim), operation->user,
                                  operation->device,
                                  (struct slice){operation->conn, ULID_TEXT_LEN}),
                       on_call_renewed, operation);
}

void redis_call_renew(struct call_store *store, const struct call_device *devices, size_t count,
                      call_device_lost on_lost, void *arg)
{
    struct redis_call_backend *calls = redis_call_backend_of(store);
    assert(count <= CALL_RENEWALS_MAX);
    struct redis_store_number ttl;
    for (size_t i = 0; i < count; i++) {
        struct call_operation *operation =
            call_operation_make(calls, &(struct call_operation){.on_lost = on_lost,
                                                                .arg = arg,
                                                                .user = devices[i].user_id,
                                                                .device = devices[i].device_id,
                                                                .conn_id = devices[i].conn_id});
        if (operation)
            redis_call_run_claim(
                calls, operation->user,
                REDIS_ARGS(SLICE("read"), redis_store_number(&ttl, redis_call_claim_ttl_ms(calls))),
                on_renewed_claim_read, operation);
    }
}

/* ---- the reaper ---- */

enum { CALL_TEXT_BYTES_MAX = CALL_ID_BYTES_MAX + 2 * (USER_ID_BYTES_MAX + DEVICE_ID_BYTES_MAX) };

/* One pass over all shards, one after the other, so that together they end at most `max` calls. */
struct call_reap_pass {
    struct redis_call_backend *calls;
    call_reap_done done;
    void *arg;
    size_t shard;
    size_t max;
    size_t count;
    struct call ended[CALL_REAP_MAX];
    char texts[CALL_REAP_MAX][CALL_TEXT_BYTES_MAX];
};

/* Copies the call with its ids, which otherwise last only as long as the reply. */
static void keep_ended_call(struct call_reap_pass *pass, const struct call *call)
{
    char *at = pass->texts[pass->count];
    struct call *kept = &pass->ended[pass->count++];
    *kept = *call;
    struct slice *const ids[] = {&kept->id, &kept->caller.user_id, &kept->caller.device_id,
                                 &kept->callee.user_id, &kept->callee.device_id};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        if (!ids[i]->data)
            continue;
        memcpy(at, ids[i]->data, ids[i]->len);
        ids[i]->data = at;
        at += ids[i]->len;
    }
}

static void reap_next_call_shard(struct call_reap_pass *pass);

static void on_call_shard_reaped(void *arg, const struct resp_value *reply)
{
    struct call_reap_pass *pass = arg;
    struct call call;
    for (size_t i = 0; redis_store_is_array(reply, 0) && i < reply->count; i++)
        if (pass->count < pass->max && redis_call_parse_reply(&reply->items[i], &call)) {
            keep_ended_call(pass, &call);
            redis_call_acknowledge_end(pass->calls, &reply->items[i]);
        }
    pass->shard++;
    reap_next_call_shard(pass);
}

static void reap_next_call_shard(struct call_reap_pass *pass)
{
    struct redis_call_backend *calls = pass->calls;
    struct redis_store_number max;
    while (pass->shard < redis_call_shard_count(calls) && !calls->is_freed &&
           redis_call_shard_is_quiet(calls, pass->shard))
        pass->shard++;
    if (pass->shard < redis_call_shard_count(calls) && pass->count < pass->max &&
        !calls->is_freed) {
        redis_call_run_shard(
            calls, "reap", pass->shard,
            REDIS_ARGS(redis_store_number(&max, (int64_t)(pass->max - pass->count))),
            on_call_shard_reaped, pass);
        return;
    }
    calls->is_reaping = false;
    pass->done(pass->arg, pass->ended, pass->count);
    free(pass);
    redis_calls_end(calls);
}

void redis_call_reap(struct call_store *store, size_t max, call_reap_done done, void *arg)
{
    struct redis_call_backend *calls = redis_call_backend_of(store);
    struct call_reap_pass *pass = calls->is_reaping ? NULL : malloc(sizeof(*pass));
    if (!pass) {
        done(arg, NULL, 0);
        return;
    }
    pass->calls = calls;
    pass->done = done;
    pass->arg = arg;
    pass->shard = 0;
    pass->max = max < CALL_REAP_MAX ? max : CALL_REAP_MAX;
    pass->count = 0;
    calls->is_reaping = true;
    redis_calls_begin(calls);
    reap_next_call_shard(pass);
}

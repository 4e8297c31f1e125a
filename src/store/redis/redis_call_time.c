/* What time does to calls: renewals keep them, the reaper ends them. */
#include "store/redis/redis_call_internal.h"
#include "store/redis/redis_store.h"

#include <assert.h>
#include <stdlib.h>

/* ---- renew ---- */

/* A device that no longer takes part is lost; what makes no sense says nothing. */
static void renewed(void *arg, const struct resp_value *reply)
{
    struct call_errand *errand = arg;
    bool lost = slice_is(call_reply_result(reply), "none");
    call_errand_end(errand, lost ? CALL_NOT_FOUND : CALL_DONE, NULL);
}

static void read_claim(void *arg, const struct resp_value *reply)
{
    struct call_errand *errand = arg;
    if (call_errand_take_claim(errand, reply))
        call_run(errand->port, "renew", call_claim_id(&errand->claim),
                 REDIS_ARGS(call_claim_key(&errand->claim), errand->user, errand->device,
                            (struct slice){errand->conn, ULID_TEXT_LEN}),
                 renewed, errand);
}

void call_renew_start(struct call_port *port, const struct call_device *devices, size_t count,
                      call_device_lost lost, void *arg)
{
    assert(count <= CALL_RENEWALS_MAX);
    struct redis_store_number ttl;
    for (size_t i = 0; i < count; i++) {
        struct call_errand *errand =
            call_errand_make(port, &(struct call_errand){.lost = lost,
                                                         .arg = arg,
                                                         .user = devices[i].user_id,
                                                         .device = devices[i].device_id,
                                                         .conn_id = devices[i].conn_id});
        if (errand)
            call_run_claim(
                port, errand->user,
                REDIS_ARGS(SLICE("read"), redis_store_number(&ttl, call_claim_ttl_ms(port))),
                read_claim, errand);
    }
}

/* ---- reap ---- */

enum { CALL_TEXT_BYTES_MAX = CALL_ID_BYTES_MAX + 2 * (USER_ID_BYTES_MAX + DEVICE_ID_BYTES_MAX) };

/* One pass over all shards, one after the other, so that together they end no more than was asked. */
struct reaping {
    struct call_port *port;
    call_reap_done done;
    void *arg;
    size_t shard;
    size_t max;
    size_t count;
    struct call ended[CALL_REAP_MAX];
    char texts[CALL_REAP_MAX][CALL_TEXT_BYTES_MAX];
};

static struct slice keep(char **at, struct slice text)
{
    char *kept = *at;
    if (!text.data)
        return text;
    memcpy(kept, text.data, text.len);
    *at += text.len;
    return (struct slice){kept, text.len};
}

static void add(struct reaping *reaping, const struct call *call)
{
    char *at = reaping->texts[reaping->count];
    struct call *kept = &reaping->ended[reaping->count++];
    *kept = *call;
    kept->id = keep(&at, call->id);
    kept->caller.user_id = keep(&at, call->caller.user_id);
    kept->caller.device_id = keep(&at, call->caller.device_id);
    kept->callee.user_id = keep(&at, call->callee.user_id);
    kept->callee.device_id = keep(&at, call->callee.device_id);
}

static void reap_next(struct reaping *reaping);

static void reaped(void *arg, const struct resp_value *reply)
{
    struct reaping *reaping = arg;
    struct call call;
    for (size_t i = 0; redis_store_is_array(reply, 0) && i < reply->count; i++)
        if (reaping->count < reaping->max && call_reply_show(&reply->items[i], &call)) {
            add(reaping, &call);
            call_settle(reaping->port, &reply->items[i]);
        }
    reaping->shard++;
    reap_next(reaping);
}

static void reap_next(struct reaping *reaping)
{
    struct call_port *port = reaping->port;
    struct redis_store_number max;
    if (reaping->shard < call_shard_count(port) && reaping->count < reaping->max &&
        !port->is_freed) {
        call_run_shard(
            port, "reap", reaping->shard,
            REDIS_ARGS(redis_store_number(&max, (int64_t)(reaping->max - reaping->count))), reaped,
            reaping);
        return;
    }
    port->reaps = false;
    reaping->done(reaping->arg, reaping->ended, reaping->count);
    free(reaping);
    call_port_let_go(port);
}

void call_reap_start(struct call_port *port, size_t max, call_reap_done done, void *arg)
{
    struct reaping *reaping = port->reaps ? NULL : malloc(sizeof(*reaping));
    if (!reaping) {
        done(arg, NULL, 0);
        return;
    }
    reaping->port = port;
    reaping->done = done;
    reaping->arg = arg;
    reaping->shard = 0;
    reaping->max = max < CALL_REAP_MAX ? max : CALL_REAP_MAX;
    reaping->count = 0;
    port->reaps = true;
    call_port_hold(port);
    reap_next(reaping);
}

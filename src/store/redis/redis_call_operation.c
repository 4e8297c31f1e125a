#include "store/redis/redis_call_internal.h"
#include "store/redis/redis_store.h"

#include <assert.h>
#include <stdlib.h>

enum { CLAIM_EXTRA_MS = 60000 };

/* ---- errands ---- */

void call_port_hold(struct call_port *port)
{
    port->errands++;
}

void call_port_let_go(struct call_port *port)
{
    if (--port->errands == 0 && port->is_freed)
        free(port);
}

static struct slice keep(char **at, struct slice text)
{
    if (!text.data)
        return text;
    char *kept = *at;
    memcpy(kept, text.data, text.len);
    *at += text.len;
    return (struct slice){kept, text.len};
}

struct call_errand *call_errand_make(struct call_port *port, const struct call_errand *plan)
{
    struct call_errand *errand = malloc(sizeof(*errand) + plan->id.len + plan->user.len +
                                        plan->device.len + plan->callee.len);
    if (!errand)
        return NULL;
    char *at = (char *)(errand + 1);
    *errand = *plan;
    errand->port = port;
    errand->id = keep(&at, plan->id);
    errand->user = keep(&at, plan->user);
    errand->device = keep(&at, plan->device);
    errand->callee = keep(&at, plan->callee);
    ulid_write(errand->conn, &errand->conn_id);
    call_port_hold(port);
    return errand;
}

void call_errand_end(struct call_errand *errand, enum call_result result, const struct call *call)
{
    struct call_port *port = errand->port;
    if (errand->done)
        errand->done(errand->arg, &(struct call_answer){result, call});
    else if (result == CALL_NOT_FOUND)
        errand->lost(errand->arg, &errand->conn_id);
    free(errand);
    call_port_let_go(port);
}

void call_errand_end_with(struct call_errand *errand, const struct resp_value *reply)
{
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
    struct slice name = call_reply_result(reply);
    struct call call;
    if (slice_is(name, "none")) {
        call_errand_end(errand, CALL_NOT_FOUND, NULL);
        return;
    }
    if (slice_is(name, "ended"))
        call_settle(errand->port, reply);
    for (size_t i = 0; i < sizeof(RESULTS) / sizeof(RESULTS[0]); i++)
        if (slice_is(name, RESULTS[i].name) && call_reply_show(reply, &call)) {
            call_errand_end(errand, RESULTS[i].result, &call);
            return;
        }
    bool may_have_happened = !reply && !slice_is(slice_of(errand->operation), "get");
    call_errand_end(errand, may_have_happened ? CALL_UNKNOWN : CALL_UNAVAILABLE, NULL);
}

/* ---- scripts ---- */

size_t call_shard_count(const struct call_port *port)
{
    return port->keys.cluster ? REDIS_CALL_SHARDS : 1;
}

int64_t call_claim_ttl_ms(const struct call_port *port)
{
    return port->options.ring_timeout_ms + port->options.lease_window_ms + CLAIM_EXTRA_MS;
}

/* "call:" or "call:{5}:". */
static struct slice name_prefix(const struct call_port *port, size_t shard, char out[16])
{
    int len =
        port->keys.cluster ? snprintf(out, 16, "call:{%zu}:", shard) : snprintf(out, 16, "call:");
    return (struct slice){out, (size_t)len};
}

static struct slice name_index(const struct call_port *port, size_t shard, char out[24])
{
    int len = port->keys.cluster ? snprintf(out, 24, "calls:due:{%zu}", shard)
                                 : snprintf(out, 24, "calls:due");
    return (struct slice){out, (size_t)len};
}

static void run_calls(struct call_port *port, const char *operation, struct redis_args keys,
                      struct slice first, struct redis_args own,
                      void (*done)(void *arg, const struct resp_value *reply), void *arg)
{
    enum { WORDS_BEFORE = 6 };
    const struct redis_call_options *options = &port->options;
    struct redis_store_number time, ring, grace, window;
    struct slice words[WORDS_BEFORE + CALL_WORDS_OWN_MAX] = {
        slice_of(operation),
        redis_store_time(&time, options->clock),
        redis_store_number(&ring, options->ring_timeout_ms),
        redis_store_number(&grace, options->reconnect_grace_ms),
        redis_store_number(&window, options->lease_window_ms),
        first,
    };
    assert(own.count <= CALL_WORDS_OWN_MAX);
    for (size_t i = 0; i < own.count; i++)
        words[WORDS_BEFORE + i] = own.items[i];
    redis_eval(options->client, &port->calls, keys,
               (struct redis_args){words, WORDS_BEFORE + own.count}, done, arg);
}

void call_run(struct call_port *port, const char *operation, struct slice id, struct redis_args own,
              void (*done)(void *arg, const struct resp_value *reply), void *arg)
{
    size_t shard = redis_slot(id) % call_shard_count(port);
    char prefix[16], index[24], key[REDIS_KEY_BYTES_MAX];
    struct slice start = name_prefix(port, shard, prefix);
    memcpy(key, start.data, start.len);
    memcpy(key + start.len, id.data, id.len);
    run_calls(port, operation,
              REDIS_ARGS(name_index(port, shard, index), (struct slice){key, start.len + id.len}),
              id, own, done, arg);
}

void call_run_shard(struct call_port *port, const char *operation, size_t shard,
                    struct redis_args own, void (*done)(void *arg, const struct resp_value *reply),
                    void *arg)
{
    char prefix[16], index[24];
    run_calls(port, operation, REDIS_ARGS(name_index(port, shard, index)),
              name_prefix(port, shard, prefix), own, done, arg);
}

void call_run_claim(struct call_port *port, struct slice user, struct redis_args words,
                    void (*done)(void *arg, const struct resp_value *reply), void *arg)
{
    char key[REDIS_KEY_BYTES_MAX];
    redis_eval(port->options.client, &port->claims,
               REDIS_ARGS(redis_key_user(&port->keys, key, "user:", user, ":call")), words, done,
               arg);
}

static void let_go(void *arg, const struct resp_value *reply)
{
    (void)reply;
    call_port_let_go(arg);
}

static void release(struct call_port *port, struct slice user, const struct call_claim *claim)
{
    if (!user.data)
        return;
    call_port_hold(port);
    call_run_claim(port, user, REDIS_ARGS(SLICE("release"), call_claim_text(claim)), let_go, port);
}

/* ---- replies: where things stand in them ---- */

enum {
    AT_RESULT,
    AT_ID,
    AT_CLAIM,
    AT_STATE,
    AT_REASON,
    AT_CALLER,
    AT_CALLEE = AT_CALLER + 3,
    AT_STARTED = AT_CALLEE + 3,
    AT_ANSWERED,
    AT_ENDED,
    SHOWN_ITEMS,
};

struct slice call_reply_result(const struct resp_value *reply)
{
    bool makes_sense = redis_store_is_array(reply, 1) && reply->items[AT_RESULT].type == RESP_TEXT;
    return makes_sense ? reply->items[AT_RESULT].text : SLICE_NONE;
}

static int number_of(struct slice name, const char *(*names)(int), int count)
{
    for (int i = 0; i < count; i++)
        if (slice_is(name, names(i)))
            return i;
    return -1;
}

static const char *state_name(int state)
{
    return call_state_name((enum call_state)state);
}

static const char *reason_name(int reason)
{
    return call_reason_name((enum call_reason)reason);
}

/* A user, the device and the connection stand in a row. An empty text is none. */
static bool show_party(const struct resp_value *items, struct call_device *party)
{
    *party = (struct call_device){
        .user_id = items[0].text.len ? items[0].text : SLICE_NONE,
        .device_id = items[1].text.len ? items[1].text : SLICE_NONE,
    };
    if (!ulid_parse(items[2].text, &party->conn_id))
        party->conn_id = (struct ulid){{0}};
    return items[0].text.len <= USER_ID_BYTES_MAX && items[1].text.len <= DEVICE_ID_BYTES_MAX;
}

bool call_reply_show(const struct resp_value *reply, struct call *call)
{
    if (!redis_store_is_array(reply, SHOWN_ITEMS))
        return false;
    const struct resp_value *items = reply->items;
    for (size_t i = AT_RESULT; i < AT_STARTED; i++)
        if (items[i].type != RESP_TEXT)
            return false;
    int state = number_of(items[AT_STATE].text, state_name, CALL_ENDED + 1);
    int reason = number_of(items[AT_REASON].text, reason_name, CALL_REASON_COUNT);
    *call = (struct call){
        .id = items[AT_ID].text,
        .state = (enum call_state)state,
        .reason = (enum call_reason)reason,
        .started_at_ms = redis_store_integer(&items[AT_STARTED]),
        .answered_at_ms = redis_store_integer(&items[AT_ANSWERED]),
        .ended_at_ms = redis_store_integer(&items[AT_ENDED]),
    };
    return state >= 0 && reason >= 0 && call->id.len > 0 && call->id.len <= CALL_ID_BYTES_MAX &&
           show_party(&items[AT_CALLER], &call->caller) && call->caller.user_id.data &&
           show_party(&items[AT_CALLEE], &call->callee);
}

bool call_reply_claim(const struct resp_value *reply, struct call_claim *claim)
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

bool call_errand_take_claim(struct call_errand *errand, const struct resp_value *reply)
{
    if (errand->port->is_freed || !call_reply_claim(reply, &errand->claim))
        call_errand_end(errand, CALL_UNAVAILABLE, NULL);
    else if (errand->claim.len == 0)
        call_errand_end(errand, CALL_NOT_FOUND, NULL);
    else
        return true;
    return false;
}

struct slice call_claim_text(const struct call_claim *claim)
{
    return (struct slice){claim->bytes, claim->len};
}

struct slice call_claim_key(const struct call_claim *claim)
{
    return (struct slice){claim->bytes, ULID_TEXT_LEN};
}

struct slice call_claim_id(const struct call_claim *claim)
{
    return slice_after(call_claim_text(claim), ULID_TEXT_LEN);
}

void call_settle(struct call_port *port, const struct resp_value *shown)
{
    struct call call;
    struct call_claim claim;
    if (!call_reply_show(shown, &call) || shown->items[AT_CLAIM].text.len != ULID_TEXT_LEN)
        return;
    memcpy(claim.bytes, shown->items[AT_CLAIM].text.data, ULID_TEXT_LEN);
    memcpy(claim.bytes + ULID_TEXT_LEN, call.id.data, call.id.len);
    claim.len = ULID_TEXT_LEN + call.id.len;
    call_port_hold(port);
    call_run(port, "acknowledge", call.id, REDIS_NO_ARGS, let_go, port);
    release(port, call.caller.user_id, &claim);
    release(port, call.callee.user_id, &claim);
}

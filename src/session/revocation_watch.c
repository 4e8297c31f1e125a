#include "session/revocation_watch.h"

#include "ledger/ledger_revocations.h"
#include "log/log.h"
#include "session/session_token.h"
#include "text/json.h"

enum { READ_RETRY_MS = 1000, EVENT_BYTES_MAX = 2048 };

static void read_revocations(struct revocation_watch *watch);

bool revocation_watch_init(struct revocation_watch *watch, struct session_context *context,
                           uint64_t seed)
{
    *watch = (struct revocation_watch){.context = context};
    return revocations_init(&watch->revocations, seed);
}

void revocation_watch_free(struct revocation_watch *watch)
{
    revocations_free(&watch->revocations);
}

/* Returns false when out of memory; the sessions end all the same. */
static bool note_revocation(struct revocation_watch *watch, struct slice user_id,
                            int64_t revoked_at_s)
{
    bool noted = revocations_put(&watch->revocations, user_id, revoked_at_s);
    session_end_revoked(watch->context, user_id, revoked_at_s);
    return noted;
}

/* Tokens may have waited for it. */
static void set_watch_state(struct revocation_watch *watch, enum revocations_state state)
{
    struct session_context *context = watch->context;
    if (watch->revocations.state == state)
        return;
    watch->revocations.state = state;
    if (state == REVOCATIONS_UNKNOWN)
        log_warn("revocations_unknown", "effect=%s",
                 log_sentence(SLICE(
                     "the ledger does not answer: revoked tokens are accepted until it does")));
    loop_defer(context->loop, &context->verify);
}

static void on_revocations_read(void *arg, const struct ledger_revocations_outcome *outcome)
{
    struct revocation_watch *watch = arg;
    const struct ledger_revocation *read = outcome->revocations;
    size_t noted = 0;
    watch->reading = false;
    for (; noted < outcome->count; noted++) {
        if (!note_revocation(watch, read[noted].user, read[noted].revoked_at_s))
            break;
        watch->position = read[noted].position;
    }
    bool is_whole = outcome->status == LEDGER_OK && noted == outcome->count;
    int64_t wait_ms = is_whole ? REVOCATION_WATCH_READ_MS : READ_RETRY_MS;
    watch->read_at_ms = watch->context->loop->clock.now_ms + wait_ms;
    if (is_whole && outcome->has_more)
        read_revocations(watch);
    else if (is_whole)
        set_watch_state(watch, REVOCATIONS_LOADED);
    else if (watch->revocations.state == REVOCATIONS_LOADING)
        set_watch_state(watch, REVOCATIONS_UNKNOWN);
}

static void read_revocations(struct revocation_watch *watch)
{
    if (watch->stopped || watch->reading)
        return;
    watch->reading = true;
    ledger_revocations_list(watch->context->ledger, watch->position, 0, on_revocations_read, watch);
}

void revocation_watch_start(struct revocation_watch *watch)
{
    bus_subscribe(watch->context->presence->bus, REVOCATION_WATCH_TOPIC);
    read_revocations(watch);
}

void revocation_watch_stop(struct revocation_watch *watch)
{
    watch->stopped = true;
}

void revocation_watch_tick(struct revocation_watch *watch)
{
    if (watch->context->loop->clock.now_ms >= watch->read_at_ms)
        read_revocations(watch);
}

void revocation_watch_on_gap(struct revocation_watch *watch)
{
    watch->read_at_ms = 0;
}

static bool parse_revocation_event(struct json *json, struct slice *user_id, int64_t *revoked_at_s)
{
    struct slice key;
    *user_id = SLICE_NONE;
    *revoked_at_s = 0;
    json_object(json);
    while (json_member(json, &key)) {
        if (slice_is(key, "user"))
            json_string(json, user_id);
        else if (slice_is(key, "revoked_at"))
            json_int(json, revoked_at_s);
        else
            json_skip(json);
    }
    return json_done(json) && user_id_valid(*user_id);
}

/* What does not fit into memory is read from the ledger later. */
void revocation_watch_on_event(struct revocation_watch *watch, struct slice payload)
{
    char text[EVENT_BYTES_MAX];
    struct json json;
    struct slice user_id;
    int64_t revoked_at_s;
    size_t len = payload.len < sizeof(text) ? payload.len : sizeof(text) - 1;
    memcpy(text, payload.data, len);
    json_init(&json, text, len);
    if (parse_revocation_event(&json, &user_id, &revoked_at_s))
        note_revocation(watch, user_id, revoked_at_s);
    else
        log_warn("bad_revocation_event", "bytes=%zu", payload.len);
}

void revocation_watch_publish(const struct session_context *context, struct slice user_id,
                              int64_t revoked_at_s)
{
    struct buffer event = BUFFER_INIT;
    json_write_object(&event);
    json_write_key_string(&event, SLICE("user"), user_id);
    json_write_key_int(&event, SLICE("revoked_at"), revoked_at_s);
    json_write_object_end(&event);
    if (!event.failed)
        bus_publish(context->presence->bus, REVOCATION_WATCH_TOPIC, buffer_slice(&event));
    buffer_free(&event);
}

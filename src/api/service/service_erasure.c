/*
 * DELETE /v1/service/users/{user}: erases a user.
 *
 *   revoke: sessions end, tokens issued so far are refused ► contacts, told to them ► blocks ► contact requests
 *   ► chat by chat: the user leaves; own messages become tombstones, slice by slice, also where the user left before ► settings
 *   ► wait until no lease is left and the last-seen time was stored ► state store ► history of calls, last seen ► 204
 *
 * Each step is a short operation of the ledger with others' writes in between, and all of them may be repeated: an erasure that
 * failed (503) or was cut off goes on with the next request. One that takes longer than ERASURE_ANSWER_MS is answered
 * with 202 and goes on; the request, repeated, is answered with 204 when the user is erased.
 */
#include "api/service/service_erasure.h"
#include "api/chat_events.h"
#include "api/service/relation_changes.h"
#include "api/service/service_routes.h"
#include "ledger/ledger_erasure.h"
#include "ledger/ledger_revocations.h"
#include "log/log.h"
#include "presence/visibility/visibility_change.h"
#include "session/revocation_watch.h"

#include <stdlib.h>

enum {
    ERASURE_ANSWER_MS = 20000,
    ERASURE_POLL_MS = 100,    /* between two looks at the leases */
    ERASURE_SETTLE_MS = 1000, /* for last-seen times that are on their way to the ledger */
    ERASURE_LEASES_MS =
        180000, /* leases of a lost gateway end by themselves; longer than any window */
};

struct erasure {
    struct list of_context;
    struct exchange *exchange; /* NULL: answered with 202 */
    struct session_context *sessions;
    struct wheel_timer answer; /* when it has taken too long */
    struct wheel_timer wait;
    void (*next)(struct erasure *erasure); /* after `wait` */
    int64_t waits_until_ms;
    struct id_list contacts; /* owned, as are the other lists */
    struct id_list blocked;
    struct id_list blocked_by;
    size_t at; /* in the list of this step */
    char chat_bytes[LEDGER_ID_BYTES_MAX];
    struct slice chat;   /* the one that is being left */
    bool chat_is_former; /* was left before its messages are erased, as all groups are */
    struct slice user;
    char user_bytes[LEDGER_ID_BYTES_MAX];
};

/* ---- the end ---- */

static void free_erasure(struct erasure *erasure)
{
    loop_cancel_timer(erasure->sessions->loop, &erasure->answer);
    loop_cancel_timer(erasure->sessions->loop, &erasure->wait);
    list_remove(&erasure->of_context);
    id_list_free(&erasure->contacts);
    id_list_free(&erasure->blocked);
    id_list_free(&erasure->blocked_by);
    free(erasure);
}

static void fail_erasure(struct erasure *erasure, enum ledger_status status)
{
    log_warn("erasure_failed", "user=%s status=%s", log_quote(erasure->user),
             ledger_status_name(status));
    if (erasure->exchange && status == LEDGER_LIMIT)
        exchange_error(&erasure->exchange, 409, ERROR_INVALID_MESSAGE,
                       "too many users are revoked: replace the signing key instead");
    else if (erasure->exchange)
        exchange_error(&erasure->exchange, 503, ERROR_SERVICE_UNAVAILABLE,
                       "a store does not answer: repeat the request, which goes on");
    free_erasure(erasure);
}

/* Returns whether the step succeeded; else the erasure has ended. */
static bool has_step_succeeded(struct erasure *erasure, enum ledger_status status)
{
    if (status == LEDGER_OK)
        return true;
    fail_erasure(erasure, status);
    return false;
}

static void on_erasure_takes_long(struct wheel_timer *timer)
{
    struct erasure *erasure = CONTAINER_OF(timer, struct erasure, answer);
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("user_id"), erasure->user);
    json_write_key_string(&json, SLICE("status"), SLICE("running"));
    json_write_object_end(&json);
    if (erasure->exchange)
        exchange_reply_json(&erasure->exchange, 202, &json);
    else
        buffer_free(&json);
}

static void on_erasure_waited(struct wheel_timer *timer)
{
    struct erasure *erasure = CONTAINER_OF(timer, struct erasure, wait);
    void (*next)(struct erasure *) = erasure->next;
    erasure->next = NULL;
    next(erasure);
}

static void wait_before(struct erasure *erasure, int64_t wait_ms,
                        void (*next)(struct erasure *erasure))
{
    struct loop *loop = erasure->sessions->loop;
    erasure->next = next;
    loop_set_timer(loop, &erasure->wait, loop->clock.now_ms + wait_ms);
}

void service_erasure_stop(struct api_context *context)
{
    struct list *at = context->erasures.next;
    while (at != &context->erasures) {
        struct erasure *erasure = CONTAINER_OF(at, struct erasure, of_context);
        at = at->next;
        if (erasure->next) /* only a timer would go on with it */
            fail_erasure(erasure, LEDGER_UNAVAILABLE);
    }
}

/* ---- leases, last seen ---- */

static void on_user_record_forgotten(void *arg, const struct ledger_change_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    log_info("user_erased", "user=%s", log_quote(erasure->user));
    if (erasure->exchange)
        exchange_reply_empty(&erasure->exchange);
    free_erasure(erasure);
}

static void on_user_state_forgotten(void *arg, enum state_status status)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, status == STATE_OK ? LEDGER_OK : LEDGER_UNAVAILABLE))
        return;
    graph_reader_drop(&erasure->sessions->presence->graphs, erasure->user);
    ledger_user_forget(erasure->sessions->ledger, erasure->user, on_user_record_forgotten, erasure);
}

static void forget_user_state(struct erasure *erasure)
{
    budgets_forget(&erasure->sessions->budgets, erasure->user);
    state_forget(erasure->sessions->presence->store, erasure->user, on_user_state_forgotten,
                 erasure);
}

static void look_at_leases(struct erasure *erasure);

static void on_erased_leases_read(void *arg, enum state_status status, const struct lease *leases,
                                  size_t count)
{
    struct erasure *erasure = arg;
    (void)leases;
    bool is_late = erasure->sessions->loop->clock.now_ms > erasure->waits_until_ms;
    if (status != STATE_OK || (count > 0 && is_late))
        fail_erasure(erasure, LEDGER_UNAVAILABLE);
    else if (count > 0)
        wait_before(erasure, ERASURE_POLL_MS, look_at_leases);
    else
        wait_before(erasure, ERASURE_SETTLE_MS, forget_user_state);
}

static void look_at_leases(struct erasure *erasure)
{
    state_leases(erasure->sessions->presence->store, erasure->user, on_erased_leases_read, erasure);
}

/* ---- settings ---- */

static void on_erased_settings_visible(void *arg)
{
    look_at_leases(arg);
}

static void on_settings_erased(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    erasure->waits_until_ms = erasure->sessions->loop->clock.now_ms + ERASURE_LEASES_MS;
    visibility_change_of_settings(erasure->sessions->presence, erasure->user, &outcome->previous,
                                  &outcome->settings, on_erased_settings_visible, erasure);
}

static void erase_settings(struct erasure *erasure)
{
    const struct ledger_settings defaults = {.presence = LEDGER_VISIBLE_CONTACTS_ONLY};
    const struct slice none = SLICE_NONE;
    ledger_settings_put(erasure->sessions->ledger, erasure->user,
                        &(struct ledger_settings_patch){.presence = &defaults.presence,
                                                        .last_seen = &defaults.last_seen,
                                                        .group_adds = &defaults.group_adds,
                                                        .hides_reads = &defaults.hides_reads,
                                                        .display_name = &none,
                                                        .avatar_url = &none},
                        on_settings_erased, erasure);
}

/* ---- messages ---- */

static void erase_next_chat(struct erasure *erasure);
static void erase_next_former_chat(struct erasure *erasure);
static void erase_chat_messages(struct erasure *erasure);

/* Returns false, and the erasure has ended, if the last step has left this chat as it was. */
static bool keep_erased_chat(struct erasure *erasure, struct slice chat)
{
    if (slice_equal(chat, erasure->chat)) {
        fail_erasure(erasure, LEDGER_UNAVAILABLE);
        return false;
    }
    memcpy(erasure->chat_bytes, chat.data, chat.len);
    erasure->chat = (struct slice){erasure->chat_bytes, chat.len};
    return true;
}

static void on_chat_messages_erased(void *arg, const struct ledger_change_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    if (outcome->changed) {
        erase_chat_messages(erasure);
    } else if (erasure->chat_is_former) {
        erase_next_former_chat(erasure);
    } else {
        chat_events_member_removed(erasure->sessions, erasure->chat, erasure->user, true);
        erase_next_chat(erasure);
    }
}

static void erase_chat_messages(struct erasure *erasure)
{
    ledger_messages_erase(erasure->sessions->ledger, erasure->chat, erasure->user,
                          on_chat_messages_erased, erasure);
}

/* Each is listed until nothing of the user is left in it, so the next one is always the first. */
static void on_erased_former_chats_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    if (outcome->count == 0)
        erase_settings(erasure);
    else if (keep_erased_chat(erasure, outcome->ids[0]))
        erase_chat_messages(erasure);
}

static void erase_next_former_chat(struct erasure *erasure)
{
    ledger_former_chats_list(erasure->sessions->ledger, erasure->user, SLICE_NONE, 1,
                             on_erased_former_chats_listed, erasure);
}

/* ---- chats ---- */

static void on_erased_user_left(void *arg, const struct ledger_member_outcome *outcome)
{
    struct erasure *erasure = arg;
    bool is_gone = outcome->status == LEDGER_NOT_FOUND;
    if (!has_step_succeeded(erasure, is_gone ? LEDGER_OK : outcome->status))
        return;
    chat_events_member_removed(erasure->sessions, erasure->chat, erasure->user, true);
    if (outcome->promoted.data)
        chat_events_role_changed(erasure->sessions, erasure->chat, outcome->promoted);
    erase_next_chat(erasure);
}

/* Each chat is left, so the next one is always the first. */
static void on_erased_chats_listed(void *arg, const struct ledger_chats_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    if (outcome->count == 0) {
        erasure->chat = SLICE_NONE;
        erasure->chat_is_former = true;
        erase_next_former_chat(erasure);
        return;
    }
    if (!keep_erased_chat(erasure, outcome->chats[0].id))
        return;
    if (outcome->chats[0].kind == LEDGER_CHAT_GROUP)
        ledger_chat_member_remove(erasure->sessions->ledger, erasure->chat, erasure->user,
                                  erasure->user, on_erased_user_left, erasure);
    else
        erase_chat_messages(erasure);
}

static void erase_next_chat(struct erasure *erasure)
{
    ledger_chats_list(erasure->sessions->ledger, erasure->user,
                      &(struct ledger_chats_cursor){.chat = SLICE_NONE}, 1, false,
                      on_erased_chats_listed, erasure);
}

/* ---- contact requests ---- */

static void erase_next_request(struct erasure *erasure);

static void on_erased_request_ended(void *arg, const struct ledger_contact_outcome *outcome)
{
    struct erasure *erasure = arg;
    bool is_gone = outcome->status == LEDGER_NOT_FOUND;
    if (has_step_succeeded(erasure, is_gone ? LEDGER_OK : outcome->status))
        erase_next_request(erasure);
}

static void on_erased_incoming_listed(void *arg,
                                      const struct ledger_contact_requests_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    if (outcome->count == 0)
        erase_next_chat(erasure);
    else
        ledger_contact_request_decline(erasure->sessions->ledger, erasure->user,
                                       outcome->requests[0].id, on_erased_request_ended, erasure);
}

static void on_erased_outgoing_listed(void *arg,
                                      const struct ledger_contact_requests_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    if (outcome->count == 0)
        ledger_contact_requests_list(erasure->sessions->ledger, erasure->user, LEDGER_INCOMING,
                                     SLICE_NONE, 1, on_erased_incoming_listed, erasure);
    else
        ledger_contact_request_withdraw(erasure->sessions->ledger, erasure->user,
                                        outcome->requests[0].id, on_erased_request_ended, erasure);
}

static void erase_next_request(struct erasure *erasure)
{
    ledger_contact_requests_list(erasure->sessions->ledger, erasure->user, LEDGER_OUTGOING,
                                 SLICE_NONE, 1, on_erased_outgoing_listed, erasure);
}

/* ---- blocks, in both directions ---- */

static void erase_next_block(struct erasure *erasure);

static void on_block_erased(void *arg, const struct ledger_change_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    erasure->at++;
    erase_next_block(erasure);
}

static void erase_next_block(struct erasure *erasure)
{
    size_t at = erasure->at, own = erasure->blocked.count;
    struct ledger_client *ledger = erasure->sessions->ledger;
    if (at < own)
        ledger_block_delete(ledger, erasure->user, erasure->blocked.ids[at], on_block_erased,
                            erasure);
    else if (at < own + erasure->blocked_by.count)
        ledger_block_delete(ledger, erasure->blocked_by.ids[at - own], erasure->user,
                            on_block_erased, erasure);
    else
        erase_next_request(erasure);
}

/* ---- contacts ---- */

static void end_next_contacts(struct erasure *erasure);

static void on_erased_contacts_ended(void *arg, const struct ledger_relations_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    erasure->at += outcome->count;
    end_next_contacts(erasure);
}

static void end_next_contacts(struct erasure *erasure)
{
    struct slice ids[2 * LEDGER_RELATIONS_MAX];
    size_t left = erasure->contacts.count - erasure->at;
    size_t count = left < LEDGER_RELATIONS_MAX ? left : LEDGER_RELATIONS_MAX;
    if (count == 0) {
        erasure->at = 0;
        erase_next_block(erasure);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ids[2 * i] = erasure->user;
        ids[2 * i + 1] = erasure->contacts.ids[erasure->at + i];
    }
    relation_changes_start(erasure->sessions, LEDGER_CONTACT_END, ids, count,
                           on_erased_contacts_ended, erasure);
}

static void on_erased_graph_read(void *arg, const struct ledger_graph_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    if (id_list_copy(&erasure->contacts, outcome->contacts.ids, outcome->contacts.count) &&
        id_list_copy(&erasure->blocked, outcome->blocked.ids, outcome->blocked.count) &&
        id_list_copy(&erasure->blocked_by, outcome->blocked_by.ids, outcome->blocked_by.count))
        end_next_contacts(erasure);
    else
        fail_erasure(erasure, LEDGER_BUSY);
}

/* ---- sessions ---- */

static void on_erased_user_revoked(void *arg, const struct ledger_revoke_outcome *outcome)
{
    struct erasure *erasure = arg;
    if (!has_step_succeeded(erasure, outcome->status))
        return;
    revocation_watch_publish(erasure->sessions, erasure->user, outcome->revoked_at_s);
    ledger_graph(erasure->sessions->ledger, erasure->user, 1, on_erased_graph_read, erasure);
}

void service_user_delete(struct exchange *exchange)
{
    struct api_context *context = api_context_of(exchange);
    struct loop *loop = context->sessions->loop;
    struct slice user;
    if (!service_read_user(&exchange, 0, &user))
        return;
    struct erasure *erasure = calloc(1, sizeof(*erasure));
    if (!erasure) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    erasure->exchange = exchange;
    erasure->sessions = context->sessions;
    erasure->answer.fire = on_erasure_takes_long;
    erasure->wait.fire = on_erasure_waited;
    memcpy(erasure->user_bytes, user.data, user.len);
    erasure->user = (struct slice){erasure->user_bytes, user.len};
    list_append(&context->erasures, &erasure->of_context);
    loop_set_timer(loop, &erasure->answer, loop->clock.now_ms + ERASURE_ANSWER_MS);
    ledger_revoke(erasure->sessions->ledger, erasure->user, on_erased_user_revoked, erasure);
}

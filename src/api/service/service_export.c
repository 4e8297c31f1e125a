/*
 * GET /v1/service/users/{user}/export: everything the server has of a user, as one JSON object that is written as it is read.
 *
 *   profile ► settings ► contacts ► blocks ► contact requests ► calls ► chats, by pages ► messages, chat by chat, by pages
 *      ▲                                                                                                │
 *      └──────── the next part is read when the one before was sent: memory holds one page ◄────────────┘
 *
 * Messages are the user's own, of the chats that the user is a member of, then of those that the user has left. A failure in the middle cuts the connection, so
 * that nobody takes a part for the whole.
 */
#include "api/admin_json.h"
#include "api/call_json.h"
#include "api/chat_json.h"
#include "api/service/service_routes.h"
#include "api/settings_json.h"
#include "auth/revocations.h"
#include "ledger/ledger_erasure.h"
#include "ledger/ledger_messages.h"
#include "text/time_text.h"

#include <stdlib.h>

enum { EXPORT_CHATS_PAGE = 100, EXPORT_MESSAGES_PAGE = 500 };

/* An id that outlives the page it was in. */
struct export_id {
    char bytes[LEDGER_ID_BYTES_MAX];
    size_t len;
};

struct export
{
    struct exchange *exchange;
    struct session_context *sessions;
    struct slice user; /* in the exchange */
    struct buffer json;
    void (*read_next)(struct export * export); /* the part that comes after what was written */
    bool has_begun;
    bool is_reading;
    bool client_gone;
    struct export_id after; /* of a page: a contact request, or a chat */
    int64_t after_activity_ms;
    struct export_id chats[EXPORT_CHATS_PAGE]; /* whose messages are read */
    size_t chat_count;
    size_t chat_at;
    bool has_more_chats;
    bool chats_are_former; /* those of this page were left */
    uint64_t sequence;
};

static struct slice export_id_slice(const struct export_id *id)
{
    return (struct slice){id->bytes, id->len};
}

static void keep_export_id(struct export_id *id, struct slice value)
{
    id->len = value.len < sizeof(id->bytes) ? value.len : sizeof(id->bytes);
    memcpy(id->bytes, value.data, id->len);
}

static void end_export(struct export *export, bool complete)
{
    exchange_end_answer(&export->exchange, complete);
    buffer_free(&export->json);
    free(export);
}

/* Returns false after ending an export that cannot go on. */
static bool check_export(struct export *export, enum ledger_status status)
{
    export->is_reading = false;
    if (status == LEDGER_OK && !export->client_gone && !export->json.failed)
        return true;
    if (!export->has_begun) {
        api_ledger_error(&export->exchange, status != LEDGER_OK ? status : LEDGER_UNAVAILABLE);
        buffer_free(&export->json);
        free(export);
        return false;
    }
    end_export(export, false);
    return false;
}

/* Sends what was written, but for its last byte: by that the writer of JSON knows whether a comma comes next. */
static void send_export_part(struct export *export, void (*read_next)(struct export *export))
{
    export->read_next = read_next;
    if (export->json.failed || export->client_gone) {
        end_export(export, false);
        return;
    }
    if (export->json.len < 2) {
        export->is_reading = true;
        read_next(export);
        return;
    }
    exchange_write(export->exchange,
                   slice_first(buffer_slice(&export->json), export->json.len - 1));
    buffer_consume(&export->json, export->json.len - 1);
}

static void on_export_part_sent(void *arg)
{
    struct export *export = arg;
    export->is_reading = true;
    export->read_next(export);
}

static void on_export_client_gone(void *arg)
{
    struct export *export = arg;
    export->client_gone = true;
    if (!export->is_reading)
        end_export(export, false);
}

/* ---- the end ---- */

static void write_export_end(struct export *export)
{
    json_write_array_end(&export->json);
    json_write_object_end(&export->json);
    export->is_reading = false;
    if (export->json.failed) {
        end_export(export, false);
        return;
    }
    exchange_write(export->exchange, buffer_slice(&export->json));
    end_export(export, true);
}

/* ---- messages ---- */

static void read_message_chats(struct export *export);
static void read_former_chats(struct export *export);
static void read_export_messages(struct export *export);

static void read_next_chat(struct export *export)
{
    export->sequence = 0;
    if (++export->chat_at < export->chat_count)
        read_export_messages(export);
    else if (export->has_more_chats && !export->chats_are_former)
        read_message_chats(export);
    else if (export->has_more_chats || !export->chats_are_former)
        read_former_chats(export);
    else
        write_export_end(export);
}

static void write_own_messages(struct export *export, const struct ledger_messages_outcome *outcome)
{
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_message *from = &outcome->messages[i];
        struct message message = {.type = MESSAGE_MESSAGE,
                                  .chat_message = {from->chat, from->id, (int64_t)from->sequence,
                                                   from->sender, from->body, from->sent_at_ms}};
        if (!slice_equal(from->sender, export->user))
            continue;
        json_write_object(&export->json);
        fields_encode(&export->json, &message);
        json_write_object_end(&export->json);
    }
}

static void on_export_messages_read(void *arg, const struct ledger_messages_outcome *outcome)
{
    struct export *export = arg;
    bool is_gone = outcome->status == LEDGER_NOT_FOUND; /* the chat, meanwhile */
    if (!check_export(export, is_gone ? LEDGER_OK : outcome->status))
        return;
    if (!is_gone)
        write_own_messages(export, outcome);
    if (outcome->count)
        export->sequence = outcome->messages[outcome->count - 1].sequence;
    send_export_part(export, !is_gone && outcome->has_more ? read_export_messages : read_next_chat);
}

static void read_export_messages(struct export *export)
{
    ledger_messages_after(export->sessions->ledger,
                          export_id_slice(&export->chats[export->chat_at]), SLICE_NONE,
                          export->sequence, EXPORT_MESSAGES_PAGE, on_export_messages_read, export);
}

/* ---- chats ---- */

static void list_export_chats(struct export *export, ledger_chats_done done)
{
    struct ledger_chats_cursor after = {export_id_slice(&export->after), export->after_activity_ms};
    if (!export->after.len)
        after.chat = SLICE_NONE;
    ledger_chats_list(export->sessions->ledger, export->user, &after, EXPORT_CHATS_PAGE, true, done,
                      export);
}

static void keep_chats_cursor(struct export *export, const struct ledger_chats_outcome *outcome)
{
    export->has_more_chats = outcome->has_more && outcome->count > 0;
    if (!export->has_more_chats) {
        export->after.len = 0;
        return;
    }
    keep_export_id(&export->after, outcome->chats[outcome->count - 1].id);
    export->after_activity_ms = outcome->chats[outcome->count - 1].activity_ms;
}

/* Reads the messages of the chats on this page. */
static void read_page_messages(struct export *export)
{
    export->chat_at = (size_t)-1;
    export->is_reading = true;
    read_next_chat(export);
}

static void on_former_chats_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    export->chat_count = 0;
    for (size_t i = 0; i < outcome->count && i < EXPORT_CHATS_PAGE; i++)
        keep_export_id(&export->chats[export->chat_count++], outcome->ids[i]);
    export->has_more_chats = outcome->count == EXPORT_CHATS_PAGE;
    if (export->has_more_chats)
        keep_export_id(&export->after, outcome->ids[outcome->count - 1]);
    read_page_messages(export);
}

static void read_former_chats(struct export *export)
{
    export->chats_are_former = true;
    ledger_former_chats_list(export->sessions->ledger, export->user,
                             export->after.len ? export_id_slice(&export->after) : SLICE_NONE,
                             EXPORT_CHATS_PAGE, on_former_chats_listed, export);
}

static void on_message_chats_listed(void *arg, const struct ledger_chats_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    keep_chats_cursor(export, outcome);
    export->chat_count = 0;
    for (size_t i = 0; i < outcome->count && i < EXPORT_CHATS_PAGE; i++)
        keep_export_id(&export->chats[export->chat_count++], outcome->chats[i].id);
    read_page_messages(export);
}

static void read_message_chats(struct export *export)
{
    list_export_chats(export, on_message_chats_listed);
}

static void read_export_chats(struct export *export);

static void on_export_chats_listed(void *arg, const struct ledger_chats_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        chat_json_write(&export->json, &outcome->chats[i], false);
    keep_chats_cursor(export, outcome);
    if (!export->has_more_chats) {
        json_write_array_end(&export->json);
        json_write_key(&export->json, SLICE("messages"));
        json_write_array(&export->json);
    }
    send_export_part(export, export->has_more_chats ? read_export_chats : read_message_chats);
}

static void read_export_chats(struct export *export)
{
    list_export_chats(export, on_export_chats_listed);
}

/* ---- calls ---- */

static void on_export_calls_listed(void *arg, const struct ledger_calls_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    json_write_key(&export->json, SLICE("calls"));
    json_write_array(&export->json);
    for (size_t i = 0; i < outcome->count; i++)
        call_json_write(&export->json, export->user, &outcome->calls[i]);
    json_write_array_end(&export->json);
    json_write_key(&export->json, SLICE("chats"));
    json_write_array(&export->json);
    send_export_part(export, read_export_chats);
}

static void read_export_calls(struct export *export)
{
    ledger_calls_list(export->sessions->ledger, export->user, LEDGER_PAGE_MAX,
                      on_export_calls_listed, export);
}

/* ---- contact requests ---- */

static void write_contact_requests(struct export *export, bool incoming,
                                   const struct ledger_contact_requests_outcome *outcome)
{
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_contact_request *request = &outcome->requests[i];
        json_write_object(&export->json);
        json_write_key_string(&export->json, SLICE("id"), request->id);
        json_write_key_string(&export->json, incoming ? SLICE("from") : SLICE("to"),
                              incoming ? request->from : request->to);
        admin_write_time(&export->json, SLICE("created_at"), request->created_at_ms);
        json_write_object_end(&export->json);
    }
    export->after.len = 0;
    if (outcome->has_more && outcome->count)
        keep_export_id(&export->after, outcome->requests[outcome->count - 1].id);
    else
        json_write_array_end(&export->json);
}

static void list_contact_requests(struct export *export, enum ledger_direction direction,
                                  ledger_contact_requests_done done)
{
    ledger_contact_requests_list(export->sessions->ledger, export->user, direction,
                                 export->after.len ? export_id_slice(&export->after) : SLICE_NONE,
                                 LEDGER_PAGE_MAX, done, export);
}

static void read_export_outgoing(struct export *export);
static void read_export_incoming(struct export *export);

static void on_export_outgoing_listed(void *arg,
                                      const struct ledger_contact_requests_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    write_contact_requests(export, false, outcome);
    if (!export->after.len)
        json_write_object_end(&export->json);
    send_export_part(export, export->after.len ? read_export_outgoing : read_export_calls);
}

static void read_export_outgoing(struct export *export)
{
    list_contact_requests(export, LEDGER_OUTGOING, on_export_outgoing_listed);
}

static void on_export_incoming_listed(void *arg,
                                      const struct ledger_contact_requests_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    write_contact_requests(export, true, outcome);
    if (!export->after.len) {
        json_write_key(&export->json, SLICE("outgoing"));
        json_write_array(&export->json);
    }
    send_export_part(export, export->after.len ? read_export_incoming : read_export_outgoing);
}

static void read_export_incoming(struct export *export)
{
    list_contact_requests(export, LEDGER_INCOMING, on_export_incoming_listed);
}

/* ---- contacts, blocks, settings ---- */

static void write_export_users(struct export *export, const char *name,
                               const struct ledger_ids_outcome *outcome)
{
    json_write_key(&export->json, slice_of(name));
    json_write_array(&export->json);
    for (size_t i = 0; i < outcome->count; i++)
        json_write_string(&export->json, outcome->ids[i]);
    json_write_array_end(&export->json);
}

static void on_export_blocks_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    write_export_users(export, "blocks", outcome);
    json_write_key(&export->json, SLICE("contact_requests"));
    json_write_object(&export->json);
    json_write_key(&export->json, SLICE("incoming"));
    json_write_array(&export->json);
    send_export_part(export, read_export_incoming);
}

static void read_export_blocks(struct export *export)
{
    ledger_blocks_list(export->sessions->ledger, export->user, on_export_blocks_listed, export);
}

static void on_export_contacts_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    write_export_users(export, "contacts", outcome);
    send_export_part(export, read_export_blocks);
}

static void read_export_contacts(struct export *export)
{
    ledger_contacts_list(export->sessions->ledger, export->user, on_export_contacts_listed, export);
}

static void on_export_settings_read(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    json_write_key(&export->json, SLICE("settings"));
    json_write_object(&export->json);
    settings_json_write(&export->json, &outcome->settings);
    settings_json_write_appearance(&export->json, &outcome->appearance);
    json_write_object_end(&export->json);
    export->has_begun = true;
    exchange_begin_answer(export->exchange, "application/json", on_export_part_sent,
                          on_export_client_gone, export);
    send_export_part(export, read_export_contacts);
}

/* The first part: what else is known of the user. */
static void on_export_profile_read(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct export *export = arg;
    if (!check_export(export, outcome->status))
        return;
    const struct revocations *revocations = export->sessions->verifier->revocations;
    int64_t revoked_at_s = revocations ? revocations_find(revocations, export->user) : -1;
    int64_t last_seen_ms = outcome->profiles[0].last_seen_ms;
    json_write_object(&export->json);
    json_write_key_string(&export->json, SLICE("user_id"), export->user);
    admin_write_time(&export->json, SLICE("exported_at"), export->sessions->loop->clock.wall_ms);
    admin_write_time(&export->json, SLICE("last_seen"), last_seen_ms ? last_seen_ms : TIME_NONE);
    admin_write_time(&export->json, SLICE("revoked_at"),
                     revoked_at_s >= 0 ? revoked_at_s * 1000 : TIME_NONE);
    ledger_settings_get(export->sessions->ledger, export->user, on_export_settings_read, export);
}

void service_export_get(struct exchange *exchange)
{
    struct slice user;
    if (!service_read_user(&exchange, 0, &user))
        return;
    if (exchange->head.method == HTTP1_HEAD) {
        exchange_reply(&exchange, 200, "application/json", "", SLICE_NONE);
        return;
    }
    struct export *export = calloc(1, sizeof(*export));
    if (!export) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    export->exchange = exchange;
    export->sessions = api_context_of(exchange)->sessions;
    export->user = user;
    ledger_profiles(export->sessions->ledger, SLICE_NONE, &user, 1, on_export_profile_read, export);
}

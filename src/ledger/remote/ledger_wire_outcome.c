#include "ledger/remote/ledger_wire_internal.h"

/* No list of an outcome is longer than LIST_MAX. */
enum { LIST_MAX = LEDGER_CHATS_PAGE_MEMBERS_MAX, CONTACT_RESULTS = LEDGER_CONTACT_WITHDRAWN + 1 };

/* ---- one function per field of the union ---- */

static void pass_change_outcome(struct wire *wire, struct ledger_change_outcome *outcome)
{
    wire_bool(wire, &outcome->changed);
}

static void pass_ids_outcome(struct wire *wire, struct ledger_ids_outcome *outcome)
{
    ledger_wire_ids(wire, &outcome->ids, &outcome->count, LIST_MAX);
}

static void pass_settings_outcome(struct wire *wire, struct ledger_settings_outcome *outcome)
{
    ledger_wire_settings(wire, &outcome->settings);
    ledger_wire_settings(wire, &outcome->previous);
    ledger_wire_appearance(wire, &outcome->appearance);
}

static void pass_profiles_outcome(struct wire *wire, struct ledger_profiles_outcome *outcome)
{
    const void *items = outcome->profiles;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->profiles), LIST_MAX)) {
        struct ledger_profile *profiles = (struct ledger_profile *)items;
        for (size_t i = 0; i < outcome->count; i++) {
            ledger_wire_id(wire, &profiles[i].user);
            ledger_wire_settings(wire, &profiles[i].settings);
            wire_bool(wire, &profiles[i].are_contacts);
            wire_bool(wire, &profiles[i].blocked_by_viewer);
            wire_bool(wire, &profiles[i].blocked_by_target);
            wire_signed(wire, &profiles[i].last_seen_ms);
            wire_number(wire, &profiles[i].presence_version, UINT64_MAX);
        }
    }
    outcome->profiles = items;
}

static void pass_appearances_outcome(struct wire *wire, struct ledger_appearances_outcome *outcome)
{
    const void *items = outcome->appearances;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->appearances),
                  LEDGER_APPEARANCES_MAX))
        for (size_t i = 0; i < outcome->count; i++)
            ledger_wire_appearance(wire, (struct ledger_appearance *)items + i);
    outcome->appearances = items;
}

static void pass_graph_outcome(struct wire *wire, struct ledger_graph_outcome *outcome)
{
    ledger_wire_settings(wire, &outcome->settings);
    ledger_wire_ids(wire, &outcome->contacts.ids, &outcome->contacts.count, LIST_MAX);
    ledger_wire_ids(wire, &outcome->blocked.ids, &outcome->blocked.count, LIST_MAX);
    ledger_wire_ids(wire, &outcome->blocked_by.ids, &outcome->blocked_by.count, LIST_MAX);
    ledger_wire_ids(wire, &outcome->chats.ids, &outcome->chats.count, LIST_MAX);
}

/* A contact request that was accepted before has no id. */
static void pass_contact_request(struct wire *wire, struct ledger_contact_request *request)
{
    ledger_wire_optional_id(wire, &request->id);
    ledger_wire_id(wire, &request->from);
    ledger_wire_id(wire, &request->to);
    wire_signed(wire, &request->created_at_ms);
}

static void pass_contact_outcome(struct wire *wire, struct ledger_contact_outcome *outcome)
{
    wire_choice(wire, &outcome->result, CONTACT_RESULTS);
    pass_contact_request(wire, &outcome->request);
    wire_bool(wire, &outcome->tell_other_side);
}

static void pass_contact_requests_outcome(struct wire *wire,
                                          struct ledger_contact_requests_outcome *outcome)
{
    const void *items = outcome->requests;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->requests), LIST_MAX))
        for (size_t i = 0; i < outcome->count; i++)
            pass_contact_request(wire, (struct ledger_contact_request *)items + i);
    outcome->requests = items;
    wire_bool(wire, &outcome->has_more);
}

static void pass_block_outcome(struct wire *wire, struct ledger_block_outcome *outcome)
{
    wire_bool(wire, &outcome->changed);
    wire_bool(wire, &outcome->contact_removed);
}

static void pass_relations_outcome(struct wire *wire, struct ledger_relations_outcome *outcome)
{
    const void *items = outcome->results;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->results), LEDGER_RELATIONS_MAX)) {
        struct ledger_relation_result *results = (struct ledger_relation_result *)items;
        for (size_t i = 0; i < outcome->count; i++) {
            wire_choice(wire, &results[i].status, LEDGER_STATUS_COUNT);
            wire_bool(wire, &results[i].changed);
            wire_bool(wire, &results[i].contact_removed);
        }
    }
    outcome->results = items;
}

static void pass_chat_profiles(struct wire *wire, struct ledger_chat *chat)
{
    const void *items = chat->profiles;
    if (wire_list(wire, &items, &chat->profile_count, sizeof(*chat->profiles),
                  LEDGER_CHAT_PROFILES_MAX)) {
        struct ledger_chat_profile *profiles = (struct ledger_chat_profile *)items;
        for (size_t i = 0; i < chat->profile_count; i++) {
            ledger_wire_id(wire, &profiles[i].user);
            ledger_wire_appearance(wire, &profiles[i].appearance);
            ledger_wire_sequence(wire, &profiles[i].read_sequence);
        }
    }
    if (!wire->out)
        chat->profiles = items;
}

/* A chat may come without its members, but always with their number. */
static void pass_one_chat(struct wire *wire, struct ledger_chat *chat)
{
    enum { KINDS = LEDGER_CHAT_DIRECT + 1 };
    uint64_t member_count = chat->member_count;
    size_t listed = chat->members ? chat->member_count : 0;
    ledger_wire_id(wire, &chat->id);
    wire_choice(wire, &chat->kind, KINDS);
    ledger_wire_optional_id(wire, &chat->creator);
    wire_signed(wire, &chat->created_at_ms);
    wire_signed(wire, &chat->activity_ms);
    ledger_wire_ids(wire, &chat->members, &listed, LIST_MAX);
    wire_number(wire, &member_count, LIST_MAX);
    if (!wire->out)
        chat->member_count = member_count;
    if (listed > 0 && listed != member_count)
        wire_fail(wire);
    ledger_wire_ids(wire, &chat->admins, &chat->admin_count, LIST_MAX);
    wire_bool(wire, &chat->members_can_add);
    ledger_wire_sequence(wire, &chat->members_version);
    ledger_wire_sequence(wire, &chat->latest_sequence);
    wire_number(wire, &chat->unread, UINT64_MAX);
    pass_chat_profiles(wire, chat);
}

static void pass_chat_outcome(struct wire *wire, struct ledger_chat_outcome *outcome)
{
    wire_bool(wire, &outcome->created);
    pass_one_chat(wire, &outcome->chat);
}

static void pass_chats_outcome(struct wire *wire, struct ledger_chats_outcome *outcome)
{
    const void *items = outcome->chats;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->chats), LIST_MAX))
        for (size_t i = 0; i < outcome->count; i++)
            pass_one_chat(wire, (struct ledger_chat *)items + i);
    outcome->chats = items;
    wire_bool(wire, &outcome->has_more);
}

static void pass_member_outcome(struct wire *wire, struct ledger_member_outcome *outcome)
{
    wire_bool(wire, &outcome->changed);
    ledger_wire_optional_id(wire, &outcome->promoted);
}

static void pass_cursor_outcome(struct wire *wire, struct ledger_cursor_outcome *outcome)
{
    wire_bool(wire, &outcome->changed);
    wire_bool(wire, &outcome->read_more);
    ledger_wire_sequence(wire, &outcome->read_sequence);
    wire_bool(wire, &outcome->is_shown);
    ledger_wire_ids(wire, &outcome->hidden_from.ids, &outcome->hidden_from.count,
                    LEDGER_RECEIPT_MEMBERS_MAX);
}

static void pass_calls_outcome(struct wire *wire, struct ledger_calls_outcome *outcome)
{
    const void *items = outcome->calls;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->calls), LIST_MAX))
        for (size_t i = 0; i < outcome->count; i++)
            ledger_wire_call(wire, (struct ledger_call *)items + i);
    outcome->calls = items;
}

static void pass_append_outcome(struct wire *wire, struct ledger_append_outcome *outcome)
{
    ledger_wire_id(wire, &outcome->message_id);
    ledger_wire_sequence(wire, &outcome->sequence);
    wire_signed(wire, &outcome->sent_at_ms);
    ledger_wire_sequence(wire, &outcome->members_version);
    wire_bool(wire, &outcome->duplicate);
    wire_bool(wire, &outcome->body_differs);
    wire_bool(wire, &outcome->published);
}

static void pass_messages_outcome(struct wire *wire, struct ledger_messages_outcome *outcome)
{
    const void *items = outcome->messages;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->messages), LIST_MAX)) {
        struct ledger_message *messages = (struct ledger_message *)items;
        for (size_t i = 0; i < outcome->count; i++) {
            ledger_wire_id(wire, &messages[i].chat);
            ledger_wire_id(wire, &messages[i].id);
            ledger_wire_id(wire, &messages[i].sender);
            ledger_wire_optional_id(wire, &messages[i].client_message_id);
            wire_text(wire, &messages[i].body, 0, LEDGER_BODY_BYTES_MAX);
            ledger_wire_sequence(wire, &messages[i].sequence);
            wire_signed(wire, &messages[i].sent_at_ms);
        }
    }
    outcome->messages = items;
    wire_bool(wire, &outcome->has_more);
    ledger_wire_sequence(wire, &outcome->latest_sequence);
}

static void pass_dead_letters_outcome(struct wire *wire,
                                      struct ledger_dead_letters_outcome *outcome)
{
    const void *items = outcome->letters;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->letters), LIST_MAX)) {
        struct ledger_dead_letter *letters = (struct ledger_dead_letter *)items;
        for (size_t i = 0; i < outcome->count; i++) {
            ledger_wire_id(wire, &letters[i].chat);
            wire_text(wire, &letters[i].reason, 0, LEDGER_DEAD_LETTER_REASON_BYTES_MAX);
            ledger_wire_sequence(wire, &letters[i].sequence);
            wire_signed(wire, &letters[i].created_at_ms);
        }
    }
    outcome->letters = items;
}

static void pass_repair_outcome(struct wire *wire, struct ledger_repair_outcome *outcome)
{
    wire_bool(wire, &outcome->counter_missing);
    wire_bool(wire, &outcome->needed);
    wire_number(wire, &outcome->counter, UINT64_MAX);
    wire_number(wire, &outcome->highest_sequence, UINT64_MAX);
}

static void pass_revoke_outcome(struct wire *wire, struct ledger_revoke_outcome *outcome)
{
    wire_signed(wire, &outcome->revoked_at_s);
}

static void pass_revocations_outcome(struct wire *wire, struct ledger_revocations_outcome *outcome)
{
    const void *items = outcome->revocations;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->revocations), LIST_MAX)) {
        struct ledger_revocation *revocations = (struct ledger_revocation *)items;
        for (size_t i = 0; i < outcome->count; i++) {
            ledger_wire_id(wire, &revocations[i].user);
            wire_signed(wire, &revocations[i].revoked_at_s);
            ledger_wire_sequence(wire, &revocations[i].position);
        }
    }
    outcome->revocations = items;
    wire_bool(wire, &outcome->has_more);
}

static void pass_one_event(struct wire *wire, struct ledger_event *event)
{
    ledger_wire_optional_id(wire, &event->queue);
    ledger_wire_id(wire, &event->position);
    wire_choice(wire, &event->type, LEDGER_EVENT_TYPE_COUNT);
    ledger_wire_id(wire, &event->subject);
    wire_signed(wire, &event->time_ms);
    wire_text(wire, &event->data, 1, LEDGER_EVENT_DATA_BYTES_MAX);
    wire_text(wire, &event->reason, 0, LEDGER_DEAD_LETTER_REASON_BYTES_MAX);
    wire_number(wire, &event->sequence, INT64_MAX);
    wire_text(wire, &event->body, 0, LEDGER_BODY_BYTES_MAX);
}

static void pass_events_outcome(struct wire *wire, struct ledger_events_outcome *outcome)
{
    const void *items = outcome->events;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->events), LIST_MAX))
        for (size_t i = 0; i < outcome->count; i++)
            pass_one_event(wire, (struct ledger_event *)items + i);
    outcome->events = items;
    wire_bool(wire, &outcome->has_more);
}

static void pass_event_queue_outcome(struct wire *wire, struct ledger_event_queue_outcome *outcome)
{
    ledger_wire_optional_id(wire, &outcome->holder);
    ledger_wire_sequence(wire, &outcome->lease_version);
    wire_number(wire, &outcome->event_count, UINT64_MAX);
    wire_number(wire, &outcome->dropped, UINT64_MAX);
}

static void pass_keys_outcome(struct wire *wire, struct ledger_keys_outcome *outcome)
{
    const void *items = outcome->keys;
    if (wire_list(wire, &items, &outcome->count, sizeof(*outcome->keys), LEDGER_KEYS_MAX)) {
        struct ledger_key *keys = (struct ledger_key *)items;
        for (size_t i = 0; i < outcome->count; i++) {
            ledger_wire_id(wire, &keys[i].name);
            ledger_wire_id(wire, &keys[i].hash);
            ledger_wire_id(wire, &keys[i].scope);
            wire_signed(wire, &keys[i].created_at_ms);
            wire_signed(wire, &keys[i].last_used_ms);
        }
    }
    outcome->keys = items;
}

/* ---- one function per operation ---- */

#define PASS(name, writes, field)                                                                  \
    static void pass_##name(struct wire *wire, union ledger_request_outcome *outcome)              \
    {                                                                                              \
        pass_##field##_outcome(wire, &outcome->field);                                             \
    }
LEDGER_OPERATIONS(PASS)
#undef PASS

typedef void (*outcome_pass)(struct wire *wire, union ledger_request_outcome *outcome);

#define ROW(name, writes, field) pass_##name,
static const outcome_pass passes[LEDGER_OPERATION_COUNT] = {LEDGER_OPERATIONS(ROW)};
#undef ROW

void ledger_wire_pass_outcome(struct wire *wire, enum ledger_operation operation,
                              union ledger_request_outcome *outcome)
{
    if (operation < LEDGER_OPERATION_COUNT)
        passes[operation](wire, outcome);
    else
        wire_fail(wire);
}

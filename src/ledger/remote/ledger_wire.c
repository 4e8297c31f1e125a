#include "ledger/remote/ledger_wire.h"

#include "ledger/remote/ledger_wire_internal.h"

_Static_assert(LEDGER_OPERATION_COUNT == 57, "raise LEDGER_WIRE_VERSION with the operations");

enum { VERSIONS = UINT8_MAX + 1 };

/* ---- inputs ---- */

/* The parts of an input. */
enum {
    USER = 1 << 0,
    OTHER = 1 << 1,
    CHAT = 1 << 2,
    ID = 1 << 3,
    CLIENT_ID = 1 << 4,
    DEVICE = 1 << 5,
    TEXT = 1 << 6,
    CALL = 1 << 7,
    PAGE = 1 << 8, /* a limit */
};

/* The parts that each operation needs. */
static const unsigned needs[LEDGER_OPERATION_COUNT] = {
    [LEDGER_SETTINGS_GET] = USER,
    [LEDGER_SETTINGS_PUT] = USER,
    [LEDGER_GRAPH] = USER | PAGE,
    [LEDGER_CONTACT_REQUEST_CREATE] = ID | USER | OTHER,
    [LEDGER_CONTACT_REQUEST_ACCEPT] = USER | ID,
    [LEDGER_CONTACT_REQUEST_DECLINE] = USER | ID,
    [LEDGER_CONTACT_REQUEST_WITHDRAW] = USER | ID,
    [LEDGER_CONTACT_REQUESTS_LIST] = USER | PAGE,
    [LEDGER_CONTACTS_LIST] = USER,
    [LEDGER_CONTACT_REMOVE] = USER | OTHER,
    [LEDGER_BLOCK_PUT] = USER | OTHER,
    [LEDGER_BLOCK_DELETE] = USER | OTHER,
    [LEDGER_BLOCKS_LIST] = USER,
    [LEDGER_RELATIONS_CHANGE] = USER,
    [LEDGER_CHAT_CREATE] = CHAT | USER,
    [LEDGER_CHAT_OPEN_DIRECT] = CHAT | USER | OTHER,
    [LEDGER_CHAT_GET] = CHAT,
    [LEDGER_CHAT_CHANGE] = CHAT | USER,
    [LEDGER_CHATS_LIST] = USER | PAGE,
    [LEDGER_CHAT_MEMBER_CHECK] = CHAT | USER,
    [LEDGER_CHAT_MEMBER_ADD] = CHAT | USER | OTHER,
    [LEDGER_CHAT_MEMBER_REMOVE] = CHAT | USER | OTHER,
    [LEDGER_CHAT_ADMIN_PUT] = CHAT | USER | OTHER,
    [LEDGER_CHAT_ADMIN_DELETE] = CHAT | USER | OTHER,
    [LEDGER_CALL_APPEND] = CALL,
    [LEDGER_CALLS_LIST] = USER | PAGE,
    [LEDGER_MESSAGE_APPEND] = CHAT | USER | CLIENT_ID | ID | TEXT,
    [LEDGER_MESSAGES_AFTER] = CHAT | PAGE,
    [LEDGER_MESSAGES_BEFORE] = CHAT | PAGE,
    [LEDGER_MESSAGES_ERASE] = CHAT | USER,
    [LEDGER_USER_FORGET] = USER,
    [LEDGER_CURSOR_PUT] = CHAT | USER | DEVICE,
    [LEDGER_OUTBOX_LIST] = PAGE,
    [LEDGER_DEAD_LETTER_PUT] = CHAT | TEXT,
    [LEDGER_DEAD_LETTERS_LIST] = PAGE,
    [LEDGER_DEAD_LETTER_REPLAY] = CHAT,
    [LEDGER_CHAT_REPAIR] = CHAT,
    [LEDGER_REVOKE] = USER,
    [LEDGER_REVOCATIONS_LIST] = PAGE,
    [LEDGER_CALL_EVENT] = CALL,
    [LEDGER_EVENTS_LIST] = ID | PAGE,
    [LEDGER_EVENTS_REMOVE] = ID,
    [LEDGER_EVENTS_BURY] = ID,
    [LEDGER_DEAD_EVENTS_LIST] = PAGE,
    [LEDGER_DEAD_EVENTS_REPLAY] = ID,
    [LEDGER_EVENT_QUEUE_GET] = ID,
    [LEDGER_EVENT_LEASE] = ID | DEVICE,
    [LEDGER_KEY_PUT] = ID | DEVICE | OTHER,
    [LEDGER_KEY_DELETE] = ID,
    [LEDGER_KEY_USED] = ID,
    [LEDGER_KEYS_LIST] = PAGE,
    [LEDGER_MESSAGE_DELETE] = CHAT,
    [LEDGER_FORMER_CHATS_LIST] = USER | PAGE,
};

static void pass_input_last_seen(struct wire *wire, struct ledger_request_input *input)
{
    const void *items = input->seen;
    if (wire_list(wire, &items, &input->seen_count, sizeof(*input->seen),
                  LEDGER_LAST_SEEN_BATCH_MAX)) {
        struct ledger_last_seen *seen = (struct ledger_last_seen *)items;
        for (size_t i = 0; i < input->seen_count; i++) {
            ledger_wire_id(wire, &seen[i].user);
            wire_signed(wire, &seen[i].last_seen_ms);
            wire_number(wire, &seen[i].presence_version, UINT64_MAX);
        }
    }
    input->seen = items;
}

static void pass_input_positions(struct wire *wire, struct ledger_request_input *input)
{
    const void *items = input->positions;
    if (wire_list(wire, &items, &input->position_count, sizeof(*input->positions),
                  LEDGER_OUTBOX_BATCH_MAX)) {
        struct ledger_position *positions = (struct ledger_position *)items;
        for (size_t i = 0; i < input->position_count; i++) {
            ledger_wire_id(wire, &positions[i].chat);
            ledger_wire_sequence(wire, &positions[i].sequence);
            wire_signed(wire, &positions[i].sent_at_ms);
        }
    }
    input->positions = items;
}

/* A list of one call or none. */
static void pass_input_call(struct wire *wire, struct ledger_request_input *input)
{
    const void *items = input->call;
    size_t count = input->call != NULL;
    if (wire_list(wire, &items, &count, sizeof(*input->call), 1))
        ledger_wire_call(wire, (struct ledger_call *)items);
    input->call = items;
}

static void pass_input_queues(struct wire *wire, struct ledger_request_input *input)
{
    const void *items = input->queues;
    if (wire_list(wire, &items, &input->queue_count, sizeof(*input->queues),
                  LEDGER_EVENT_QUEUES_MAX)) {
        struct ledger_event_queue *queues = (struct ledger_event_queue *)items;
        for (size_t i = 0; i < input->queue_count; i++) {
            ledger_wire_id(wire, &queues[i].name);
            wire_count(wire, &queues[i].types, LEDGER_EVENT_TYPES_ALL);
            wire_count(wire, &queues[i].count_max, UINT32_MAX);
        }
    }
    input->queues = items;
}

static void pass_request_input(struct wire *wire, struct ledger_request_input *input)
{
    ledger_wire_optional_id(wire, &input->user);
    ledger_wire_optional_id(wire, &input->other);
    ledger_wire_optional_id(wire, &input->chat);
    ledger_wire_optional_id(wire, &input->id);
    ledger_wire_optional_id(wire, &input->after);
    wire_signed(wire, &input->after_activity_ms);
    ledger_wire_optional_id(wire, &input->client_message_id);
    ledger_wire_optional_id(wire, &input->device);
    wire_text(wire, &input->text, 0, LEDGER_BODY_BYTES_MAX);
    ledger_wire_ids(wire, &input->ids, &input->id_count, LEDGER_PROFILES_MAX);
    pass_input_last_seen(wire, input);
    pass_input_positions(wire, input);
    pass_input_call(wire, input);
    wire_choice(wire, &input->relation, LEDGER_RELATION_CHANGES);
    ledger_wire_settings(wire, &input->settings);
    ledger_wire_appearance(wire, &input->appearance);
    ledger_wire_sequence(wire, &input->sequence);
    wire_count(wire, &input->limit, LEDGER_PAGE_MAX);
    wire_bool(wire, &input->set_presence);
    wire_bool(wire, &input->set_last_seen);
    wire_bool(wire, &input->set_group_adds);
    wire_bool(wire, &input->set_hides_reads);
    wire_bool(wire, &input->set_display_name);
    wire_bool(wire, &input->set_avatar_url);
    wire_bool(wire, &input->incoming);
    wire_bool(wire, &input->with_members);
    wire_bool(wire, &input->with_profiles);
    wire_bool(wire, &input->members_can_add);
    wire_bool(wire, &input->apply);
    wire_bool(wire, &input->skips_outbox);
    wire_bool(wire, &input->without_consent);
    wire_choice(wire, &input->event_type, LEDGER_EVENT_TYPE_COUNT);
    pass_input_queues(wire, input);
}

/* ---- heads ---- */

static void pass_wire_version(struct wire *wire)
{
    unsigned version = LEDGER_WIRE_VERSION;
    wire_choice(wire, &version, VERSIONS);
    if (version != LEDGER_WIRE_VERSION)
        wire_fail(wire);
}

static void pass_request_head(struct wire *wire, struct ledger_wire_head *head)
{
    pass_wire_version(wire);
    wire_number(wire, &head->id, UINT64_MAX);
    wire_choice(wire, &head->operation, LEDGER_OPERATION_COUNT);
    wire_signed(wire, &head->wall_ms);
}

static void pass_answer_head(struct wire *wire, struct ledger_wire_head *head)
{
    pass_wire_version(wire);
    wire_number(wire, &head->id, UINT64_MAX);
    wire_choice(wire, &head->status, LEDGER_STATUS_COUNT);
}

void ledger_wire_encode_request(struct buffer *out, uint64_t id, struct ledger_request *request)
{
    struct wire wire = wire_writing(out);
    struct ledger_wire_head head = {
        .id = id, .operation = request->operation, .wall_ms = request->wall_ms};
    pass_request_head(&wire, &head);
    pass_request_input(&wire, &request->input);
}

void ledger_wire_encode_answer(struct buffer *out, uint64_t id, struct ledger_request *request)
{
    struct wire wire = wire_writing(out);
    struct ledger_wire_head head = {.id = id, .status = request->outcome.any.status};
    pass_answer_head(&wire, &head);
    if (head.status == LEDGER_OK)
        ledger_wire_pass_outcome(&wire, request->operation, &request->outcome);
}

bool ledger_wire_decode_request_head(struct slice frame, struct ledger_wire_head *head,
                                     struct slice *body)
{
    struct wire wire = wire_reading(frame, NULL, NULL);
    *head = (struct ledger_wire_head){0};
    pass_request_head(&wire, head);
    *body = wire.in;
    return !wire.failed;
}

bool ledger_wire_decode_answer_head(struct slice frame, struct ledger_wire_head *head,
                                    struct slice *body)
{
    struct wire wire = wire_reading(frame, NULL, NULL);
    *head = (struct ledger_wire_head){0};
    pass_answer_head(&wire, head);
    *body = wire.in;
    return !wire.failed;
}

/* ---- bodies ---- */

/* Each pair has two different users. */
static bool are_input_pairs(const struct ledger_request_input *input)
{
    for (size_t i = 0; i + 1 < input->id_count; i += 2)
        if (slice_equal(input->ids[i], input->ids[i + 1]))
            return false;
    return input->id_count % 2 == 0 && input->id_count <= (size_t)2 * LEDGER_RELATIONS_MAX;
}

bool ledger_wire_decode_input(struct ledger_request *request, struct slice body)
{
    unsigned needed = needs[request->operation];
    struct wire wire = wire_reading(ledger_request_copy(request, body), ledger_wire_alloc, request);
    struct ledger_request_input *input = &request->input;
    *input = (struct ledger_request_input){0};
    pass_request_input(&wire, input);
    unsigned present = (input->user.len ? USER : 0) | (input->other.len ? OTHER : 0) |
                       (input->chat.len ? CHAT : 0) | (input->id.len ? ID : 0) |
                       (input->client_message_id.len ? CLIENT_ID : 0) |
                       (input->device.len ? DEVICE : 0) | (input->text.len ? TEXT : 0) |
                       (input->call ? CALL : 0) | (input->limit ? PAGE : 0);
    return wire_end(&wire) && !request->exhausted && (present & needed) == needed &&
           (request->operation != LEDGER_RELATIONS_CHANGE || are_input_pairs(input));
}

/* Checks what callers rely on beyond the bounds of each part: a profile for each target, no more messages
 * than requested, a chat with its members. */
static bool outcome_fits_request(const struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    const union ledger_request_outcome *outcome = &request->outcome;
    switch (request->operation) {
    case LEDGER_PROFILES:
        return outcome->profiles.count == input->id_count;
    case LEDGER_APPEARANCES:
        return outcome->appearances.count == input->id_count;
    case LEDGER_RELATIONS_CHANGE:
        return 2 * outcome->relations.count == input->id_count;
    case LEDGER_MESSAGES_AFTER:
    case LEDGER_MESSAGES_BEFORE:
    case LEDGER_OUTBOX_LIST:
        return outcome->messages.count <= input->limit;
    case LEDGER_REVOCATIONS_LIST:
        return outcome->revocations.count <= input->limit;
    case LEDGER_EVENTS_LIST:
    case LEDGER_DEAD_EVENTS_LIST:
        return outcome->events.count <= input->limit;
    case LEDGER_CHAT_CREATE:
    case LEDGER_CHAT_OPEN_DIRECT:
    case LEDGER_CHAT_GET:
    case LEDGER_CHAT_CHANGE:
        return outcome->chat.chat.members || outcome->chat.chat.member_count == 0;
    default:
        return true;
    }
}

bool ledger_wire_decode_outcome(struct ledger_request *request, enum ledger_status status,
                                struct slice body)
{
    ledger_request_fail(request, status);
    if (status != LEDGER_OK)
        return body.len == 0;
    struct wire wire = wire_reading(ledger_request_copy(request, body), ledger_wire_alloc, request);
    ledger_wire_pass_outcome(&wire, request->operation, &request->outcome);
    return wire_end(&wire) && !request->exhausted && outcome_fits_request(request);
}

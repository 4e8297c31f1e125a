/* Requests and outcomes on the wire: what was encoded is decoded, and everything else is refused. */
#include "ledger/remote/ledger_wire.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ID = 77, WALL_MS = 1234567890 };

static const struct slice TWO_IDS[] = {SLICE("a"), SLICE("bob:{x}\r\n")};

static struct clock clock_now = {.now_ms = 1000, .wall_ms = WALL_MS};
static struct ledger_client client = {.clock = &clock_now};

static struct ledger_request *make_request(enum ledger_operation operation)
{
    return ledger_request_make(&client, operation, NULL);
}

static void assert_slice(struct slice got, struct slice expected)
{
    assert_int_equal(got.len, expected.len);
    assert_true(slice_equal(got, expected));
}

/* ---- requests ---- */

static const struct ledger_event_queue EVENT_QUEUES[] = {
    {SLICE("q1"), LEDGER_EVENT_TYPES_ALL, 1000}, {SLICE("q2"), 1, 0}};

static void fill_input(struct ledger_request_input *input)
{
    static const struct ledger_last_seen seen[] = {{SLICE("u"), INT64_MIN, UINT64_MAX},
                                                   {SLICE("v"), INT64_MAX, 0}};
    static const struct ledger_position positions[] = {{SLICE("c"), INT64_MAX, INT64_MAX},
                                                       {SLICE("d"), 1, 2}};
    static const struct ledger_call call = {.id = SLICE("call"),
                                            .caller = SLICE("x"),
                                            .callee = SLICE("y"),
                                            .reason = SLICE("hangup"),
                                            .started_at_ms = 1,
                                            .answered_at_ms = -2,
                                            .ended_at_ms = 3,
                                            .kept_max = UINT32_MAX};
    *input = (struct ledger_request_input){
        .user = SLICE("user"),
        .other = SLICE("other"),
        .chat = SLICE("chat"),
        .id = SLICE("id"),
        .after = SLICE("after"),
        .client_message_id = SLICE("client"),
        .device = SLICE("device"),
        .text = SLICE("a text\0with a zero"),
        .ids = TWO_IDS,
        .id_count = 2,
        .seen = seen,
        .seen_count = 2,
        .call = &call,
        .positions = positions,
        .position_count = 2,
        .after_activity_ms = LEDGER_ACTIVITY_NOW,
        .relation = LEDGER_BLOCK_MAKE,
        .settings = {LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_EVERYONE,
                     LEDGER_GROUP_ADDS_CONTACTS_ONLY, true},
        .appearance = {SLICE("Alice"), SLICE("https://a/")},
        .sequence = INT64_MAX,
        .limit = LEDGER_PAGE_MAX,
        .set_presence = true,
        .set_group_adds = true,
        .set_avatar_url = true,
        .incoming = true,
        .with_profiles = true,
        .members_can_add = true,
        .apply = true,
        .skips_outbox = true,
        .event_type = LEDGER_EVENT_CALL_MISSED,
        .queues = EVENT_QUEUES,
        .queue_count = 2,
    };
}

static void assert_input(const struct ledger_request_input *got,
                         const struct ledger_request_input *sent)
{
    assert_slice(got->user, sent->user);
    assert_slice(got->other, sent->other);
    assert_slice(got->chat, sent->chat);
    assert_slice(got->id, sent->id);
    assert_slice(got->after, sent->after);
    assert_slice(got->client_message_id, sent->client_message_id);
    assert_slice(got->device, sent->device);
    assert_slice(got->text, sent->text);
    assert_int_equal(got->id_count, 2);
    assert_slice(got->ids[1], sent->ids[1]);
    assert_int_equal(got->seen_count, 2);
    assert_slice(got->seen[1].user, SLICE("v"));
    assert_true(got->seen[0].last_seen_ms == INT64_MIN && got->seen[1].last_seen_ms == INT64_MAX);
    assert_true(got->seen[0].presence_version == UINT64_MAX);
    assert_int_equal(got->position_count, 2);
    assert_slice(got->positions[0].chat, SLICE("c"));
    assert_true(got->positions[0].sequence == INT64_MAX && got->positions[1].sequence == 1);
    assert_true(got->positions[0].sent_at_ms == INT64_MAX && got->positions[1].sent_at_ms == 2);
    assert_slice(got->call->reason, sent->call->reason);
    assert_slice(got->call->callee, sent->call->callee);
    assert_true(got->call->answered_at_ms == -2 && got->call->kept_max == UINT32_MAX);
    assert_int_equal(got->relation, LEDGER_BLOCK_MAKE);
    assert_int_equal(got->settings.presence, LEDGER_VISIBLE_NOBODY);
    assert_int_equal(got->settings.last_seen, LEDGER_VISIBLE_EVERYONE);
    assert_true(got->sequence == INT64_MAX && got->limit == LEDGER_PAGE_MAX);
    assert_true(got->set_presence && !got->set_last_seen && got->incoming);
    assert_true(!got->with_members && got->apply);
    assert_true(got->with_profiles && got->members_can_add);
    assert_true(got->after_activity_ms == LEDGER_ACTIVITY_NOW);
    assert_int_equal(got->settings.group_adds, LEDGER_GROUP_ADDS_CONTACTS_ONLY);
    assert_true(got->settings.hides_reads);
    assert_slice(got->appearance.display_name, SLICE("Alice"));
    assert_slice(got->appearance.avatar_url, SLICE("https://a/"));
    assert_true(got->set_group_adds && !got->set_hides_reads);
    assert_true(!got->set_display_name && got->set_avatar_url);
    assert_int_equal(got->event_type, sent->event_type);
    assert_int_equal(got->queue_count, sent->queue_count);
    for (size_t i = 0; i < sent->queue_count; i++) {
        assert_true(slice_equal(got->queues[i].name, sent->queues[i].name));
        assert_int_equal(got->queues[i].types, sent->queues[i].types);
        assert_int_equal(got->queues[i].count_max, sent->queues[i].count_max);
    }
}

/* Decodes an exact copy of a request. Returns NULL when the frame is refused. */
static struct ledger_request *decode_request(struct slice frame, struct ledger_wire_head *head)
{
    char *copy = exact_copy(frame);
    struct slice body;
    struct ledger_request *request = NULL;
    if (ledger_wire_decode_request_head((struct slice){copy, frame.len}, head, &body)) {
        request = make_request(head->operation);
        if (!ledger_wire_decode_input(request, body)) {
            ledger_request_free(request);
            request = NULL;
        }
    }
    free(copy); /* nothing may point into it */
    return request;
}

/* Calls `check` with a full request of every operation and its frame. */
static void check_all_requests(void (*check)(const struct ledger_request *sent,
                                             struct buffer *frame))
{
    for (int operation = 0; operation < LEDGER_OPERATION_COUNT; operation++) {
        struct buffer frame = BUFFER_INIT;
        struct ledger_request *sent = make_request(operation);
        fill_input(&sent->input);
        ledger_wire_encode_request(&frame, ID, sent);
        check(sent, &frame);
        ledger_request_free(sent);
        buffer_free(&frame);
    }
}

static void assert_arrives(const struct ledger_request *sent, struct buffer *frame)
{
    struct ledger_wire_head head;
    struct ledger_request *got = decode_request(buffer_slice(frame), &head);
    assert_non_null(got);
    assert_int_equal(head.id, ID);
    assert_int_equal(head.operation, sent->operation);
    assert_true(head.wall_ms == WALL_MS);
    assert_input(&got->input, &sent->input);
    ledger_request_free(got);
}

static void test_every_field_of_a_request_is_decoded(void **unused)
{
    (void)unused;
    check_all_requests(assert_arrives);
}

static void expect_refused(struct ledger_request *request)
{
    struct buffer frame = BUFFER_INIT;
    struct ledger_wire_head head;
    ledger_wire_encode_request(&frame, ID, request);
    assert_null(decode_request(buffer_slice(&frame), &head));
    ledger_request_free(request);
    buffer_free(&frame);
}

static void expect_pairs_refused(const struct slice *ids, size_t count)
{
    struct ledger_request *request = make_request(LEDGER_RELATIONS_CHANGE);
    request->input.user = SLICE("application");
    request->input.ids = ids;
    request->input.id_count = count;
    expect_refused(request);
}

static void test_pairs_are_of_two_users(void **unused)
{
    (void)unused;
    static struct slice many[2 * LEDGER_RELATIONS_MAX + 2];
    const struct slice twice[] = {SLICE("a"), SLICE("b"), SLICE("c"), SLICE("c")};
    for (size_t i = 0; i < 2 * LEDGER_RELATIONS_MAX + 2; i++)
        many[i] = TWO_IDS[i % 2];
    expect_pairs_refused(TWO_IDS, 1);
    expect_pairs_refused(twice, 4);
    expect_pairs_refused(many, 2 * LEDGER_RELATIONS_MAX + 2);
}

static void test_request_beyond_a_bound_is_refused(void **unused)
{
    (void)unused;
    static char longest[LEDGER_BODY_BYTES_MAX + 1];
    static struct slice many[LEDGER_PROFILES_MAX + 1];
    struct ledger_request *request = make_request(LEDGER_MESSAGE_APPEND);
    fill_input(&request->input);
    request->input.text = (struct slice){longest, sizeof(longest)};
    expect_refused(request);

    request = make_request(LEDGER_SETTINGS_GET);
    request->input.user = (struct slice){longest, LEDGER_ID_BYTES_MAX + 1};
    expect_refused(request);

    request = make_request(LEDGER_PROFILES);
    for (size_t i = 0; i <= LEDGER_PROFILES_MAX; i++)
        many[i] = SLICE("u");
    request->input.ids = many;
    request->input.id_count = LEDGER_PROFILES_MAX + 1;
    expect_refused(request);

    request = make_request(LEDGER_OUTBOX_LIST);
    request->input.limit = LEDGER_PAGE_MAX + 1;
    expect_refused(request);
}

/* The backend relies on it: it would crash on a call append without a call. */
static void test_request_without_a_needed_part_is_refused(void **unused)
{
    (void)unused;
    for (int operation = 0; operation < LEDGER_OPERATION_COUNT; operation++)
        if (operation != LEDGER_PROFILES && operation != LEDGER_APPEARANCES &&
            operation != LEDGER_LAST_SEEN_PUT && operation != LEDGER_OUTBOX_REMOVE)
            expect_refused(make_request(operation));
    struct ledger_request *request = make_request(LEDGER_CALL_APPEND);
    fill_input(&request->input);
    request->input.call = NULL;
    expect_refused(request);
}

/* ---- outcomes ---- */

static const struct ledger_chat_profile CHAT_PROFILES[] = {
    {SLICE("a"), {SLICE("Anne"), SLICE_NONE}, 7}, {SLICE("b"), {SLICE_NONE, SLICE("http://b")}, 0}};

static const struct ledger_chat CHATS[] = {
    {.id = SLICE("c1"),
     .kind = LEDGER_CHAT_DIRECT,
     .activity_ms = 6,
     .admins = TWO_IDS + 1,
     .admin_count = 1,
     .members_can_add = true,
     .profiles = CHAT_PROFILES,
     .profile_count = 2,
     .creator = SLICE("a"),
     .created_at_ms = 5,
     .members = TWO_IDS,
     .member_count = 2,
     .members_version = 3,
     .latest_sequence = 4,
     .unread = 2},
    {.id = SLICE("c2"), .member_count = 9},
};

static const struct ledger_message MESSAGES[] = {{.chat = SLICE("c1"),
                                                  .id = SLICE("m1"),
                                                  .sender = SLICE("a"),
                                                  .client_message_id = SLICE("k"),
                                                  .body = SLICE("hello"),
                                                  .sequence = 8,
                                                  .sent_at_ms = 9}};

static const struct ledger_contact_request CONTACT_REQUEST = {SLICE("r1"), SLICE("a"), SLICE("b"),
                                                              11};

/* Fill in every field of an outcome: of users, contacts and blocks; of chats and calls; of messages. Each returns
 * false if the operation is not among its subjects. */
static const struct ledger_relation_result RELATION = {LEDGER_LIMIT, true, true};

static bool fill_people_outcome(enum ledger_operation operation,
                                union ledger_request_outcome *outcome)
{
    static const struct ledger_profile profiles[] = {
        {SLICE("p"), {LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_NOBODY}, true, false, true, 7, 8}};
    static const struct ledger_appearance appearances[] = {{SLICE("Anne"), SLICE("http://a")}};
    switch (operation) {
    case LEDGER_SETTINGS_PUT:
        outcome->settings.appearance = appearances[0];
        outcome->settings.settings.presence = LEDGER_VISIBLE_NOBODY;
        outcome->settings.previous.last_seen = LEDGER_VISIBLE_EVERYONE;
        return true;
    case LEDGER_APPEARANCES:
        outcome->appearances = (struct ledger_appearances_outcome){LEDGER_OK, appearances, 1};
        return true;
    case LEDGER_PROFILES:
        outcome->profiles = (struct ledger_profiles_outcome){LEDGER_OK, profiles, 1};
        return true;
    case LEDGER_GRAPH:
        outcome->graph = (struct ledger_graph_outcome){
            .contacts = {TWO_IDS, 2}, .blocked = {TWO_IDS, 1}, .chats = {TWO_IDS + 1, 1}};
        return true;
    case LEDGER_CONTACT_REQUEST_CREATE:
        outcome->contact = (struct ledger_contact_outcome){LEDGER_OK, LEDGER_CONTACT_PENDING,
                                                           CONTACT_REQUEST, true};
        return true;
    case LEDGER_CONTACT_REQUESTS_LIST:
        outcome->contact_requests =
            (struct ledger_contact_requests_outcome){LEDGER_OK, &CONTACT_REQUEST, 1, true};
        return true;
    case LEDGER_BLOCK_PUT:
        outcome->block = (struct ledger_block_outcome){LEDGER_OK, true, true};
        return true;
    case LEDGER_RELATIONS_CHANGE:
        outcome->relations = (struct ledger_relations_outcome){LEDGER_OK, &RELATION, 1};
        return true;
    case LEDGER_BLOCKS_LIST:
        outcome->ids = (struct ledger_ids_outcome){LEDGER_OK, TWO_IDS, 2};
        return true;
    default:
        return false;
    }
}

static bool fill_chat_outcome(enum ledger_operation operation,
                              union ledger_request_outcome *outcome)
{
    static const struct ledger_call calls[] = {
        {.id = SLICE("i"), .caller = SLICE("x"), .callee = SLICE("y"), .reason = SLICE("busy")}};
    switch (operation) {
    case LEDGER_CHAT_CREATE:
    case LEDGER_CHAT_GET:
        outcome->chat = (struct ledger_chat_outcome){LEDGER_OK, true, CHATS[0]};
        return true;
    case LEDGER_CHAT_MEMBER_REMOVE:
        outcome->member = (struct ledger_member_outcome){LEDGER_OK, true, SLICE("heir")};
        return true;
    case LEDGER_CURSOR_PUT:
        outcome->cursor =
            (struct ledger_cursor_outcome){LEDGER_OK, true, true, 17, true, {TWO_IDS, 2}};
        return true;
    case LEDGER_CHATS_LIST:
        outcome->chats = (struct ledger_chats_outcome){LEDGER_OK, CHATS, 2, true};
        return true;
    case LEDGER_CALLS_LIST:
        outcome->calls = (struct ledger_calls_outcome){LEDGER_OK, calls, 1};
        return true;
    default:
        return false;
    }
}

static bool fill_message_outcome(enum ledger_operation operation,
                                 union ledger_request_outcome *outcome)
{
    static const struct ledger_dead_letter letters[] = {{SLICE("c"), SLICE("poison"), 3, 4}};
    static const struct ledger_revocation revocations[] = {{SLICE("u"), 7, 8}};
    static const struct ledger_event events[] = {{SLICE("q"), SLICE("12"), LEDGER_EVENT_CALL_ENDED,
                                                  SLICE("alice"), 13, SLICE("{}"),
                                                  SLICE("given up"), 14, SLICE("hello")}};
    switch (operation) {
    case LEDGER_MESSAGE_APPEND:
        outcome->append =
            (struct ledger_append_outcome){LEDGER_OK, SLICE("m"), 5, 6, 7, true, false, true};
        return true;
    case LEDGER_MESSAGES_AFTER:
        outcome->messages = (struct ledger_messages_outcome){LEDGER_OK, MESSAGES, 1, true, 99};
        return true;
    case LEDGER_DEAD_LETTERS_LIST:
        outcome->dead_letters = (struct ledger_dead_letters_outcome){LEDGER_OK, letters, 1};
        return true;
    case LEDGER_CHAT_REPAIR:
        outcome->repair = (struct ledger_repair_outcome){LEDGER_OK, false, true, 3, 4};
        return true;
    case LEDGER_EVENTS_LIST:
        outcome->events = (struct ledger_events_outcome){LEDGER_OK, events, 1, true};
        return true;
    case LEDGER_EVENT_QUEUE_GET:
        outcome->event_queue =
            (struct ledger_event_queue_outcome){LEDGER_OK, SLICE("gw-1"), 7, UINT64_MAX, 3};
        return true;
    case LEDGER_REVOKE:
        outcome->revoke.revoked_at_s = 12;
        return true;
    case LEDGER_REVOCATIONS_LIST:
        outcome->revocations = (struct ledger_revocations_outcome){LEDGER_OK, revocations, 1, true};
        return true;
    default:
        return false;
    }
}

static void fill_outcome(enum ledger_operation operation, union ledger_request_outcome *outcome)
{
    if (!fill_people_outcome(operation, outcome) && !fill_chat_outcome(operation, outcome) &&
        !fill_message_outcome(operation, outcome))
        outcome->change.changed = true;
}

static const enum ledger_operation KINDS[] = {
    LEDGER_SETTINGS_PUT,
    LEDGER_PROFILES,
    LEDGER_GRAPH,
    LEDGER_BLOCK_PUT,
    LEDGER_BLOCKS_LIST,
    LEDGER_CONTACT_REQUEST_CREATE,
    LEDGER_CHAT_CREATE,
    LEDGER_CHATS_LIST,
    LEDGER_CONTACT_REQUESTS_LIST,
    LEDGER_CALLS_LIST,
    LEDGER_MESSAGE_APPEND,
    LEDGER_MESSAGES_AFTER,
    LEDGER_CHAT_REPAIR,
    LEDGER_DEAD_LETTERS_LIST,
    LEDGER_OUTBOX_REMOVE,
    LEDGER_REVOCATIONS_LIST,
    LEDGER_REVOKE,
    LEDGER_APPEARANCES,
    LEDGER_CHAT_MEMBER_REMOVE,
    LEDGER_CURSOR_PUT,
    LEDGER_EVENTS_LIST,
    LEDGER_EVENT_QUEUE_GET,
};

enum { KIND_COUNT = sizeof(KINDS) / sizeof(KINDS[0]) };

static void encode_answer(enum ledger_operation operation, struct buffer *frame)
{
    struct ledger_request *answered = make_request(operation);
    fill_outcome(operation, &answered->outcome);
    ledger_wire_encode_answer(frame, ID, answered);
    ledger_request_free(answered);
}

/* Decodes an exact copy of an answer into a request with this many ids and this limit. Returns NULL when it is
 * refused. */
static struct ledger_request *decode_answer_to(enum ledger_operation operation, size_t id_count,
                                               uint32_t limit, struct slice frame)
{
    struct ledger_wire_head head;
    struct slice body;
    char *copy = exact_copy(frame);
    struct ledger_request *request = make_request(operation);
    request->input.ids = TWO_IDS;
    request->input.id_count = id_count;
    request->input.limit = limit;
    if (!ledger_wire_decode_answer_head((struct slice){copy, frame.len}, &head, &body) ||
        !ledger_wire_decode_outcome(request, head.status, body)) {
        ledger_request_free(request);
        request = NULL;
    }
    free(copy); /* nothing may point into it */
    return request;
}

/* Does the same for a request with one id and a full page. */
static struct ledger_request *decode_answer(enum ledger_operation operation, struct slice frame)
{
    return decode_answer_to(operation, 1, LEDGER_PAGE_MAX, frame);
}

static struct ledger_request *encode_and_decode_answer(enum ledger_operation operation)
{
    struct buffer frame = BUFFER_INIT;
    encode_answer(operation, &frame);
    struct ledger_request *got = decode_answer(operation, buffer_slice(&frame));
    buffer_free(&frame);
    assert_non_null(got);
    return got;
}

static void assert_no_answer(enum ledger_operation operation, size_t id_count, uint32_t limit)
{
    struct buffer frame = BUFFER_INIT;
    encode_answer(operation, &frame);
    assert_null(decode_answer_to(operation, id_count, limit, buffer_slice(&frame)));
    buffer_free(&frame);
}

/* The chat has a number of members, but not their list. */
static void assert_chat_without_members_is_refused(enum ledger_operation operation)
{
    ledger_request_free(encode_and_decode_answer(operation));
    struct ledger_request *answered = make_request(operation);
    struct buffer frame = BUFFER_INIT;
    answered->outcome.chat = (struct ledger_chat_outcome){LEDGER_OK, false, CHATS[1]};
    ledger_wire_encode_answer(&frame, ID, answered);
    assert_null(decode_answer(operation, buffer_slice(&frame)));
    ledger_request_free(answered);
    buffer_free(&frame);
}

static void test_result_of_each_pair_is_decoded(void **unused)
{
    (void)unused;
    struct buffer frame = BUFFER_INIT;
    encode_answer(LEDGER_RELATIONS_CHANGE, &frame);
    struct ledger_request *got =
        decode_answer_to(LEDGER_RELATIONS_CHANGE, 2, 0, buffer_slice(&frame));
    assert_non_null(got);
    assert_int_equal(got->outcome.relations.count, 1);
    assert_int_equal(got->outcome.relations.results[0].status, LEDGER_LIMIT);
    assert_true(got->outcome.relations.results[0].changed);
    assert_true(got->outcome.relations.results[0].contact_removed);
    ledger_request_free(got);
    buffer_free(&frame);
    assert_no_answer(LEDGER_RELATIONS_CHANGE, 1, 0);
    assert_no_answer(LEDGER_RELATIONS_CHANGE, 4, 0);
}

static void test_events_are_decoded(void **unused)
{
    (void)unused;
    struct ledger_request *got = encode_and_decode_answer(LEDGER_EVENTS_LIST);
    const struct ledger_event *event = &got->outcome.events.events[0];
    assert_int_equal(got->outcome.events.count, 1);
    assert_true(got->outcome.events.has_more);
    assert_true(slice_is(event->queue, "q"));
    assert_true(slice_is(event->position, "12"));
    assert_int_equal(event->type, LEDGER_EVENT_CALL_ENDED);
    assert_true(slice_is(event->subject, "alice"));
    assert_int_equal(event->time_ms, 13);
    assert_true(slice_is(event->data, "{}"));
    assert_true(slice_is(event->reason, "given up"));
    assert_int_equal(event->sequence, 14);
    assert_true(slice_is(event->body, "hello"));
    ledger_request_free(got);
    got = encode_and_decode_answer(LEDGER_EVENT_QUEUE_GET);
    assert_true(slice_is(got->outcome.event_queue.holder, "gw-1"));
    assert_int_equal(got->outcome.event_queue.lease_version, 7);
    assert_true(got->outcome.event_queue.event_count == UINT64_MAX);
    assert_int_equal(got->outcome.event_queue.dropped, 3);
    ledger_request_free(got);
    assert_no_answer(LEDGER_EVENTS_LIST, 1, 0);
}

/* Callers read as many profiles as they requested, and have space for no more messages than the limit. */
static void test_outcome_that_does_not_fit_the_request_is_refused(void **unused)
{
    (void)unused;
    assert_no_answer(LEDGER_PROFILES, 0, LEDGER_PAGE_MAX);
    assert_no_answer(LEDGER_PROFILES, 2, LEDGER_PAGE_MAX);
    assert_no_answer(LEDGER_APPEARANCES, 2, LEDGER_PAGE_MAX);
    assert_no_answer(LEDGER_MESSAGES_AFTER, 1, 0);
    assert_chat_without_members_is_refused(LEDGER_CHAT_GET);
    assert_chat_without_members_is_refused(LEDGER_CHAT_CREATE);
}

static void test_chats_are_decoded_with_and_without_members(void **unused)
{
    (void)unused;
    struct ledger_request *got = encode_and_decode_answer(LEDGER_CHATS_LIST);
    const struct ledger_chats_outcome *chats = &got->outcome.chats;
    assert_int_equal(chats->count, 2);
    assert_true(chats->has_more);
    assert_slice(chats->chats[0].members[1], TWO_IDS[1]);
    assert_int_equal(chats->chats[0].unread, 2);
    assert_int_equal(chats->chats[0].latest_sequence, 4);
    assert_int_equal(chats->chats[0].kind, LEDGER_CHAT_DIRECT);
    assert_slice(chats->chats[0].admins[0], TWO_IDS[1]);
    assert_true(chats->chats[0].members_can_add && chats->chats[0].activity_ms == 6);
    assert_slice(chats->chats[0].profiles[0].appearance.display_name, SLICE("Anne"));
    assert_slice(chats->chats[0].profiles[1].appearance.avatar_url, SLICE("http://b"));
    assert_int_equal(chats->chats[0].profiles[0].read_sequence, 7);
    assert_null(chats->chats[1].members);
    assert_int_equal(chats->chats[1].member_count, 9);
    ledger_request_free(got);
}

static void test_messages_are_decoded(void **unused)
{
    (void)unused;
    struct ledger_request *got = encode_and_decode_answer(LEDGER_MESSAGES_AFTER);
    const struct ledger_messages_outcome *page = &got->outcome.messages;
    assert_int_equal(page->count, 1);
    assert_slice(page->messages[0].body, SLICE("hello"));
    assert_slice(page->messages[0].client_message_id, SLICE("k"));
    assert_int_equal(page->messages[0].sequence, 8);
    assert_int_equal(page->messages[0].sent_at_ms, 9);
    assert_int_equal(page->latest_sequence, 99);
    ledger_request_free(got);
    got = encode_and_decode_answer(LEDGER_CURSOR_PUT);
    assert_true(got->outcome.cursor.read_more && got->outcome.cursor.is_shown);
    assert_int_equal(got->outcome.cursor.read_sequence, 17);
    assert_slice(got->outcome.cursor.hidden_from.ids[1], TWO_IDS[1]);
    ledger_request_free(got);
    got = encode_and_decode_answer(LEDGER_CHAT_MEMBER_REMOVE);
    assert_slice(got->outcome.member.promoted, SLICE("heir"));
    ledger_request_free(got);
    got = encode_and_decode_answer(LEDGER_MESSAGE_APPEND);
    assert_true(got->outcome.append.duplicate && got->outcome.append.published);
    assert_false(got->outcome.append.body_differs);
    assert_int_equal(got->outcome.append.sequence, 5);
    assert_int_equal(got->outcome.append.members_version, 7);
    ledger_request_free(got);
}

static void test_profiles_and_contacts_are_decoded(void **unused)
{
    (void)unused;
    struct ledger_request *got = encode_and_decode_answer(LEDGER_PROFILES);
    const struct ledger_profile *profile = got->outcome.profiles.profiles;
    assert_slice(profile->user, SLICE("p"));
    assert_true(profile->are_contacts && !profile->blocked_by_viewer && profile->blocked_by_target);
    assert_int_equal(profile->settings.last_seen, LEDGER_VISIBLE_NOBODY);
    assert_true(profile->last_seen_ms == 7 && profile->presence_version == 8);
    ledger_request_free(got);
    got = encode_and_decode_answer(LEDGER_GRAPH);
    assert_int_equal(got->outcome.graph.contacts.count, 2);
    assert_slice(got->outcome.graph.chats.ids[0], TWO_IDS[1]);
    ledger_request_free(got);
    got = encode_and_decode_answer(LEDGER_CONTACT_REQUEST_CREATE);
    assert_int_equal(got->outcome.contact.result, LEDGER_CONTACT_PENDING);
    assert_slice(got->outcome.contact.request.to, SLICE("b"));
    assert_true(got->outcome.contact.tell_other_side);
    ledger_request_free(got);
}

static void test_decoded_outcome_encodes_to_the_same_bytes(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct buffer first = BUFFER_INIT, second = BUFFER_INIT;
        encode_answer(KINDS[i], &first);
        struct ledger_request *got = decode_answer(KINDS[i], buffer_slice(&first));
        assert_non_null(got);
        ledger_wire_encode_answer(&second, ID, got);
        assert_true(slice_equal(buffer_slice(&first), buffer_slice(&second)));
        ledger_request_free(got);
        buffer_free(&first);
        buffer_free(&second);
    }
}

static void test_failure_carries_only_its_status(void **unused)
{
    (void)unused;
    for (int status = LEDGER_OK + 1; status < LEDGER_STATUS_COUNT; status++) {
        struct buffer frame = BUFFER_INIT;
        struct ledger_request *answered = make_request(LEDGER_CHATS_LIST);
        fill_outcome(LEDGER_CHATS_LIST, &answered->outcome);
        answered->outcome.any.status = status;
        ledger_wire_encode_answer(&frame, ID, answered);
        assert_int_equal(frame.len, 3);
        struct ledger_request *got = decode_answer(LEDGER_CHATS_LIST, buffer_slice(&frame));
        assert_int_equal(got->outcome.any.status, status);
        assert_null(got->outcome.chats.chats);
        ledger_request_free(answered);
        ledger_request_free(got);
        buffer_free(&frame);
    }
}

/* ---- damage ---- */

static void test_truncated_frame_is_refused(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct buffer frame = BUFFER_INIT;
        encode_answer(KINDS[i], &frame);
        buffer_append_byte(&frame, 0);
        for (size_t len = 0; len <= frame.len; len++)
            if (len != frame.len - 1)
                assert_null(decode_answer(KINDS[i], slice_first(buffer_slice(&frame), len)));
        buffer_free(&frame);
    }
}

static void flip_each_bit(const struct ledger_request *sent, struct buffer *frame)
{
    (void)sent;
    for (size_t bit = 0; bit < frame->len * 8; bit++) {
        struct ledger_wire_head head;
        frame->data[bit / 8] ^= (char)(1 << bit % 8);
        struct ledger_request *got = decode_request(buffer_slice(frame), &head);
        if (got)
            ledger_request_free(got);
        frame->data[bit / 8] ^= (char)(1 << bit % 8);
    }
}

static void test_flipped_bit_does_no_harm(void **unused)
{
    (void)unused;
    check_all_requests(flip_each_bit);
}

static void test_another_version_is_refused(void **unused)
{
    (void)unused;
    struct buffer frame = BUFFER_INIT;
    encode_answer(LEDGER_OUTBOX_REMOVE, &frame);
    frame.data[0]++;
    assert_null(decode_answer(LEDGER_OUTBOX_REMOVE, buffer_slice(&frame)));
    buffer_free(&frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_of_a_request_is_decoded),
        cmocka_unit_test(test_request_beyond_a_bound_is_refused),
        cmocka_unit_test(test_pairs_are_of_two_users),
        cmocka_unit_test(test_result_of_each_pair_is_decoded),
        cmocka_unit_test(test_events_are_decoded),
        cmocka_unit_test(test_request_without_a_needed_part_is_refused),
        cmocka_unit_test(test_outcome_that_does_not_fit_the_request_is_refused),
        cmocka_unit_test(test_chats_are_decoded_with_and_without_members),
        cmocka_unit_test(test_messages_are_decoded),
        cmocka_unit_test(test_profiles_and_contacts_are_decoded),
        cmocka_unit_test(test_decoded_outcome_encodes_to_the_same_bytes),
        cmocka_unit_test(test_failure_carries_only_its_status),
        cmocka_unit_test(test_truncated_frame_is_refused),
        cmocka_unit_test(test_flipped_bit_does_no_harm),
        cmocka_unit_test(test_another_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A message becomes one event per gateway, and an event reaches the right sockets. */
#include "routing/delivery_testing.h"
#include "support/exact_copy.h"
#include "text/json.h"

#include <xxhash.h>

#define CONN_1 "00000000000000000000000001"
#define CONN_9 "00000000000000000000000009"
#define MESSAGE_ID "01ARYZ6S41TSV4RRFFQ69G5FAV"
#define MESSAGE_EVENT_ID "4c61efb99302bd5b" /* its last 64 bits, which are random */

static const struct slice everybody[] = {{"alice", 5}, {"bob", 3}, {"nobody", 6}};
static const struct message ringing = {.type = MESSAGE_CALL_RINGING, .call = {.call_id = {"k", 1}}};

static void receive(struct delivery_fixture *fixture, const char *payload)
{
    char *copy = exact_copy(slice_of(payload));
    fixture_receive(fixture, (struct slice){copy, strlen(payload)});
    free(copy);
}

static void expect_got(const struct delivery_fixture *fixture, unsigned phone, unsigned laptop,
                       unsigned bob)
{
    assert_int_equal(fixture->alice_phone.got, phone);
    assert_int_equal(fixture->alice_laptop.got, laptop);
    assert_int_equal(fixture->bob_phone.got, bob);
}

/* Removes the event's id, which is unique, before the rest is compared. */
static void expect_published(struct delivery_fixture *fixture, size_t index, const char *expected)
{
    char *id = strstr(fixture->payloads[index], ",\"id\":\"");
    assert_non_null(id);
    char *users = id + strlen(",\"id\":\"0123456789abcdef\"");
    assert_memory_equal(users, ",\"users\":[", strlen(",\"users\":["));
    memmove(id, users, strlen(users) + 1);
    assert_string_equal(fixture->payloads[index], expected);
}

/* ---- sending ---- */

static void each_gateway_gets_one_payload_with_all_its_users(void **state)
{
    struct delivery_fixture *fixture = *state;
    delivery_send_then(&fixture->delivery, everybody, 3, &ringing, NULL, fixture_done, fixture);
    assert_int_equal(fixture->published_count, 2);
    assert_string_equal(fixture->topics[0], "server:gw-1:deliver");
    expect_published(fixture, 0,
                     "{\"kind\":\"event\",\"type\":\"call_ringing\",\"fields\":{\"call_id\":\"k\"},"
                     "\"users\":[\"alice\",\"bob\"]}");
    assert_string_equal(fixture->topics[1], "server:gw-2:deliver");
    expect_published(fixture, 1,
                     "{\"kind\":\"event\",\"type\":\"call_ringing\",\"fields\":{\"call_id\":\"k\"},"
                     "\"users\":[\"alice\"]}");
    assert_int_equal(fixture->result, DELIVERY_SENT);
    assert_int_equal(fixture->metrics.values[METRIC_ROUTING_LOOKUPS], 1);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_SENT], 3);
}

static void user_without_a_route_is_skipped(void **state)
{
    struct delivery_fixture *fixture = *state;
    delivery_send_then(&fixture->delivery, &everybody[2], 1, &ringing, NULL, fixture_done, fixture);
    assert_int_equal(fixture->published_count, 0);
    assert_int_equal(fixture->result, DELIVERY_SENT);
}

static void unavailable_store_makes_the_sender_broadcast(void **state)
{
    struct delivery_fixture *fixture = *state;
    fixture->store_is_down = true;
    delivery_send_then(&fixture->delivery, everybody, 3, &ringing, NULL, fixture_done, fixture);
    assert_int_equal(fixture->published_count, 1);
    assert_string_equal(fixture->topics[0], BUS_TOPIC_ALL.data);
    expect_published(fixture, 0,
                     "{\"kind\":\"event\",\"type\":\"call_ringing\",\"fields\":{\"call_id\":\"k\"},"
                     "\"users\":[\"alice\",\"bob\",\"nobody\"]}");
    assert_int_equal(fixture->result, DELIVERY_SENT);
    assert_int_equal(fixture->metrics.values[METRIC_ROUTING_LOOKUP_ERRORS], 1);
    assert_int_equal(fixture->metrics.values[METRIC_BROADCASTS], 1);
    assert_int_equal(fixture->metrics.values[METRIC_BROADCAST_MODE], 1);
    receive(fixture, fixture->payloads[0]);
    expect_got(fixture, 1, 1, 1);
    fixture->store_is_down = false;
    delivery_send(&fixture->delivery, everybody, 3, &ringing, NULL);
    assert_int_equal(fixture->metrics.values[METRIC_BROADCAST_MODE], 0);
}

/* A fan-out worker without peer links: its bus reaches nobody without Redis. */
static void sender_that_cannot_broadcast_skips_the_event(void **state)
{
    struct delivery_fixture *fixture = *state;
    fixture->delivery.broadcasts = false;
    fixture->store_is_down = true;
    delivery_send_then(&fixture->delivery, everybody, 3, &ringing, NULL, fixture_done, fixture);
    assert_int_equal(fixture->result, DELIVERY_SKIPPED);
    assert_int_equal(fixture->published_count, 0);
    assert_int_equal(fixture->metrics.values[METRIC_BROADCASTS], 0);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_SENT], 0);
}

/* The store gives up after the caller has freed its list of users. */
static void broadcast_names_all_users_after_a_late_failure(void **state)
{
    struct delivery_fixture *fixture = *state;
    char names[] = "alicebob";
    struct slice users[] = {{names, 5}, {names + 5, 3}};
    fixture->store_is_late = fixture->store_is_down = true;
    delivery_send_then(&fixture->delivery, users, 2, &ringing, NULL, fixture_done, fixture);
    memset(names, 'x', sizeof(names));
    memset(users, 0, sizeof(users));
    assert_int_equal(fixture->result, -1);
    fixture_answer(fixture);
    assert_int_equal(fixture->result, DELIVERY_SENT);
    receive(fixture, fixture->payloads[0]);
    expect_got(fixture, 1, 1, 1);
}

static void equal_events_get_different_ids(void **state)
{
    struct delivery_fixture *fixture = *state;
    delivery_send_device(&fixture->delivery, SLICE("bob"), SLICE("phone"), &ringing);
    delivery_send_device(&fixture->delivery, SLICE("bob"), SLICE("phone"), &ringing);
    assert_int_equal(fixture->published_count, 2);
    assert_string_not_equal(fixture->payloads[0], fixture->payloads[1]);
}

/* A message comes to its gateway, then as a broadcast, then to its gateway again. */
static void message_by_route_and_by_broadcast_is_delivered_once(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct message message = {.type = MESSAGE_MESSAGE,
                              .chat_message = {.chat_id = SLICE("team"),
                                               .message_id = SLICE(MESSAGE_ID),
                                               .sequence = 47,
                                               .sender_id = SLICE("carol"),
                                               .body = SLICE("x"),
                                               .sent_at_ms = 0}};
    delivery_send(&fixture->delivery, everybody, 3, &message, NULL);
    fixture->store_is_down = true;
    delivery_send(&fixture->delivery, everybody, 3, &message, NULL);
    assert_int_equal(fixture->published_count, 3);
    receive(fixture, fixture->payloads[0]);
    receive(fixture, fixture->payloads[2]);
    receive(fixture, fixture->payloads[0]);
    expect_got(fixture, 1, 1, 1);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_DUPLICATES], 2);
}

static void chat_message_carries_its_sequence_and_the_excepted_connection(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct message message = {.type = MESSAGE_MESSAGE,
                              .chat_message = {.chat_id = SLICE("team"),
                                               .message_id = SLICE(MESSAGE_ID),
                                               .sequence = 47,
                                               .sender_id = SLICE("bob"),
                                               .body = SLICE("x"),
                                               .sent_at_ms = 0}};
    delivery_send(&fixture->delivery, &everybody[1], 1, &message, &fixture->alice_phone.conn_id);
    assert_int_equal(fixture->published_count, 1);
    assert_string_equal(
        fixture->payloads[0],
        "{\"kind\":\"event\",\"type\":\"message\",\"fields\":{\"chat_id\":\"team\",\"message_id\":"
        "\"" MESSAGE_ID "\",\"sequence\":47,\"sender_id\":\"bob\",\"body\":\"x\",\"sent_at\":"
        "\"1970-01-01T00:00:00.000Z\"},\"except\":\"" CONN_1
        "\",\"chat\":\"team\",\"sequence\":47,\"id\":\"" MESSAGE_EVENT_ID
        "\",\"users\":[\"bob\"]}");
}

/* ---- remembered routes ---- */

static const struct message chat_message = {.type = MESSAGE_MESSAGE,
                                            .chat_message = {.chat_id = {"c", 1},
                                                             .message_id = {MESSAGE_ID, 26},
                                                             .sequence = 47,
                                                             .sender_id = {"bob", 3},
                                                             .body = {"x", 1}}};

/* This gateway receives everything that was published. */
static void receive_published(struct delivery_fixture *fixture)
{
    for (size_t i = 0; i < fixture->published_count; i++)
        receive(fixture, fixture->payloads[i]);
}

static void event_goes_to_remembered_routes_before_they_are_confirmed(void **state)
{
    struct delivery_fixture *fixture = *state;
    fixture->store.operations = &FIXTURE_STORE_EARLY;
    delivery_send_then(&fixture->delivery, everybody, 2, &ringing, NULL, fixture_done, fixture);
    assert_int_equal(fixture->published_count, 1);
    assert_int_equal(fixture->result, -1);
    fixture_confirm(fixture, false);
    assert_int_equal(fixture->published_count, 1);
    assert_int_equal(fixture->result, DELIVERY_SENT);
}

static void route_that_was_not_remembered_is_served_after_all(void **state)
{
    struct delivery_fixture *fixture = *state;
    const struct message *const messages[] = {&ringing, &chat_message};
    fixture->store.operations = &FIXTURE_STORE_EARLY;
    for (unsigned i = 0; i < 2; i++) {
        fixture->result = -1;
        fixture->published_count = 0;
        delivery_send_then(&fixture->delivery, everybody, 2, messages[i], NULL, fixture_done,
                           fixture);
        fixture_confirm(fixture, true);
        assert_int_equal(fixture->published_count, 2);
        assert_int_equal(fixture->result, DELIVERY_SENT);
        receive_published(fixture);
        expect_got(fixture, i + 1, i + 1, i + 1); /* the second payload is for the same gateway */
    }
}

static void store_that_fails_after_it_remembered_makes_no_second_copy(void **state)
{
    struct delivery_fixture *fixture = *state;
    const struct message *const messages[] = {&ringing, &chat_message};
    fixture->store.operations = &FIXTURE_STORE_EARLY;
    for (unsigned i = 0; i < 2; i++) {
        fixture->result = -1;
        fixture->published_count = 0;
        delivery_send_then(&fixture->delivery, everybody, 2, messages[i], NULL, fixture_done,
                           fixture);
        fixture_answer(fixture);
        assert_int_equal(fixture->published_count, 2);
        assert_string_equal(fixture->topics[1], BUS_TOPIC_ALL.data);
        receive_published(fixture);
        expect_got(fixture, i + 1, i + 1, i + 1);
    }
}

/* ---- sending, continued ---- */

static void event_for_one_device_names_the_device(void **state)
{
    struct delivery_fixture *fixture = *state;
    delivery_send_device(&fixture->delivery, SLICE("bob"), SLICE("phone"), &ringing);
    assert_int_equal(fixture->published_count, 1);
    expect_published(fixture, 0,
                     "{\"kind\":\"event\",\"type\":\"call_ringing\",\"fields\":{\"call_id\":\"k\"},"
                     "\"device\":\"phone\",\"users\":[\"bob\"]}");
}

static void close_is_published_to_one_gateway(void **state)
{
    struct delivery_fixture *fixture = *state;
    delivery_close(&fixture->delivery, SLICE("gw-7"), SLICE("alice"), &fixture->alice_phone.conn_id,
                   CLOSING_TOO_MANY_CONNECTIONS);
    assert_string_equal(fixture->topics[0], "server:gw-7:deliver");
    assert_string_equal(fixture->payloads[0],
                        "{\"kind\":\"close\",\"conn_id\":\"" CONN_1 "\","
                        "\"reason\":\"too_many_connections\",\"users\":[\"alice\"]}");
}

/* ---- receiving ---- */

static void event_reaches_all_devices_of_all_users(void **state)
{
    struct delivery_fixture *fixture = *state;
    receive(fixture,
            "{\"kind\":\"event\",\"users\":[\"bob\",\"nobody\",\"alice\"],\"type\":\"delivery\","
            "\"fields\":{\"data\":[1, {\"a\":\"}\"}]}}");
    expect_got(fixture, 1, 1, 1);
    assert_string_equal(fixture->bob_phone.last,
                        "{\"type\":\"delivery\",\"data\":[1, {\"a\":\"}\"}]}");
    assert_string_equal(fixture->alice_laptop.last, fixture->bob_phone.last);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_DELIVERED], 3);
}

static void event_skips_the_excepted_connection(void **state)
{
    struct delivery_fixture *fixture = *state;
    receive(
        fixture,
        "{\"kind\":\"event\",\"users\":[\"alice\",\"bob\"],\"type\":\"t\",\"fields\":{},\"except\":\"" CONN_1
        "\"}");
    expect_got(fixture, 0, 1, 1);
    receive(fixture, "{\"kind\":\"event\",\"except\":\"" CONN_9
                     "\",\"users\":[\"alice\"],\"type\":\"t\",\"fields\":{}}");
    expect_got(fixture, 1, 2, 1);
}

static void event_for_one_device_reaches_only_that_device(void **state)
{
    struct delivery_fixture *fixture = *state;
    receive(
        fixture,
        "{\"kind\":\"event\",\"users\":[\"alice\"],\"type\":\"t\",\"fields\":{},\"device\":\"laptop\"}");
    expect_got(fixture, 0, 1, 0);
    receive(
        fixture,
        "{\"kind\":\"event\",\"users\":[\"nobody\"],\"type\":\"t\",\"fields\":{},\"device\":\"laptop\"}");
    expect_got(fixture, 0, 1, 0);
}

static void close_closes_the_connection_and_delivers_nothing(void **state)
{
    struct delivery_fixture *fixture = *state;
    receive(fixture, "{\"kind\":\"close\",\"conn_id\":\"" CONN_1 "\",\"users\":[\"alice\"]}");
    assert_int_equal(fixture->closes, 1);
    assert_true(ulid_equal(&fixture->closed, &fixture->alice_phone.conn_id));
    assert_int_equal(fixture->close_reason, CLOSING_ADMIN);
    receive(fixture, "{\"kind\":\"close\",\"conn_id\":\"" CONN_1 "\","
                     "\"reason\":\"too_many_connections\",\"users\":[\"alice\"]}");
    assert_int_equal(fixture->close_reason, CLOSING_TOO_MANY_CONNECTIONS);
    expect_got(fixture, 0, 0, 0);
}

static void receive_chat_message(struct delivery_fixture *fixture, const char *chat, int sequence,
                                 unsigned long long id)
{
    char payload[256];
    snprintf(
        payload, sizeof(payload),
        "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"message\",\"fields\":{},\"chat\":\"%s\","
        "\"sequence\":%d,\"id\":\"%016llx\"}",
        chat, sequence, id);
    receive(fixture, payload);
}

static void repeated_chat_message_is_dropped(void **state)
{
    struct delivery_fixture *fixture = *state;
    receive_chat_message(fixture, "team", 1, 7001);
    receive_chat_message(fixture, "team", 1, 7001);
    assert_int_equal(fixture->bob_phone.got, 1);
    receive_chat_message(fixture, "team", 2, 7002);
    receive_chat_message(fixture, "other", 1, 7003);
    receive_chat_message(fixture, "team", 1, 7001);
    assert_int_equal(fixture->bob_phone.got, 3);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_DUPLICATES], 2);
    enum { STORM = 2000 }; /* of other messages in between */
    for (int sequence = 3; sequence < 3 + STORM; sequence++)
        receive_chat_message(fixture, "team", sequence, 7001 + (unsigned)sequence);
    receive_chat_message(fixture, "team", 1, 7001);
    assert_int_equal(fixture->bob_phone.got, 3 + STORM);
}

static void chat_message_without_an_id_is_never_a_duplicate(void **state)
{
    struct delivery_fixture *fixture = *state;
    receive_chat_message(fixture, "team", 1, 0);
    receive_chat_message(fixture, "other", 1, 0);
    assert_int_equal(fixture->bob_phone.got, 2);
}

/* Sends a message to bob, and lets his gateway receive it. */
static void send_and_receive(struct delivery_fixture *fixture, const char *chat, int64_t sequence)
{
    char message_id[ULID_TEXT_LEN];
    struct ulid ulid = ulid_make(1, &fixture->random);
    ulid_write(message_id, &ulid);
    struct message message = {.type = MESSAGE_MESSAGE,
                              .chat_message = {.chat_id = slice_of(chat),
                                               .message_id = {message_id, sizeof(message_id)},
                                               .sequence = sequence,
                                               .sender_id = SLICE("carol"),
                                               .body = SLICE("x")}};
    fixture->published_count = 0;
    delivery_send(&fixture->delivery, &everybody[1], 1, &message, NULL);
    receive(fixture, fixture->payloads[0]);
}

/* Messages whose chats are numbered differ in few bits; an unkeyed hash of chat and sequence confuses most. */
static void messages_of_numbered_chats_are_all_delivered(void **state)
{
    enum { CHATS = 1000, MESSAGES = 200 };
    struct delivery_fixture *fixture = *state;
    for (int i = 0; i < CHATS * MESSAGES; i++) {
        char chat[16];
        snprintf(chat, sizeof(chat), i % 2 ? "%d" : "g%d", 1 + i % CHATS);
        send_and_receive(fixture, chat, 1 + i / CHATS);
    }
    assert_int_equal(fixture->bob_phone.got, CHATS * MESSAGES);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_DUPLICATES], 0);
}

/* Whoever knows how XXH3 hashes eight bytes finds, for a message of another chat, a chat of their own with the
 * same hash at another sequence. */
static void constructed_collision_of_hashes_suppresses_no_message(void **state)
{
    struct delivery_fixture *fixture = *state;
    const char victim[] = "teamteam", attacker[] = "teanueam";
    const int64_t sequence = 1, attacker_sequence = 2;
    assert_true(XXH3_64bits_withSeed(victim, 8, sequence) ==
                XXH3_64bits_withSeed(attacker, 8, attacker_sequence));
    send_and_receive(fixture, attacker, attacker_sequence);
    send_and_receive(fixture, victim, sequence);
    assert_int_equal(fixture->bob_phone.got, 2);
}

static void other_events_may_be_repeated(void **state)
{
    struct delivery_fixture *fixture = *state;
    for (int i = 0; i < 3; i++)
        receive(
            fixture,
            "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"delivery\",\"fields\":{\"data\":1}}");
    assert_int_equal(fixture->bob_phone.got, 3);
}

static void invalid_payloads_are_dropped(void **state)
{
    struct delivery_fixture *fixture = *state;
    static const char *const wrong[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"kind\":\"event\"}",
        "{\"kind\":\"close\"}",
        "{\"kind\":\"close\",\"conn_id\":\"" CONN_1 "\"}",
        "{\"kind\":\"close\",\"conn_id\":\"" CONN_1 "\",\"reason\":\"why\",\"users\":[\"alice\"]}",
        "{\"kind\":\"close\",\"conn_id\":\"" CONN_1 "\",\"users\":[\"alice\"]} x",
        "{\"kind\":7,\"users\":[\"bob\"],\"type\":\"t\",\"fields\":{}}",
        "{\"kind\":\"other\",\"users\":[\"bob\"],\"type\":\"t\",\"fields\":{}}",
        "{\"users\":[\"bob\"],\"type\":\"t\",\"fields\":{},\"kind\":\"event\"}",
        "{\"users\":[\"bob\"],\"type\":\"t\",\"fields\":{}}",
        "{\"kind\":\"event\",\"users\":[\"bob\"]}",
        "{\"kind\":\"event\",\"type\":\"t\",\"fields\":{}}",
        "{\"kind\":\"close\",\"users\":[\"bob\"],\"conn_id\":\"no connection id\"}",
        "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"t\"}",
        "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"t\",\"fields\":[]}",
        "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"t\",\"fields\":1}",
        "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":7,\"fields\":{}}",
        "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"t\",\"fields\":{}} x",
        "{\"kind\":\"event\",\"users\":\"bob\",\"type\":\"t\",\"fields\":{}}",
        "{\"kind\":\"event\",\"users\":[7],\"type\":\"t\",\"fields\":{}}",
        "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"t\",\"fields\":{},\"sequence\":1.5}",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        receive(fixture, wrong[i]);
    expect_got(fixture, 0, 0, 0);
    assert_int_equal(fixture->closes, 0);
}

/* Takes the user's name from a payload of the kind "presence". */
static bool take_presence(void *arg, struct json *json)
{
    struct slice key, text;
    while (json_member(json, &key) && json_string(json, &text))
        fixture_copy(arg, 16, text);
    return json_done(json);
}

static void presence_payload_goes_to_the_presence_plane(void **state)
{
    struct delivery_fixture *fixture = *state;
    char user_id[16] = "";
    receive(fixture, "{\"kind\":\"presence\",\"users\":[\"bob\"]}");
    fixture->receiver.on_presence = take_presence;
    fixture->receiver.presence_arg = user_id;
    receive(fixture, "{\"kind\":\"presence\",\"who\":\"al\\u0069ce\"}");
    assert_string_equal(user_id, "alice");
    receive(fixture, "{\"kind\":\"event\",\"users\":[],\"type\":\"who\",\"fields\":{}}");
    assert_string_equal(user_id, "alice");
    expect_got(fixture, 0, 0, 0);
}

/* ---- both ---- */

static void sent_event_arrives_unchanged(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct message message = {.type = MESSAGE_DELIVERY,
                              .data = SLICE("{\"quote\":\"\\\"\\u0000\"}")};
    delivery_send(&fixture->delivery, everybody, 3, &message, &fixture->bob_phone.conn_id);
    receive(fixture, fixture->payloads[0]);
    expect_got(fixture, 1, 1, 0);
    assert_string_equal(fixture->alice_phone.last,
                        "{\"type\":\"delivery\",\"data\":{\"quote\":\"\\\"\\u0000\"}}");
}

/* ---- counted ---- */

struct counted {
    int result;
    size_t users;
    const char *local; /* the user whom this gateway holds, with two devices; NULL: nobody */
};

static void note_counted(void *arg, enum delivery_result result, size_t users)
{
    struct counted *counted = arg;
    assert_int_equal(counted->result, -1); /* it runs once */
    counted->result = (int)result;
    counted->users = users;
}

static size_t count_local_devices(void *arg, struct slice user_id)
{
    struct counted *counted = arg;
    return counted->local && slice_is(user_id, counted->local) ? 2 : 0;
}

/* Olga was last known as offline, nina as online. */
static enum delivery_known find_known(void *arg, struct slice user_id)
{
    (void)arg;
    return slice_is(user_id, "olga")   ? DELIVERY_KNOWN_OFFLINE
           : slice_is(user_id, "nina") ? DELIVERY_KNOWN_ONLINE
                                       : DELIVERY_KNOWN_NOTHING;
}

static struct counted send_counted(struct delivery_fixture *fixture, const struct slice *users,
                                   size_t count, const char *local)
{
    struct counted counted = {.result = -1, .local = local};
    struct delivery_locals locals = {SLICE("gw-3"), count_local_devices, find_known, &counted};
    struct message message = {
        .type = MESSAGE_DELIVERY, .data = SLICE("1"), .event_name = SLICE("sale")};
    delivery_send_counted(&fixture->delivery, users, count, &message, &locals, note_counted,
                          &counted);
    return counted;
}

static struct counted send_to_devices(struct delivery_fixture *fixture, const char *user,
                                      const char *local)
{
    struct counted counted = {.result = -1, .local = local};
    struct delivery_locals locals = {SLICE("gw-3"), count_local_devices, find_known, &counted};
    struct message message = {.type = MESSAGE_DELIVERY, .data = SLICE("1")};
    struct slice user_id = slice_of(user);
    delivery_send_to_devices(&fixture->delivery, &user_id, &message, &locals, note_counted,
                             &counted);
    return counted;
}

static void counted_event_tells_how_many_users_have_a_device(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct slice users[] = {SLICE("alice"), SLICE("bob"), SLICE("carol")};
    struct counted counted = send_counted(fixture, users, 3, NULL);
    assert_int_equal(counted.result, DELIVERY_SENT);
    assert_int_equal(counted.users, 2); /* alice is on two gateways */
    assert_int_equal(fixture->published_count, 2);
    receive(fixture, fixture->payloads[0]);
    assert_string_equal(fixture->alice_phone.last,
                        "{\"type\":\"delivery\",\"event\":\"sale\",\"data\":1}");
}

static void counted_event_reaches_a_local_user_without_a_route(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct slice users[] = {SLICE("bob"), SLICE("carol")};
    struct counted counted = send_counted(fixture, users, 2, "carol");
    assert_int_equal(counted.users, 2);
    assert_int_equal(fixture->published_count, 2);
    assert_string_equal(fixture->topics[1], "server:gw-3:deliver");
    assert_non_null(strstr(fixture->payloads[1], "\"users\":[\"carol\"]"));
}

static void counted_event_without_routes_is_broadcast(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct slice users[] = {SLICE("bob"), SLICE("carol"), SLICE("nina"), SLICE("olga")};
    fixture->store_is_down = true;
    struct counted counted = send_counted(fixture, users, 4, "carol");
    assert_int_equal(counted.result, DELIVERY_SENT);
    assert_int_equal(counted.users, 3); /* olga was last known as offline */
    assert_int_equal(fixture->published_count, 1);
    assert_string_equal(fixture->topics[0], "broadcast");
    assert_non_null(strstr(fixture->payloads[0], "[\"bob\",\"carol\",\"nina\",\"olga\"]"));
    receive(fixture, fixture->payloads[0]);
    expect_got(fixture, 0, 0, 1);
    assert_int_equal(fixture->metrics.values[METRIC_BROADCASTS], 1);
}

static void devices_without_routes_are_those_here_or_one(void **state)
{
    struct delivery_fixture *fixture = *state;
    fixture->store_is_down = true;
    assert_int_equal(send_to_devices(fixture, "carol", "carol").users, 2);
    assert_int_equal(send_to_devices(fixture, "bob", "carol").users, 1);
    struct counted counted = send_to_devices(fixture, "olga", NULL);
    assert_int_equal(counted.result, DELIVERY_SENT);
    assert_int_equal(counted.users, 0);
    assert_int_equal(fixture->published_count, 3);
    fixture->is_cut_off = true;
    assert_int_equal(send_to_devices(fixture, "bob", "carol").result, DELIVERY_SKIPPED);
    assert_int_equal(fixture->published_count, 3);
}

static void counted_event_goes_twice_while_routes_may_be_missing(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct slice users[] = {SLICE("bob"), SLICE("carol"), SLICE("nina")};
    fixture->store_may_lack_routes = true;
    struct counted counted = send_counted(fixture, users, 3, NULL);
    assert_int_equal(counted.result, DELIVERY_SENT);
    assert_int_equal(counted.users, 2); /* bob has a route; nina was last known as online */
    assert_int_equal(fixture->published_count, 2);
    assert_string_equal(fixture->topics[0], "server:gw-1:deliver");
    assert_string_equal(fixture->topics[1], "broadcast");
    assert_non_null(strstr(fixture->payloads[1], "[\"bob\",\"carol\",\"nina\"]"));
    assert_null(strstr(fixture->payloads[0], "kept"));
    assert_non_null(strstr(fixture->payloads[1], "\"twice\":true,\"kept\":true"));
    fixture->is_cut_off = true;
    send_counted(fixture, users, 3, NULL);
    assert_int_equal(fixture->published_count, 3);
    assert_null(strstr(fixture->payloads[2], "twice"));
}

static void user_gets_one_copy_of_an_event_that_comes_twice(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct slice users[] = {SLICE("alice"), SLICE("bob")};
    fixture->store_may_lack_routes = true;
    send_counted(fixture, users + 1, 1, NULL); /* only bob has a route */
    receive(fixture, fixture->payloads[0]);
    receive(fixture, fixture->payloads[1]);
    expect_got(fixture, 0, 0, 1);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_DUPLICATES], 1);
    fixture->published_count = 0;
    send_counted(fixture, users + 1, 1, NULL);
    receive(fixture, fixture->payloads[1]);
    expect_got(fixture, 0, 0, 2); /* an equal event is another one */
}

/* The route of alice is missing: the copy by routes names bob alone. */
static void broadcast_copy_serves_whom_the_routes_left_out(void **state)
{
    struct delivery_fixture *fixture = *state;
    receive(fixture, "{\"kind\":\"event\",\"type\":\"t\",\"fields\":{},\"id\":\"00000000000000aa\","
                     "\"twice\":true,\"users\":[\"bob\"]}");
    receive(fixture, "{\"kind\":\"event\",\"type\":\"t\",\"fields\":{},\"id\":\"00000000000000aa\","
                     "\"twice\":true,\"users\":[\"alice\",\"bob\"]}");
    expect_got(fixture, 1, 1, 1);
}

static void counted_event_that_reaches_no_link_is_sent_only_to_local_users(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct slice users[] = {SLICE("bob"), SLICE("carol")};
    fixture->store_is_down = true;
    fixture->is_cut_off = true;
    struct counted counted = send_counted(fixture, users, 2, "carol");
    assert_int_equal(counted.result, DELIVERY_SKIPPED);
    assert_int_equal(counted.users, 0);
    assert_int_equal(fixture->published_count, 0);
    counted = send_counted(fixture, users + 1, 1, "carol");
    assert_int_equal(counted.result, DELIVERY_SENT);
    assert_int_equal(counted.users, 1);
    assert_string_equal(fixture->topics[0], "broadcast");
}

static void event_for_everyone_is_one_publication_per_gateway(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct slice gateways[] = {SLICE("gw-1"), SLICE("gw-2")};
    struct message message = {.type = MESSAGE_DELIVERY, .data = SLICE("1")};
    struct clock clock = {.now_ms = 1000};
    struct wheel wheel;
    struct everyone everyone;
    wheel_init(&wheel, clock.now_ms);
    everyone_init(&everyone, &fixture->router, &wheel, &clock, &fixture->metrics);
    fixture->receiver.everyone = &everyone;
    assert_true(delivery_send_everyone(&fixture->delivery, gateways, 2, &message));
    assert_int_equal(fixture->published_count, 2);
    assert_string_equal(fixture->topics[1], "server:gw-2:deliver");
    receive(fixture, fixture->payloads[0]);
    expect_got(fixture, 0, 0, 0); /* at its pace */
    wheel_advance(&wheel, clock.now_ms + EVERYONE_STEP_MS, 10);
    expect_got(fixture, 1, 1, 1);
    assert_string_equal(fixture->bob_phone.last, "{\"type\":\"delivery\",\"data\":1}");
    receive(fixture, fixture->payloads[0]);
    assert_int_equal(everyone.pending_count, 0); /* the second copy is dropped */
    everyone_free(&everyone);
}

static void event_for_everyone_is_broadcast_without_gateways(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct slice gateway = SLICE("gw-1");
    struct message message = {.type = MESSAGE_DELIVERY, .data = SLICE("1")};
    assert_int_equal(delivery_broadcast_everyone(&fixture->delivery, &message), DELIVERY_SENT);
    assert_int_equal(fixture->published_count, 1);
    assert_string_equal(fixture->topics[0], "broadcast");
    assert_non_null(strstr(fixture->payloads[0], "\"users\":[]"));
    fixture->store_may_lack_routes = true;
    assert_true(delivery_send_everyone(&fixture->delivery, &gateway, 1, &message));
    assert_int_equal(fixture->published_count, 3);
    assert_string_equal(fixture->topics[2], "broadcast");
    fixture->is_cut_off = true;
    assert_int_equal(delivery_broadcast_everyone(&fixture->delivery, &message), DELIVERY_SKIPPED);
    assert_int_equal(fixture->published_count, 3);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_begin, fixture_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(each_gateway_gets_one_payload_with_all_its_users),
        WITH_FIXTURE(user_without_a_route_is_skipped),
        WITH_FIXTURE(unavailable_store_makes_the_sender_broadcast),
        WITH_FIXTURE(sender_that_cannot_broadcast_skips_the_event),
        WITH_FIXTURE(broadcast_names_all_users_after_a_late_failure),
        WITH_FIXTURE(equal_events_get_different_ids),
        WITH_FIXTURE(message_by_route_and_by_broadcast_is_delivered_once),
        WITH_FIXTURE(chat_message_carries_its_sequence_and_the_excepted_connection),
        WITH_FIXTURE(event_goes_to_remembered_routes_before_they_are_confirmed),
        WITH_FIXTURE(route_that_was_not_remembered_is_served_after_all),
        WITH_FIXTURE(store_that_fails_after_it_remembered_makes_no_second_copy),
        WITH_FIXTURE(event_for_one_device_names_the_device),
        WITH_FIXTURE(close_is_published_to_one_gateway),
        WITH_FIXTURE(event_reaches_all_devices_of_all_users),
        WITH_FIXTURE(event_skips_the_excepted_connection),
        WITH_FIXTURE(event_for_one_device_reaches_only_that_device),
        WITH_FIXTURE(close_closes_the_connection_and_delivers_nothing),
        WITH_FIXTURE(repeated_chat_message_is_dropped),
        WITH_FIXTURE(chat_message_without_an_id_is_never_a_duplicate),
        WITH_FIXTURE(messages_of_numbered_chats_are_all_delivered),
        WITH_FIXTURE(constructed_collision_of_hashes_suppresses_no_message),
        WITH_FIXTURE(other_events_may_be_repeated),
        WITH_FIXTURE(invalid_payloads_are_dropped),
        WITH_FIXTURE(presence_payload_goes_to_the_presence_plane),
        WITH_FIXTURE(sent_event_arrives_unchanged),
        WITH_FIXTURE(counted_event_tells_how_many_users_have_a_device),
        WITH_FIXTURE(counted_event_reaches_a_local_user_without_a_route),
        WITH_FIXTURE(counted_event_without_routes_is_broadcast),
        WITH_FIXTURE(devices_without_routes_are_those_here_or_one),
        WITH_FIXTURE(counted_event_goes_twice_while_routes_may_be_missing),
        WITH_FIXTURE(user_gets_one_copy_of_an_event_that_comes_twice),
        WITH_FIXTURE(broadcast_copy_serves_whom_the_routes_left_out),
        WITH_FIXTURE(counted_event_that_reaches_no_link_is_sent_only_to_local_users),
        WITH_FIXTURE(event_for_everyone_is_one_publication_per_gateway),
        WITH_FIXTURE(event_for_everyone_is_broadcast_without_gateways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

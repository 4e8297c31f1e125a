/* From a message to one event for each gateway, and from an event to the right sockets. */
#include "routing/delivery_testing.h"
#include "text/json.h"

#define CONN_1 "00000000000000000000000001"
#define CONN_9 "00000000000000000000000009"

static const struct slice everybody[] = {{"alice", 5}, {"bob", 3}, {"nobody", 6}};
static const struct message ringing = {.type = MESSAGE_CALL_RINGING, .call = {.call_id = {"k", 1}}};

static void receive(struct office *office, const char *payload)
{
    /* Memory of its exact length: the receiver must not rely on what follows. */
    size_t len = strlen(payload);
    char *copy = malloc(len + 1);
    memcpy(copy, payload, len);
    delivery_received(&office->delivery, (struct slice){copy, len});
    free(copy);
}

static void expect_got(const struct office *office, unsigned phone, unsigned laptop, unsigned bob)
{
    assert_int_equal(office->alice_phone.got, phone);
    assert_int_equal(office->alice_laptop.got, laptop);
    assert_int_equal(office->bob_phone.got, bob);
}

/* An event's id is like no other's, so it is cut off before the rest is compared. */
static void expect_published(struct office *office, size_t index, const char *expected)
{
    char *id = strstr(office->payloads[index], ",\"id\":\"");
    assert_non_null(id);
    char *users = id + strlen(",\"id\":\"0123456789abcdef\"");
    assert_memory_equal(users, ",\"users\":[", strlen(",\"users\":["));
    memmove(id, users, strlen(users) + 1);
    assert_string_equal(office->payloads[index], expected);
}

/* ---- sending ---- */

static void each_gateway_gets_one_event_with_all_its_recipients(void **state)
{
    struct office *office = *state;
    delivery_send_then(&office->delivery, everybody, 3, &ringing, NULL, office_done, office);
    assert_int_equal(office->published_count, 2);
    assert_string_equal(office->topics[0], "server:gw-1:deliver");
    expect_published(office, 0,
                     "{\"kind\":\"event\",\"type\":\"call_ringing\",\"fields\":{\"call_id\":\"k\"},"
                     "\"users\":[\"alice\",\"bob\"]}");
    assert_string_equal(office->topics[1], "server:gw-2:deliver");
    expect_published(office, 1,
                     "{\"kind\":\"event\",\"type\":\"call_ringing\",\"fields\":{\"call_id\":\"k\"},"
                     "\"users\":[\"alice\"]}");
    assert_int_equal(office->sent, true);
    assert_int_equal(office->metrics.values[METRIC_ROUTING_LOOKUPS], 1);
}

static void who_is_nowhere_is_skipped(void **state)
{
    struct office *office = *state;
    delivery_send_then(&office->delivery, &everybody[2], 1, &ringing, NULL, office_done, office);
    assert_int_equal(office->published_count, 0);
    assert_int_equal(office->sent, true);
}

static void a_store_out_of_reach_means_a_broadcast(void **state)
{
    struct office *office = *state;
    office->store_is_down = true;
    delivery_send_then(&office->delivery, everybody, 3, &ringing, NULL, office_done, office);
    assert_int_equal(office->published_count, 1);
    assert_string_equal(office->topics[0], BUS_TOPIC_ALL.data);
    expect_published(office, 0,
                     "{\"kind\":\"event\",\"type\":\"call_ringing\",\"fields\":{\"call_id\":\"k\"},"
                     "\"users\":[\"alice\",\"bob\",\"nobody\"]}");
    assert_int_equal(office->sent, true);
    assert_int_equal(office->metrics.values[METRIC_ROUTING_LOOKUP_ERRORS], 1);
    assert_int_equal(office->metrics.values[METRIC_BROADCASTS], 1);
    assert_int_equal(office->metrics.values[METRIC_BROADCAST_MODE], 1);
    receive(office, office->payloads[0]);
    expect_got(office, 1, 1, 1);
    office->store_is_down = false;
    delivery_send(&office->delivery, everybody, 3, &ringing, NULL);
    assert_int_equal(office->metrics.values[METRIC_BROADCAST_MODE], 0);
}

/* The store gives up after the caller's list is gone. */
static void a_broadcast_may_come_late(void **state)
{
    struct office *office = *state;
    char names[] = "alicebob";
    struct slice users[] = {{names, 5}, {names + 5, 3}};
    office->store_is_late = office->store_is_down = true;
    delivery_send_then(&office->delivery, users, 2, &ringing, NULL, office_done, office);
    memset(names, 'x', sizeof(names));
    memset(users, 0, sizeof(users));
    assert_int_equal(office->sent, -1);
    office_answer(office);
    assert_int_equal(office->sent, true);
    receive(office, office->payloads[0]);
    expect_got(office, 1, 1, 1);
}

static void no_two_events_are_alike(void **state)
{
    struct office *office = *state;
    delivery_send_device(&office->delivery, SLICE("bob"), SLICE("phone"), &ringing);
    delivery_send_device(&office->delivery, SLICE("bob"), SLICE("phone"), &ringing);
    assert_int_equal(office->published_count, 2);
    assert_string_not_equal(office->payloads[0], office->payloads[1]);
}

/* A message comes to its gateway, then to all, then to its gateway again: it is one. */
static void both_roads_bring_a_message_once(void **state)
{
    struct office *office = *state;
    struct message message = {.type = MESSAGE_MESSAGE,
                              .chat_message = {.chat_id = SLICE("team"),
                                               .message_id = SLICE("M"),
                                               .sequence = 47,
                                               .sender_id = SLICE("carol"),
                                               .body = SLICE("x"),
                                               .sent_at_ms = 0}};
    delivery_send(&office->delivery, everybody, 3, &message, NULL);
    office->store_is_down = true;
    delivery_send(&office->delivery, everybody, 3, &message, NULL);
    assert_int_equal(office->published_count, 3);
    receive(office, office->payloads[0]);
    receive(office, office->payloads[2]);
    receive(office, office->payloads[0]);
    expect_got(office, 1, 1, 1);
    assert_int_equal(office->metrics.values[METRIC_FANOUT_DUPLICATES], 2);
}

static void a_message_of_a_chat_carries_its_place_and_who_has_it_already(void **state)
{
    struct office *office = *state;
    struct message message = {.type = MESSAGE_MESSAGE,
                              .chat_message = {.chat_id = SLICE("team"),
                                               .message_id = SLICE("M"),
                                               .sequence = 47,
                                               .sender_id = SLICE("bob"),
                                               .body = SLICE("x"),
                                               .sent_at_ms = 0}};
    delivery_send(&office->delivery, &everybody[1], 1, &message, &office->alice_phone.conn_id);
    assert_int_equal(office->published_count, 1);
    assert_string_equal(
        office->payloads[0],
        "{\"kind\":\"event\",\"type\":\"message\",\"fields\":{\"chat_id\":\"team\",\"message_id\":"
        "\"M\",\"sequence\":47,\"sender_id\":\"bob\",\"body\":\"x\",\"sent_at\":"
        "\"1970-01-01T00:00:00.000Z\"},\"except\":\"" CONN_1
        "\",\"chat\":\"team\",\"sequence\":47,\"users\":[\"bob\"]}");
}

static void one_device_can_be_meant(void **state)
{
    struct office *office = *state;
    delivery_send_device(&office->delivery, SLICE("bob"), SLICE("phone"), &ringing);
    assert_int_equal(office->published_count, 1);
    expect_published(office, 0,
                     "{\"kind\":\"event\",\"type\":\"call_ringing\",\"fields\":{\"call_id\":\"k\"},"
                     "\"device\":\"phone\",\"users\":[\"bob\"]}");
}

static void a_gateway_is_asked_to_close(void **state)
{
    struct office *office = *state;
    delivery_close(&office->delivery, SLICE("gw-7"), SLICE("alice"), &office->alice_phone.conn_id);
    assert_string_equal(office->topics[0], "server:gw-7:deliver");
    assert_string_equal(office->payloads[0],
                        "{\"kind\":\"close\",\"conn_id\":\"" CONN_1 "\",\"users\":[\"alice\"]}");
}

/* ---- receiving ---- */

static void all_devices_of_all_users_get_it(void **state)
{
    struct office *office = *state;
    receive(office,
            "{\"kind\":\"event\",\"users\":[\"bob\",\"nobody\",\"alice\"],\"type\":\"delivery\","
            "\"fields\":{\"data\":[1, {\"a\":\"}\"}]}}");
    expect_got(office, 1, 1, 1);
    assert_string_equal(office->bob_phone.last,
                        "{\"type\":\"delivery\",\"data\":[1, {\"a\":\"}\"}]}");
    assert_string_equal(office->alice_laptop.last, office->bob_phone.last);
    assert_int_equal(office->metrics.values[METRIC_FANOUT_DELIVERED], 3);
}

static void but_for_the_connection_excepted(void **state)
{
    struct office *office = *state;
    receive(
        office,
        "{\"kind\":\"event\",\"users\":[\"alice\",\"bob\"],\"type\":\"t\",\"fields\":{},\"except\":\"" CONN_1
        "\"}");
    expect_got(office, 0, 1, 1);
    receive(office, "{\"kind\":\"event\",\"except\":\"" CONN_9
                    "\",\"users\":[\"alice\"],\"type\":\"t\",\"fields\":{}}");
    expect_got(office, 1, 2, 1);
}

static void only_the_device_that_is_meant(void **state)
{
    struct office *office = *state;
    receive(
        office,
        "{\"kind\":\"event\",\"users\":[\"alice\"],\"type\":\"t\",\"fields\":{},\"device\":\"laptop\"}");
    expect_got(office, 0, 1, 0);
    receive(
        office,
        "{\"kind\":\"event\",\"users\":[\"nobody\"],\"type\":\"t\",\"fields\":{},\"device\":\"laptop\"}");
    expect_got(office, 0, 1, 0);
}

static void a_close_closes_and_delivers_nothing(void **state)
{
    struct office *office = *state;
    receive(office, "{\"kind\":\"close\",\"conn_id\":\"" CONN_1 "\",\"users\":[\"alice\"]}");
    assert_int_equal(office->closes, 1);
    assert_true(ulid_equal(&office->closed, &office->alice_phone.conn_id));
    expect_got(office, 0, 0, 0);
}

static void receive_of_chat(struct office *office, const char *chat, int sequence)
{
    char payload[256];
    snprintf(
        payload, sizeof(payload),
        "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"message\",\"fields\":{},\"chat\":\"%s\","
        "\"sequence\":%d}",
        chat, sequence);
    receive(office, payload);
}

static void a_message_that_comes_again_soon_is_dropped(void **state)
{
    struct office *office = *state;
    receive_of_chat(office, "team", 1);
    receive_of_chat(office, "team", 1);
    assert_int_equal(office->bob_phone.got, 1);
    receive_of_chat(office, "team", 2);
    receive_of_chat(office, "other", 1);
    receive_of_chat(office, "team", 1);
    assert_int_equal(office->bob_phone.got, 3);
    assert_int_equal(office->metrics.values[METRIC_FANOUT_DUPLICATES], 2);
    enum { STORM = 2000 }; /* of other messages in between */
    for (int sequence = 3; sequence < 3 + STORM; sequence++)
        receive_of_chat(office, "team", sequence);
    receive_of_chat(office, "team", 1);
    assert_int_equal(office->bob_phone.got, 3 + STORM);
}

static void what_is_no_message_of_a_chat_may_be_repeated(void **state)
{
    struct office *office = *state;
    for (int i = 0; i < 3; i++)
        receive(
            office,
            "{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"delivery\",\"fields\":{\"data\":1}}");
    assert_int_equal(office->bob_phone.got, 3);
}

static void anything_else_is_dropped(void **state)
{
    struct office *office = *state;
    static const char *const wrong[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"kind\":\"event\"}",
        "{\"kind\":\"close\"}",
        "{\"kind\":\"close\",\"conn_id\":\"" CONN_1 "\"}",
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
        receive(office, wrong[i]);
    expect_got(office, 0, 0, 0);
    assert_int_equal(office->closes, 0);
}

/* Takes the user's name from a payload of the kind "presence". */
static bool take_presence(void *arg, struct json *members)
{
    struct slice key, text;
    while (json_member(members, &key) && json_string(members, &text))
        office_copy(arg, 16, text);
    return json_done(members);
}

static void presence_payload_goes_to_the_presence_plane(void **state)
{
    struct office *office = *state;
    char heard[16] = "";
    receive(office, "{\"kind\":\"presence\",\"users\":[\"bob\"]}");
    office->delivery.on_presence = take_presence;
    office->delivery.presence_arg = heard;
    receive(office, "{\"kind\":\"presence\",\"who\":\"al\\u0069ce\"}");
    assert_string_equal(heard, "alice");
    receive(office, "{\"kind\":\"event\",\"users\":[],\"type\":\"who\",\"fields\":{}}");
    assert_string_equal(heard, "alice");
    expect_got(office, 0, 0, 0);
}

/* ---- both ---- */

static void what_is_sent_is_what_is_received(void **state)
{
    struct office *office = *state;
    struct message message = {.type = MESSAGE_DELIVERY,
                              .data = SLICE("{\"quote\":\"\\\"\\u0000\"}")};
    delivery_send(&office->delivery, everybody, 3, &message, &office->bob_phone.conn_id);
    receive(office, office->payloads[0]);
    expect_got(office, 1, 1, 0);
    assert_string_equal(office->alice_phone.last,
                        "{\"type\":\"delivery\",\"data\":{\"quote\":\"\\\"\\u0000\"}}");
}

#define IN_OFFICE(test) cmocka_unit_test_setup_teardown(test, office_begin, office_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_OFFICE(each_gateway_gets_one_event_with_all_its_recipients),
        IN_OFFICE(who_is_nowhere_is_skipped),
        IN_OFFICE(a_store_out_of_reach_means_a_broadcast),
        IN_OFFICE(a_broadcast_may_come_late),
        IN_OFFICE(no_two_events_are_alike),
        IN_OFFICE(both_roads_bring_a_message_once),
        IN_OFFICE(a_message_of_a_chat_carries_its_place_and_who_has_it_already),
        IN_OFFICE(one_device_can_be_meant),
        IN_OFFICE(a_gateway_is_asked_to_close),
        IN_OFFICE(all_devices_of_all_users_get_it),
        IN_OFFICE(but_for_the_connection_excepted),
        IN_OFFICE(only_the_device_that_is_meant),
        IN_OFFICE(a_close_closes_and_delivers_nothing),
        IN_OFFICE(a_message_that_comes_again_soon_is_dropped),
        IN_OFFICE(what_is_no_message_of_a_chat_may_be_repeated),
        IN_OFFICE(anything_else_is_dropped),
        IN_OFFICE(presence_payload_goes_to_the_presence_plane),
        IN_OFFICE(what_is_sent_is_what_is_received),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

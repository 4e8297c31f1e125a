/* What Socket.IO adapters publish: what is read, what is ignored and what is refused. */
#include "socketio/codec/adapter_packet.h"
#include "socketio/codec/msgpack.h"
#include "socketio/codec/msgpack_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The message whose JSON this is, packed. */
static struct buffer pack(const char *text)
{
    struct buffer packed = BUFFER_INIT;
    struct json json;
    char copy[1024];
    strcpy(copy, text);
    json_init(&json, copy, strlen(copy));
    assert_true(msgpack_from_json(&json, &packed));
    return packed;
}

static bool read_packed(const char *text, struct buffer *json, struct adapter_packet *out)
{
    struct buffer packed = pack(text);
    static struct buffer kept; /* the packet borrows from it */
    const char *problem;
    buffer_free(&kept);
    kept = packed;
    return adapter_packet_read(buffer_slice(&kept), json, out, &problem);
}

static void expect_fields(const char *text, const char *fields)
{
    struct buffer json = BUFFER_INIT;
    struct adapter_packet packet;
    assert_true(read_packed(text, &json, &packet));
    assert_int_equal(packet.act, ADAPTER_EMIT);
    assert_true(slice_is(packet.fields, fields));
    buffer_free(&json);
}

static void expect_act(const char *text, bool is_read, enum adapter_act act)
{
    struct buffer json = BUFFER_INIT;
    struct adapter_packet packet;
    assert_int_equal(read_packed(text, &json, &packet), is_read);
    assert_int_equal(packet.act, act);
    buffer_free(&json);
}

#define OPTIONS "{\"rooms\":[],\"except\":[],\"flags\":{}}"
#define EVENT(data) "[\"uid\",{\"type\":2,\"data\":" data ",\"nsp\":\"/\"}," OPTIONS "]"

static void event_becomes_a_delivery_with_all_arguments(void **state)
{
    (void)state;
    expect_fields(EVENT("[\"a\"]"), "{\"event\":\"a\",\"data\":null,\"args\":[]}");
    expect_fields(EVENT("[\"a\",{\"x\":1}]"), "{\"event\":\"a\",\"data\":{\"x\":1}}");
    expect_fields(EVENT("[\"a\",1,\"b\"]"), "{\"event\":\"a\",\"data\":1,\"args\":[1,\"b\"]}");
    expect_fields("[\"uid\",{\"type\":2,\"data\":[\"a\",0]},{}]", "{\"event\":\"a\",\"data\":0}");
}

static void rooms_are_read_and_those_of_no_name_still_count_as_named(void **state)
{
    (void)state;
    struct buffer json = BUFFER_INIT;
    struct adapter_packet packet;
    assert_true(read_packed("[1,{\"type\":2,\"data\":[\"a\"]},{\"rooms\":[\"u:b\",7,\"\"],"
                            "\"except\":[\"team\"]}]",
                            &json, &packet));
    assert_int_equal(packet.rooms.count, 1);
    assert_true(slice_is(packet.rooms.names[0], "u:b"));
    assert_true(slice_is(packet.except.names[0], "team"));
    buffer_clear(&json);
    assert_true(read_packed("[1,{\"type\":2,\"data\":[\"a\"]},{\"rooms\":[7]}]", &json, &packet));
    assert_true(packet.rooms.are_named);
    assert_int_equal(packet.rooms.count, 0);
    buffer_free(&json);
}

static void others_messages_are_ignored(void **state)
{
    (void)state;
    expect_act("[\"uid\",{\"type\":2,\"data\":[\"a\"],\"nsp\":\"/admin\"}," OPTIONS "]", true,
               ADAPTER_IGNORE);
    expect_act("[\"uid\",{\"type\":3,\"data\":[\"a\"]}," OPTIONS "]", true, ADAPTER_IGNORE);
    expect_act("[\"uid\",{\"type\":2,\"data\":[\"a\"]},{\"flags\":{\"local\":true}}]", true,
               ADAPTER_IGNORE);
}

static void garbage_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "[]",
        "{}",
        "[1,2,3]",
        "[1,{},2]",
        "[1,{\"type\":2},{}]",
        EVENT("{}"),
        EVENT("[]"),
        EVENT("[7]"),
        EVENT("[\"connect\"]"),
        EVENT("[null]"),
        "[1,{\"type\":2,\"data\":[\"a\"]},{\"rooms\":\"all\"}]",
        "[1,{\"type\":2,\"data\":[\"a\"]},{\"rooms\":[\"a\"],\"rooms\":[]}]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect_act(bad[i], false, ADAPTER_IGNORE);
}

static enum adapter_act request_act(const char *text, bool expected)
{
    struct buffer json = BUFFER_INIT;
    struct adapter_packet packet;
    const char *problem;
    assert_int_equal(adapter_request_read(slice_of(text), &json, &packet, &problem), expected);
    buffer_free(&json);
    return packet.act;
}

static void only_a_request_to_disconnect_is_acted_upon(void **state)
{
    (void)state;
    assert_int_equal(request_act("{\"type\":4,\"opts\":{\"rooms\":[\"u:a\"],\"except\":[]}}", true),
                     ADAPTER_DISCONNECT);
    assert_int_equal(request_act("{\"type\":4,\"sid\":\"x\"}", true), ADAPTER_IGNORE);
    assert_int_equal(request_act("{\"type\":2,\"opts\":{\"rooms\":[]}}", true), ADAPTER_IGNORE);
    assert_int_equal(request_act("\x81", true), ADAPTER_IGNORE);
    assert_int_equal(request_act("{\"type\":4,\"opts\":{\"rooms\":7}}", false), ADAPTER_IGNORE);
    assert_int_equal(request_act("{\"type\":4,", false), ADAPTER_IGNORE);
}

static void a_key_is_no_pattern(void **state)
{
    (void)state;
    struct buffer out = BUFFER_INIT;
    adapter_pattern_write(&out, SLICE("a*b?[c]\\"), SLICE("#/#"));
    assert_true(slice_is(buffer_slice(&out), "a\\*b\\?\\[c\\]\\\\#/#*"));
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_becomes_a_delivery_with_all_arguments),
        cmocka_unit_test(rooms_are_read_and_those_of_no_name_still_count_as_named),
        cmocka_unit_test(others_messages_are_ignored),
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(only_a_request_to_disconnect_is_acted_upon),
        cmocka_unit_test(a_key_is_no_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Socket.IO clients whose packets are MessagePack, on virtual time: they are served like other clients. Packets are
 * written here as the equivalent text; socketio_packed_test.c tests their packed form.
 */
#include "socketio/socketio_session.h"

#include "socketio/codec/socketio_packed.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { UNHEALTHY_MS = 10000, PACKET_BYTES_MAX = WORLD_TOKEN_BYTES_MAX + 256 };

static struct world world;
static struct client alice;
static char last_packet[1024]; /* as text */

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice));
    return 0;
}

static void dial(struct client *client)
{
    assert_int_equal(client_dial_socketio(client, &world, "", 0), 101);
    assert_int_equal(client_next(client), CLIENT_TEXT);
}

static void send_bytes(struct client *client, struct slice bytes)
{
    client_frame(client, CLIENT_BINARY, bytes.data, bytes.len);
    world_settle(&world);
}

static void send_packed(struct client *client, const char *text)
{
    struct buffer packed = BUFFER_INIT;
    char *copy = strdup(text);
    socketio_pack(copy, strlen(copy), &packed);
    send_bytes(client, buffer_slice(&packed));
    buffer_free(&packed);
    free(copy);
}

static void expect_packed(struct client *client, const char *beginning)
{
    struct buffer text = BUFFER_INIT;
    struct socketio_packet packet;
    const char *problem;
    assert_int_equal(client_next(client), CLIENT_BINARY);
    struct slice packed = {client->text, client->text_len};
    if (!socketio_unpack(packed, &text, &packet, &problem))
        fail_msg("%s", problem);
    snprintf(last_packet, sizeof(last_packet), "%.*s", SLICE_FORMAT(buffer_slice(&text)));
    struct slice expected = slice_after(slice_of(beginning), 1);
    if (!slice_starts_with(buffer_slice(&text), expected))
        fail_msg("expected %s, got 4%.*s", beginning, SLICE_FORMAT(buffer_slice(&text)));
    buffer_free(&text);
}

static void write_connect(const char *user, const char *rest, char *packet, size_t size)
{
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, user, "", 3600000, token);
    snprintf(packet, size, "40{\"token\":\"%s\"%s}", token, rest);
}

static void join(struct client *client, const char *user)
{
    char packet[PACKET_BYTES_MAX];
    write_connect(user, "", packet, sizeof(packet));
    send_packed(client, packet);
    expect_packed(client, "40{\"sid\":\"");
    expect_packed(client, "42[\"connection_established\"");
}

/* ---- recovery ---- */

/* What a client remembers of its session: its private id and the last offset. */
struct remembered {
    char pid[64];
    char offset[17];
};

static void note_offset(struct remembered *remembered)
{
    assert_int_equal(sscanf(strrchr(last_packet, ',') + 2, "%16[0-9a-f]", remembered->offset), 1);
}

static void note_pid(struct remembered *remembered)
{
    const char *pid = strstr(last_packet, "\"pid\":\"");
    assert_non_null(pid);
    assert_int_equal(sscanf(pid, "\"pid\":\"%63[^\"]", remembered->pid), 1);
}

static void write_return(const struct remembered *remembered, char *packet, size_t size)
{
    char rest[128];
    snprintf(rest, sizeof(rest), ",\"pid\":\"%s\",\"offset\":\"%s\"", remembered->pid,
             remembered->offset);
    write_connect("alice", rest, packet, size);
}

static void cut(void)
{
    client_hang_up(&alice);
    world_settle(&world);
}

static void missed_events_are_recovered_in_the_dialect_of_the_returning_client(void **unused)
{
    (void)unused;
    struct remembered remembered;
    char packet[PACKET_BYTES_MAX];
    dial(&alice);
    write_connect("alice", "", packet, sizeof(packet));
    send_packed(&alice, packet);
    expect_packed(&alice, "40{\"sid\":\"");
    note_pid(&remembered);
    expect_packed(&alice, "42[\"connection_established\"");
    note_offset(&remembered);
    world_push(&world, "alice", "{\"text\":\"\\u0061\"}", 0);
    expect_packed(&alice, "42[\"delivery\",{\"data\":{\"text\":\"a\"}}");
    cut();
    dial(&alice);
    write_return(&remembered, packet, sizeof(packet));
    send_packed(&alice, packet);
    expect_packed(&alice, "40{\"sid\":\"");
    expect_packed(&alice, "42[\"connection_established\"");
    note_offset(&remembered);
    expect_packed(&alice, "42[\"delivery\",{\"data\":{\"text\":\"a\"}}");
    cut();
    dial(&alice);
    write_return(&remembered, packet, sizeof(packet));
    client_send(&alice, packet);
    assert_int_equal(client_next(&alice), CLIENT_TEXT);
    assert_int_equal(client_next(&alice), CLIENT_TEXT);
    assert_int_equal(client_next(&alice), CLIENT_TEXT);
    assert_true(client_has(&alice, "42[\"delivery\",{\"data\":{\"text\":\"\\u0061\"}}"));
    assert_int_equal(world_metric(&world, METRIC_SOCKETIO_RECOVERED), 2);
}

/* ---- the dialect ---- */

static void expect_protocol_error(struct client *client)
{
    client_expect_close(client, 1002);
    client_hang_up(client);
}

static void client_that_begins_with_a_packed_packet_gets_packed_packets(void **unused)
{
    (void)unused;
    dial(&alice);
    send_packed(&alice, "40");
    expect_packed(&alice, "44{\"message\":\"a token is needed\"");
    send_packed(&alice, "40/admin,");
    expect_packed(&alice, "44/admin,{\"message\":\"Invalid namespace\"}");
    join(&alice, "alice");
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    send_packed(&alice, "425[\"heartbeat\",{}]");
    expect_packed(&alice, "435[{\"type\":\"heartbeat_ack\",\"server_time\":\"");
    send_packed(&alice, "42[\"no such thing\"]");
    expect_packed(&alice, "42[\"error\",{\"code\":\"INVALID_MESSAGE\"");
    world_push(&world, "alice", "{\"x\":[1,\"y\"]}", 0);
    expect_packed(&alice, "42[\"delivery\",{\"data\":{\"x\":[1,\"y\"]}}");
    send_packed(&alice, "426[\"user:disconnect\"]");
    expect_packed(&alice, "436[{\"type\":\"ok\"}]");
    expect_packed(&alice, "41");
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
    join(&alice, "alice");
    client_expect_nothing(&alice);
}

static void pings_to_a_packing_client_are_text(void **unused)
{
    (void)unused;
    dial(&alice);
    join(&alice, "alice");
    world_advance(&world, UNHEALTHY_MS);
    assert_int_equal(client_next(&alice), CLIENT_TEXT);
    assert_string_equal(alice.text, "2");
    client_send(&alice, "3");
    client_expect_nothing(&alice);
}

static void event_with_binary_is_refused_and_the_connection_stays(void **unused)
{
    (void)unused;
    dial(&alice);
    join(&alice, "alice");
    send_bytes(&alice, SLICE("\x84\xa4type\x02\xa3nsp\xa1/\xa2id\x07\xa4"
                             "data\x92\xa9heartbeat\xc4\x01x"));
    expect_packed(&alice, "437[{\"type\":\"error\",\"code\":\"INVALID_MESSAGE\"");
    send_packed(&alice, "425[\"heartbeat\",{}]");
    expect_packed(&alice, "435[{\"type\":\"heartbeat_ack\"");
}

static void packing_client_that_sends_text_or_a_malformed_packet_is_closed(void **unused)
{
    (void)unused;
    static const struct slice BROKEN[] = {
        SLICE(""),
        SLICE("\xc1"),
        SLICE("\x80"),
        SLICE("42[\"heartbeat\"]"),
        SLICE("\x82\xa4type\x01\xa3nsp\xa1/\x00"),
        SLICE("\x82\xa4type\x05\xa3nsp\xa1/"),
        SLICE("\x82\xa4type\x00\xa3nsp\xa1/"), /* a second CONNECT */
    };
    for (size_t i = 0; i <= sizeof(BROKEN) / sizeof(BROKEN[0]); i++) {
        dial(&alice);
        join(&alice, "alice");
        if (i == 0)
            client_send(&alice, "42[\"heartbeat\"]");
        else
            send_bytes(&alice, BROKEN[i - 1]);
        expect_packed(&alice, "42[\"error\",{\"code\":\"INVALID_MESSAGE\"");
        expect_protocol_error(&alice);
    }
    dial(&alice);
    send_packed(&alice, "42[\"heartbeat\"]"); /* before CONNECT */
    expect_protocol_error(&alice);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(client_that_begins_with_a_packed_packet_gets_packed_packets),
        TEST(pings_to_a_packing_client_are_text),
        TEST(event_with_binary_is_refused_and_the_connection_stays),
        TEST(missed_events_are_recovered_in_the_dialect_of_the_returning_client),
        TEST(packing_client_that_sends_text_or_a_malformed_packet_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

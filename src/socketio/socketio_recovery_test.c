/* What a session that was cut stores for its recovery, and which parts of a stored session are checked. The test
 * has a recovery store of its own. */
#include "socketio/socketio_recovery.h"

#include "support/client.h"

#include "store/recovery_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A secret of zeros, then SID as the device. */
#define PID "AAAAAAAAAAAAAAAAAAAAAAFWPjq109Z2TGHvuZMCvVs"
#define SID "01ARZ3NDEKTSV4RRFFQ69G5FAV"

/* Records what is parked and taken. Returns a session with `topics` to every user, unless it `forgets`. */
static struct fake_recovery {
    struct recovery_store store;
    bool forgets;
    unsigned parked;
    unsigned taken;
    uint64_t offset;
    char user[USER_ID_BYTES_MAX + 1];
    size_t event_count;
    uint64_t floor;
    const struct slice *topics;
    size_t topic_count;
} fake;

static struct world world;
static struct client client;
static char given_pid[SOCKETIO_PID_TEXT_MAX]; /* to the client that connected last */

static void park(struct recovery_store *store, const struct parked_session *record)
{
    (void)store;
    fake.parked++;
    fake.event_count = record->event_count;
    fake.floor = record->floor;
    snprintf(fake.user, sizeof(fake.user), "%.*s", SLICE_FORMAT(record->user_id));
}

static bool is_empty(struct recovery_store *store)
{
    (void)store;
    return true;
}

static bool expects(struct recovery_store *store, struct slice user_id)
{
    (void)store, (void)user_id;
    return false;
}

static void take(struct recovery_store *store, struct slice user_id, struct slice pid,
                 uint64_t offset, recovery_take_done done, void *arg)
{
    (void)store;
    fake.taken++;
    fake.offset = offset;
    struct parked_session record = {.user_id = user_id,
                                    .pid = pid,
                                    .sid = SLICE(SID),
                                    .topics = fake.topics,
                                    .topic_count = fake.topic_count};
    done(arg, fake.forgets ? NULL : &record);
}

static const struct recovery_store_operations FAKE = {
    .park = park, .is_empty = is_empty, .expects = expects, .take = take};

static struct recovery_store *real;

static void use_recovery_store(struct recovery_store *store)
{
    socketio_context_of_sessions(world.sessions)->recovery = store;
    world.sessions->delivery->recovery = store;
    world.receiver->recovery = store;
}

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    fake = (struct fake_recovery){.store.operations = &FAKE};
    real = socketio_context_of_sessions(world.sessions)->recovery;
    use_recovery_store(&fake.store);
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_hang_up(&client);
    world_settle(&world);
    use_recovery_store(real);
    world_close(&world);
    return 0;
}

/* ---- the client ---- */

static void dial(void)
{
    assert_int_equal(client_dial_socketio(&client, &world, "", 0), 101);
    client_expect_text(&client, "0{\"sid\":\"");
}

static void join(const char *user, const char *rest)
{
    char packet[WORLD_TOKEN_BYTES_MAX + 128], token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, user, "", 3600000, token);
    snprintf(packet, sizeof(packet), "40{\"token\":\"%s\"%s}", token, rest);
    client_send(&client, packet);
    client_expect_text(&client, "40{\"sid\":\"");
    assert_int_equal(sscanf(client.text, "40{%*[^,],\"pid\":\"%63[^\"]", given_pid), 1);
    client_expect_text(&client, "42[\"connection_established\",");
}

static void deliver_to(struct slice user)
{
    delivery_send(world.sessions->delivery, &user, 1,
                  &(struct message){.type = MESSAGE_DELIVERY, .data = SLICE("1")}, NULL);
    client_expect_text(&client, "42[\"delivery\",");
}

/* The last argument of the last event. */
static uint64_t offset_received(void)
{
    const char *comma = strrchr(client.text, ',');
    assert_non_null(comma);
    return strtoull(comma + 2, NULL, 16);
}

/* ---- tests ---- */

static void events_sent_before_a_cut_are_parked(void **unused)
{
    (void)unused;
    dial();
    join("alice", "");
    deliver_to(SLICE("alice"));
    client_hang_up(&client);
    world_settle(&world);
    assert_int_equal(fake.parked, 1);
    assert_string_equal(fake.user, "alice");
    assert_int_equal(fake.event_count, 1);
}

/* A client that missed the event returns with an offset below the floor, so it is not recovered. */
static void event_that_is_too_old_to_be_kept_raises_the_floor(void **unused)
{
    (void)unused;
    dial();
    join("alice", "");
    deliver_to(SLICE("alice"));
    uint64_t offset = offset_received();
    for (int ms = 0; ms <= BACKLOG_AGE_MAX_MS; ms += 5000) {
        world_advance(&world, 5000);
        client_send(&client, "3");
    }
    client_hang_up(&client);
    world_settle(&world);
    assert_int_equal(fake.parked, 1);
    assert_int_equal(fake.event_count, 0);
    assert_int_equal(fake.floor, offset);
}

static void next_user_of_a_connection_does_not_get_the_backlog_of_the_last(void **unused)
{
    (void)unused;
    dial();
    join("alice", "");
    deliver_to(SLICE("alice"));
    client_send(&client, "41");
    join("bob", "");
    client_hang_up(&client);
    world_settle(&world);
    assert_int_equal(fake.parked, 1);
    assert_string_equal(fake.user, "bob");
    assert_int_equal(fake.event_count, 0);
}

static void offset_must_be_sixteen_hexadecimal_digits(void **unused)
{
    (void)unused;
    static const char *const malformed[] = {"",
                                            "1",
                                            "00000000000000001",
                                            "+000000000000001",
                                            "-000000000000001",
                                            " 000000000000001",
                                            "0x",
                                            "0x00000000000001",
                                            "000000000000000A",
                                            "000000000000000g"};
    char rest[128];
    dial();
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        snprintf(rest, sizeof(rest), ",\"pid\":\"" PID "\",\"offset\":\"%s\"", malformed[i]);
        join("alice", rest);
        client_send(&client, "41");
    }
    assert_int_equal(fake.taken, 0);
    join("alice", ",\"pid\":\"" PID "\",\"offset\":\"00000000000abcdf\"");
    assert_int_equal(fake.taken, 1);
    assert_int_equal(fake.offset, 0xabcdf);
}

static void expect_device(const char *expected)
{
    const struct session *session = world_session(&world, "alice");
    assert_int_equal(session->device_len, strlen(expected));
    assert_memory_equal(session->device, expected, session->device_len);
}

static void recovered_client_keeps_its_device(void **unused)
{
    (void)unused;
    dial();
    join("alice", ",\"pid\":\"" PID "\",\"offset\":\"0000000000000000\"");
    expect_device(SID);
    assert_string_equal(given_pid, PID);
    client_send(&client, "41");
    join("alice", ",\"pid\":\"" PID "\",\"offset\":\"0000000000000000\",\"device_id\":\"phone\"");
    expect_device("phone");
}

/* Also when there is nothing to recover, and when the client comes back a second time. */
static void client_that_is_not_recovered_keeps_its_device(void **unused)
{
    (void)unused;
    char rest[128];
    fake.forgets = true;
    dial();
    join("alice", ",\"pid\":\"" PID "\",\"offset\":\"0000000000000000\"");
    expect_device(SID);
    client_send(&client, "41");
    assert_string_not_equal(given_pid, PID);
    snprintf(rest, sizeof(rest), ",\"pid\":\"%s\",\"offset\":\"0000000000000000\"", given_pid);
    join("alice", rest);
    expect_device(SID);
}

static void invalid_ids_from_the_store_are_not_subscribed(void **unused)
{
    (void)unused;
    char user[512] = "presence:", chat[512] = "chat:";
    memset(user + strlen(user), 'u', 400);
    memset(chat + strlen(chat), 'c', 400);
    strcat(chat, ":presence");
    const struct slice topics[] = {slice_of(user), slice_of(chat), SLICE("presence:"),
                                   SLICE("presence:carol"), SLICE_NONE};
    fake.topics = topics;
    fake.topic_count = sizeof(topics) / sizeof(topics[0]);
    dial();
    join("alice", ",\"pid\":\"" PID "\",\"offset\":\"0000000000000000\"");
    client_expect_text(&client, "42[\"presence_snapshot\",");
    assert_int_equal(world_session(&world, "alice")->endpoint.subscription_count, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(events_sent_before_a_cut_are_parked),
        TEST(event_that_is_too_old_to_be_kept_raises_the_floor),
        TEST(next_user_of_a_connection_does_not_get_the_backlog_of_the_last),
        TEST(offset_must_be_sixteen_hexadecimal_digits),
        TEST(recovered_client_keeps_its_device),
        TEST(client_that_is_not_recovered_keeps_its_device),
        TEST(invalid_ids_from_the_store_are_not_subscribed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

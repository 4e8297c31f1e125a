/* Events for users who lost their connection a moment ago: which gateway keeps them, and under which id. */
#include "routing/delivery_testing.h"

enum { KEPT_MAX = 4 };

/* A recovery store that records all appended events. */
static struct {
    struct recovery_store store;
    bool empty;
    struct slice expected; /* the user for whom late events may come */
    size_t count;
    unsigned disturbances;
    struct {
        char user[16];
        uint64_t id, offset;
        char frames[FIXTURE_TEXT_MAX];
    } kept[KEPT_MAX];
} keeper;

static bool is_empty(struct recovery_store *store)
{
    (void)store;
    return keeper.empty;
}

static bool expects(struct recovery_store *store, struct slice user_id)
{
    (void)store;
    return slice_equal(user_id, keeper.expected);
}

static void append(struct recovery_store *store, const struct slice *user_ids, size_t count,
                   const struct recovery_event *event)
{
    (void)store;
    for (size_t i = 0; i < count; i++) {
        assert_true(keeper.count < KEPT_MAX);
        fixture_copy(keeper.kept[keeper.count].user, 16, user_ids[i]);
        fixture_copy(keeper.kept[keeper.count].frames, FIXTURE_TEXT_MAX, event->frames);
        keeper.kept[keeper.count].offset = event->offset;
        keeper.kept[keeper.count++].id = event->id;
    }
}

static void disturb(struct recovery_store *store)
{
    (void)store;
    keeper.disturbances++;
}

static const struct recovery_store_operations KEEPER = {
    .is_empty = is_empty, .expects = expects, .append = append, .invalidate = disturb};

static int begin(void **state)
{
    memset(&keeper, 0, sizeof(keeper));
    keeper.store.operations = &KEEPER;
    keeper.empty = true;
    int result = fixture_begin(state);
    struct delivery_fixture *fixture = *state;
    fixture->delivery.recovery = fixture->receiver.recovery = &keeper.store;
    fixture->delivery.recovery_dialect = fixture->receiver.recovery_dialect = &DIALECT_TABLE_NATIVE;
    return result;
}

static const struct slice both[] = {{"alice", 5}, {"bob", 3}};
static const struct message ringing = {.type = MESSAGE_CALL_RINGING, .call = {.call_id = {"k", 1}}};
static const struct message chat_message = {
    .type = MESSAGE_MESSAGE,
    .chat_message = {
        .chat_id = {"c", 1}, .message_id = {"01ARYZ6S41TSV4RRFFQ69G5FAV", 26}, .sequence = 7}};

static void receive(struct delivery_fixture *fixture, const char *payload)
{
    fixture_receive(fixture, slice_of(payload));
}

static void sender_keeps_an_event_for_users_with_parked_sessions(void **state)
{
    struct delivery_fixture *fixture = *state;
    delivery_send(&fixture->delivery, both, 2, &ringing, NULL);
    assert_int_equal(keeper.count, 0);
    fixture->parked = SLICE("bob");
    delivery_send(&fixture->delivery, both, 2, &ringing, NULL);
    assert_int_equal(keeper.count, 1);
    assert_string_equal(keeper.kept[0].user, "bob");
    assert_non_null(strstr(keeper.kept[0].frames, "{\"type\":\"call_ringing\",\"call_id\":\"k\"}"));
    assert_true(keeper.kept[0].offset == RECOVERY_MISSED);
    assert_int_equal(keeper.disturbances, 0);
}

static void sender_offers_all_users_while_the_recovery_store_is_not_empty(void **state)
{
    struct delivery_fixture *fixture = *state;
    keeper.empty = false;
    delivery_send(&fixture->delivery, both, 2, &ringing, NULL);
    assert_int_equal(keeper.count, 2);
}

static void event_for_one_device_is_not_kept(void **state)
{
    struct delivery_fixture *fixture = *state;
    fixture->parked = keeper.expected = SLICE("alice");
    delivery_send_device(&fixture->delivery, SLICE("alice"), SLICE("phone"), &ringing);
    receive(fixture, fixture->payloads[0]);
    assert_int_equal(keeper.count, 0);
}

/* Both the sender and the receiving gateway keep it; the recovery store recognises the copies by their id. */
static void kept_event_has_the_same_id_on_sender_and_receiver(void **state)
{
    struct delivery_fixture *fixture = *state;
    static const struct message *const messages[] = {&ringing, &chat_message};
    fixture->parked = keeper.expected = SLICE("alice");
    for (size_t i = 0; i < 2; i++) {
        keeper.count = fixture->published_count = 0;
        delivery_send(&fixture->delivery, both, 1, messages[i], NULL);
        receive(fixture, fixture->payloads[0]);
        assert_int_equal(keeper.count, 2);
        assert_true(keeper.kept[0].id != 0);
        assert_true(keeper.kept[0].id == keeper.kept[1].id);
    }
}

static void receiver_keeps_an_event_that_comes_late(void **state)
{
    struct delivery_fixture *fixture = *state;
    keeper.expected = SLICE("gone");
    receive(fixture, "{\"kind\":\"event\",\"users\":[\"alice\",\"gone\"],\"type\":\"call_ringing\","
                     "\"fields\":{\"call_id\":\"k\"},\"id\":\"00000000000000ff\"}");
    assert_int_equal(keeper.count, 1);
    assert_string_equal(keeper.kept[0].user, "gone");
    assert_true(keeper.kept[0].id == 0xff);
    assert_int_equal(fixture->alice_phone.got, 1);
}

static void without_routes_nothing_is_kept_and_recovery_is_disturbed(void **state)
{
    struct delivery_fixture *fixture = *state;
    fixture->parked = SLICE("alice");
    fixture->store_is_down = true;
    delivery_send(&fixture->delivery, both, 2, &ringing, NULL);
    assert_int_equal(keeper.count, 0);
    assert_int_equal(keeper.disturbances, 1);
    receive(fixture, fixture->payloads[0]); /* by its own topic, it would be no broadcast */
    assert_int_equal(keeper.disturbances, 1);
    delivery_received(&fixture->receiver, BUS_TOPIC_ALL, slice_of(fixture->payloads[0]));
    assert_int_equal(keeper.disturbances, 2);
}

/* The store has routes again, if not all: what goes by broadcast too was kept by its sender. */
static void broadcast_of_a_kept_event_does_not_disturb_recovery(void **state)
{
    struct delivery_fixture *fixture = *state;
    static const char kept[] = "{\"kind\":\"event\",\"type\":\"t\",\"fields\":{},\"id\":"
                               "\"00000000000000aa\",\"twice\":true,\"kept\":true,"
                               "\"users\":[\"alice\"]}";
    static const char unkept[] = "{\"kind\":\"event\",\"type\":\"t\",\"fields\":{},\"id\":"
                                 "\"00000000000000bb\",\"twice\":true,\"users\":[\"alice\"]}";
    delivery_received(&fixture->receiver, BUS_TOPIC_ALL, slice_of(kept));
    assert_int_equal(keeper.disturbances, 0);
    assert_int_equal(fixture->alice_phone.got, 1);
    delivery_received(&fixture->receiver, BUS_TOPIC_ALL, slice_of(unkept));
    assert_int_equal(keeper.disturbances, 1);
    assert_int_equal(fixture->alice_phone.got, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, fixture_end)
    const struct CMUnitTest tests[] = {
        TEST(sender_keeps_an_event_for_users_with_parked_sessions),
        TEST(sender_offers_all_users_while_the_recovery_store_is_not_empty),
        TEST(event_for_one_device_is_not_kept),
        TEST(kept_event_has_the_same_id_on_sender_and_receiver),
        TEST(receiver_keeps_an_event_that_comes_late),
        TEST(without_routes_nothing_is_kept_and_recovery_is_disturbed),
        TEST(broadcast_of_a_kept_event_does_not_disturb_recovery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

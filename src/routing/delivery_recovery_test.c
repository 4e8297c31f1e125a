/* Events for those who lost their connection a moment ago: who keeps them, and under which id. */
#include "routing/delivery_testing.h"

enum { KEPT_MAX = 4 };

/* A recovery store that keeps what it is given. */
static struct {
    struct recovery_store store;
    bool empty;
    struct slice expected; /* the user of whom late events may come */
    size_t count;
    unsigned disturbances;
    struct {
        char user[16];
        uint64_t id, offset;
        char frames[OFFICE_TEXT_MAX];
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
        office_copy(keeper.kept[keeper.count].user, 16, user_ids[i]);
        office_copy(keeper.kept[keeper.count].frames, OFFICE_TEXT_MAX, event->frames);
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
    .is_empty = is_empty, .expects = expects, .append = append, .disturb = disturb};

static int begin(void **state)
{
    memset(&keeper, 0, sizeof(keeper));
    keeper.store.operations = &KEEPER;
    keeper.empty = true;
    int result = office_begin(state);
    struct office *office = *state;
    office->delivery.recovery = &keeper.store;
    office->delivery.recovery_dialect = &DIALECT_TABLE_NATIVE;
    return result;
}

static const struct slice both[] = {{"alice", 5}, {"bob", 3}};
static const struct message ringing = {.type = MESSAGE_CALL_RINGING, .call = {.call_id = {"k", 1}}};
static const struct message chat_message = {.type = MESSAGE_MESSAGE,
                                            .chat_message = {.chat_id = {"c", 1}, .sequence = 7}};

static void receive(struct office *office, const char *payload)
{
    delivery_received(&office->delivery, slice_of(payload));
}

static void the_sender_keeps_an_event_for_those_the_routes_name(void **state)
{
    struct office *office = *state;
    delivery_send(&office->delivery, both, 2, &ringing, NULL);
    assert_int_equal(keeper.count, 0);
    office->parked = SLICE("bob");
    delivery_send(&office->delivery, both, 2, &ringing, NULL);
    assert_int_equal(keeper.count, 1);
    assert_string_equal(keeper.kept[0].user, "bob");
    assert_non_null(strstr(keeper.kept[0].frames, "{\"type\":\"call_ringing\",\"call_id\":\"k\"}"));
    assert_true(keeper.kept[0].offset == RECOVERY_MISSED);
    assert_int_equal(keeper.disturbances, 0);
}

static void where_only_the_store_knows_it_is_offered_all(void **state)
{
    struct office *office = *state;
    keeper.empty = false;
    delivery_send(&office->delivery, both, 2, &ringing, NULL);
    assert_int_equal(keeper.count, 2);
}

static void what_is_for_one_device_is_not_kept(void **state)
{
    struct office *office = *state;
    office->parked = keeper.expected = SLICE("alice");
    delivery_send_device(&office->delivery, SLICE("alice"), SLICE("phone"), &ringing);
    receive(office, office->payloads[0]);
    assert_int_equal(keeper.count, 0);
}

/* Kept by the sender and by the gateway it arrives at, it is one event. */
static void it_has_the_same_id_wherever_it_is_kept(void **state)
{
    struct office *office = *state;
    static const struct message *const messages[] = {&ringing, &chat_message};
    office->parked = keeper.expected = SLICE("alice");
    for (size_t i = 0; i < 2; i++) {
        keeper.count = office->published_count = 0;
        delivery_send(&office->delivery, both, 1, messages[i], NULL);
        receive(office, office->payloads[0]);
        assert_int_equal(keeper.count, 2);
        assert_true(keeper.kept[0].id != 0);
        assert_true(keeper.kept[0].id == keeper.kept[1].id);
    }
}

static void a_late_event_is_kept_where_it_arrives(void **state)
{
    struct office *office = *state;
    keeper.expected = SLICE("gone");
    receive(office, "{\"kind\":\"event\",\"users\":[\"alice\",\"gone\"],\"type\":\"call_ringing\","
                    "\"fields\":{\"call_id\":\"k\"},\"id\":\"00000000000000ff\"}");
    assert_int_equal(keeper.count, 1);
    assert_string_equal(keeper.kept[0].user, "gone");
    assert_true(keeper.kept[0].id == 0xff);
    assert_int_equal(office->alice_phone.got, 1);
}

static void without_routes_nothing_is_kept_and_the_store_told(void **state)
{
    struct office *office = *state;
    office->parked = SLICE("alice");
    office->store_is_down = true;
    delivery_send(&office->delivery, both, 2, &ringing, NULL);
    assert_int_equal(keeper.count, 0);
    assert_int_equal(keeper.disturbances, 1);
    delivery_disturbed(&office->delivery);
    assert_int_equal(keeper.disturbances, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, office_end)
    const struct CMUnitTest tests[] = {
        TEST(the_sender_keeps_an_event_for_those_the_routes_name),
        TEST(where_only_the_store_knows_it_is_offered_all),
        TEST(what_is_for_one_device_is_not_kept),
        TEST(it_has_the_same_id_wherever_it_is_kept),
        TEST(a_late_event_is_kept_where_it_arrives),
        TEST(without_routes_nothing_is_kept_and_the_store_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

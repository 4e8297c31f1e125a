/* Open chats and typing on virtual time, in a world of one real gateway. */
#include "typing/typing_plane.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TTL_MS = 5000, SECOND_MS = 1000 };

static struct world world;
static struct client alice, bob, carol;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_SETS("presence.max_open_chats=2", "timing.profile=relaxed"));
    fake_ledger_join(&world.ledger, "room", "alice");
    fake_ledger_join(&world.ledger, "room", "bob");
    fake_ledger_join(&world.ledger, "room", "carol");
    client_connect(&alice, &world, "alice");
    client_connect(&bob, &world, "bob");
    client_connect(&carol, &world, "carol");
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice, &bob, &carol));
    return 0;
}

static void say(struct client *client, const char *type, const char *chat)
{
    char json[256];
    snprintf(json, sizeof(json), "{\"type\":\"%s\",\"chat_id\":\"%s\"}", type, chat);
    client_send(client, json);
}

static void open_chat(struct client *client, const char *chat)
{
    say(client, "open_chat", chat);
    client_expect(client, "chat_snapshot");
}

static void expect_typing(struct client *client, const char *user, bool typing)
{
    client_expect_with(client, "typing_changed", "\"user_id\":\"%s\",\"typing\":%s", user,
                       typing ? "true" : "false");
}

static int64_t counted(enum metric metric)
{
    return world.metrics->values[metric];
}

/* What the ledger was told of a user is known everywhere, as after every change over REST. */
static void changed(const char *user)
{
    graph_reader_drop(&world.presence->graphs, slice_of(user));
}

/* ---- who sees it, and for how long ---- */

static void silence_ends_it_to_the_millisecond(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    world_advance(&world, TTL_MS - 1);
    client_expect_nothing(&bob);
    world_advance(&world, 1);
    expect_typing(&bob, "alice", false);
    client_expect_nothing(&alice);
    client_expect_nothing(&carol);
}

static void a_renewal_is_silent_and_lasts(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    for (int i = 0; i < 10; i++) {
        world_advance(&world, SECOND_MS);
        say(&alice, "typing_start", "room");
    }
    client_expect_nothing(&bob);
    world_advance(&world, TTL_MS - 1);
    client_expect_nothing(&bob);
    world_advance(&world, 1);
    expect_typing(&bob, "alice", false);
}

static void excess_is_told_once_until_one_is_taken(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    for (int series = 0; series < 2; series++) {
        for (int i = 0; i < 5; i++)
            say(&alice, "typing_start", "room");
        client_expect(&alice, "error");
        assert_true(client_has(&alice, "RATE_LIMITED"));
        assert_true(client_has(&alice, "\"retry_after_seconds\":1"));
        client_expect_nothing(&alice);
        world_advance(&world, SECOND_MS);
    }
    assert_int_equal(counted(METRIC_TYPING_UPDATES), 2);
    assert_int_equal(counted(METRIC_TYPING_LIMITED), 8);
}

static void a_stop_is_never_dropped(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    for (int i = 0; i < 300; i++) /* far beyond what commands are allowed */
        say(&alice, "typing_stop", "room");
    expect_typing(&bob, "alice", false);
    client_expect_nothing(&alice);
    client_expect_nothing(&bob);
}

/* The ledger takes its time to say whether alice is a member; by then she has stopped. */
static void a_stop_overtakes_a_start_that_is_still_checked(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    world.ledger.holding = true;
    client_send(&alice, "{\"type\":\"typing_start\",\"id\":1,\"chat_id\":\"room\"}");
    client_send(&alice, "{\"type\":\"typing_start\",\"id\":2,\"chat_id\":\"other\"}");
    say(&alice, "typing_stop", "room");
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger);
    client_expect_with(&alice, "ok", "\"id\":1");
    client_expect_with(&alice, "error", "\"id\":2"); /* that one was not taken back */
    client_expect_nothing(&bob);
    assert_int_equal(counted(METRIC_TYPING_UPDATES), 0);
}

/* A start that the store answers when the test says so. */
static struct {
    const struct typing_store_operations *sound;
    struct typing_store_operations slow;
    typing_start_done done;
    void *arg;
} slow_start;

static void note_answer(void *arg, enum state_status status, const struct typing_outcome *outcome)
{
    (void)arg;
    assert_int_equal(status, STATE_OK);
    assert_int_equal(outcome->result, TYPING_STARTED);
}

static void start_slowly(struct typing_store *store, struct slice chat_id, struct slice user_id,
                         const struct ulid *conn_id, typing_start_done done, void *arg)
{
    slow_start.done = done;
    slow_start.arg = arg;
    slow_start.sound->start(store, chat_id, user_id, conn_id, note_answer, NULL);
}

static void a_stop_overtakes_a_start_that_the_store_is_slow_to_take(void **unused)
{
    (void)unused;
    struct typing_store *store = world.handlers->typing->store;
    open_chat(&alice, "room");
    open_chat(&bob, "room");
    slow_start.sound = store->operations;
    slow_start.slow = *store->operations;
    slow_start.slow.start = start_slowly;
    store->operations = &slow_start.slow;
    say(&alice, "typing_start", "room");
    say(&alice, "typing_stop", "room");
    store->operations = slow_start.sound;
    slow_start.done(slow_start.arg, STATE_OK, &(struct typing_outcome){TYPING_STARTED, 0});
    client_expect_nothing(&bob);
    open_chat(&carol, "room");
    assert_true(client_has(&carol, "\"typing\":[]"));
}

static void a_start_is_answered_where_it_has_an_id(void **unused)
{
    (void)unused;
    client_send(&alice, "{\"type\":\"typing_start\",\"chat_id\":\"room\",\"id\":1}");
    client_expect(&alice, "ok");
    client_send(&alice, "{\"type\":\"typing_start\",\"chat_id\":\"nowhere\",\"id\":2}");
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "NOT_FOUND") && client_has(&alice, "\"id\":2"));
    world.ledger.failing = LEDGER_UNAVAILABLE;
    client_send(&alice, "{\"type\":\"typing_start\",\"chat_id\":\"other\",\"id\":3}");
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "SERVICE_UNAVAILABLE"));
}

/* ---- what ends it ---- */

static void a_device_that_leaves_ends_what_it_typed(void **unused)
{
    (void)unused;
    struct client *laptop = malloc(sizeof(*laptop));
    client_connect(laptop, &world, "alice");
    open_chat(&bob, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    world_advance(&world, SECOND_MS);
    say(laptop, "typing_start", "room");
    client_hang_up(&alice);
    client_expect_nothing(&bob); /* the other one types on */
    client_hang_up(laptop);
    expect_typing(&bob, "alice", false);
    free(laptop);
    client_connect(&alice, &world, "alice");
}

static void closing_ends_it(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    open_chat(&alice, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    say(&alice, "close_chat", "room");
    client_expect(&alice, "ok");
    expect_typing(&bob, "alice", false);
}

static void the_oldest_of_too_many_chats_is_ended(void **unused)
{
    (void)unused;
    char chat[16];
    open_chat(&bob, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    for (int i = 1; i <= TYPING_CHATS_PER_DEVICE_MAX; i++) {
        client_expect_nothing(&bob);
        snprintf(chat, sizeof(chat), "chat-%d", i);
        fake_ledger_join(&world.ledger, chat, "alice");
        say(&alice, "typing_start", chat);
    }
    expect_typing(&bob, "alice", false);
}

static void a_member_removed_loses_the_chat_and_stops_typing(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    open_chat(&carol, "room");
    say(&bob, "typing_start", "room");
    expect_typing(&carol, "bob", true);
    fake_ledger_leave(&world.ledger, "room", "bob");
    chat_publish_removal(world.handlers->chats, SLICE("room"), SLICE("bob"));
    expect_typing(&carol, "bob", false);
    client_expect(&bob, "chat_closed");
    say(&alice, "typing_start", "room");
    expect_typing(&carol, "alice", true);
    client_expect_nothing(&bob);
}

/* ---- opening ---- */

static void who_looks_again_hears_of_a_new_start(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    say(&bob, "close_chat", "room");
    client_expect(&bob, "ok");
    say(&alice, "typing_stop", "room"); /* nobody here hears that */
    open_chat(&bob, "room");
    world_advance(&world, SECOND_MS);
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    world_advance(&world, TTL_MS - 1);
    client_expect_nothing(&bob);
}

static void a_removal_while_opening_confirms_nothing(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    say(&bob, "open_chat", "room");
    chat_publish_removal(world.handlers->chats, SLICE("room"), SLICE("bob"));
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger); /* says: a member, as of before */
    client_expect(&bob, "error");
    assert_true(client_has(&bob, "FORBIDDEN"));
    assert_int_equal(counted(METRIC_CHATS_OPEN), 0);
    say(&alice, "typing_start", "room");
    client_expect_nothing(&bob);
}

static void nothing_is_told_before_membership_is_known(void **unused)
{
    (void)unused;
    open_chat(&carol, "room");
    world.ledger.holding = true;
    client_send(&bob, "{\"type\":\"open_chat\",\"chat_id\":\"room\"}");
    world.ledger.holding = false;
    say(&alice, "typing_start", "room");
    expect_typing(&carol, "alice", true);
    client_expect_nothing(&bob);
    fake_ledger_release_all(&world.ledger);
    client_expect(&bob, "chat_snapshot");
    assert_true(client_has(&bob, "\"typing\":[\"alice\"]"));
}

static void a_ledger_that_fails_leaves_the_chat_closed(void **unused)
{
    (void)unused;
    world.ledger.failing = LEDGER_UNAVAILABLE;
    say(&bob, "open_chat", "room");
    client_expect(&bob, "error");
    assert_true(client_has(&bob, "SERVICE_UNAVAILABLE"));
    assert_int_equal(counted(METRIC_CHATS_OPEN), 0);
    world.ledger.failing = LEDGER_OK;
    open_chat(&bob, "room");
    world.ledger.failing = LEDGER_UNAVAILABLE;
    say(&bob, "open_chat", "room"); /* one that is open stays so */
    client_expect(&bob, "error");
    assert_int_equal(counted(METRIC_CHATS_OPEN), 1);
}

static void leaving_while_opening_is_harmless(void **unused)
{
    (void)unused;
    for (size_t answers = 0; answers < 3; answers++) {
        world.ledger.holding = true;
        say(&bob, "open_chat", "room");
        for (size_t i = 0; i < answers && world.ledger.held; i++) {
            fake_ledger_release(&world.ledger);
            world_settle(&world);
        }
        client_hang_up(&bob);
        world_settle(&world);
        world.ledger.holding = false;
        fake_ledger_release_all(&world.ledger);
        world_settle(&world);
        assert_int_equal(counted(METRIC_CHATS_OPEN), 0);
        client_connect(&bob, &world, "bob");
    }
}

static void a_snapshot_knows_who_types_and_the_end_is_told(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "carol", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    changed("carol");
    say(&alice, "typing_start", "room");
    say(&bob, "typing_start", "room");
    say(&carol, "typing_start", "room");
    world_advance(&world, 2000);
    say(&bob, "open_chat", "room");
    client_expect(&bob, "chat_snapshot");
    assert_true(client_has(&bob, "\"typing\":[\"alice\"]"));
    world_advance(&world, TTL_MS - 2000 - 1);
    client_expect_nothing(&bob);
    world_advance(&world, 1);
    expect_typing(&bob, "alice", false);
    client_expect_nothing(&bob);
}

/* ---- privacy ---- */

static void typing_asks_the_privacy_engine(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "alice", LEDGER_VISIBLE_CONTACTS_ONLY, LEDGER_VISIBLE_EVERYONE);
    fake_ledger_befriend(&world.ledger, "carol", "alice");
    changed("alice");
    open_chat(&bob, "room");
    open_chat(&carol, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&carol, "alice", true);
    client_expect_nothing(&bob);
    say(&alice, "typing_stop", "room");
    expect_typing(&carol, "alice", false);
    client_expect_nothing(&bob);
}

static void the_blocked_see_nothing(void **unused)
{
    (void)unused;
    fake_ledger_block(&world.ledger, "alice", "bob");
    changed("alice");
    open_chat(&bob, "room");
    open_chat(&carol, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&carol, "alice", true);
    world_advance(&world, TTL_MS);
    expect_typing(&carol, "alice", false);
    client_expect_nothing(&bob);
}

static void without_an_answer_nobody_sees(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    open_chat(&alice, "room");
    changed("alice");
    world.ledger.failing = LEDGER_UNAVAILABLE;
    say(&alice, "typing_start", "room");
    client_expect_nothing(&bob);
    world_advance(&world, TTL_MS);
    client_expect_nothing(&bob);
}

/* Bob sees alice typing; then she blocks him. Carol, who saw it too, hears of no difference. */
static void a_block_ends_what_was_seen_with_the_next_renewal(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    open_chat(&carol, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    expect_typing(&carol, "alice", true);
    fake_ledger_block(&world.ledger, "alice", "bob");
    changed("alice");
    world_advance(&world, SECOND_MS);
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", false);
    say(&alice, "typing_stop", "room");
    expect_typing(&carol, "alice", false);
    client_expect_nothing(&bob);
    client_expect_nothing(&carol);
}

static void visibility_taken_in_the_chat_ends_it_at_once(void **unused)
{
    (void)unused;
    open_chat(&bob, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    fake_ledger_show(&world.ledger, "alice", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    changed("alice");
    chat_received(world.handlers->chats, CHAT_TOPIC_PRESENCE, SLICE("room"),
                  SLICE("{\"type\":\"presence_changed\",\"user_id\":\"alice\","
                        "\"status\":\"unknown\",\"reason\":\"privacy\",\"version\":0}"));
    client_expect(&bob, "presence_changed");
    expect_typing(&bob, "alice", false);
    world_advance(&world, SECOND_MS);
    say(&alice, "typing_start", "room");
    client_expect_nothing(&bob);
}

static void who_may_see_again_is_told_with_the_next_renewal(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "alice", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    changed("alice");
    open_chat(&bob, "room");
    say(&alice, "typing_start", "room");
    client_expect_nothing(&bob);
    fake_ledger_show(&world.ledger, "alice", LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_NOBODY);
    changed("alice");
    world_advance(&world, SECOND_MS);
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
}

/* ---- many at once ---- */

enum { CROWD = 60 };

static struct client *crowd_connect(void)
{
    struct client *crowd = calloc(CROWD, sizeof(*crowd));
    for (int i = 0; i < CROWD; i++) {
        char name[16];
        snprintf(name, sizeof(name), "crowd-%d", i);
        fake_ledger_join(&world.ledger, "room", name);
        client_connect(&crowd[i], &world, name);
    }
    return crowd;
}

static void crowd_leave(struct client *crowd)
{
    for (int i = 0; i < CROWD; i++)
        client_hang_up(&crowd[i]);
    free(crowd);
}

static size_t take_all(struct client *client)
{
    size_t count = 0;
    while (client_next(client) == CLIENT_TEXT)
        count++;
    return count;
}

static void a_crowd_costs_a_bounded_number_of_pushes(void **unused)
{
    (void)unused;
    struct client *crowd = crowd_connect();
    open_chat(&bob, "room");
    for (int i = 0; i < CROWD; i++)
        say(&crowd[i], "typing_start", "room");
    assert_int_equal(take_all(&bob), TYPING_VIEW_PUSHES_PER_TICK);
    for (int tick = 1; tick <= 3; tick++) {
        world_advance(&world, TYPING_VIEW_TICK_MS);
        assert_int_equal(take_all(&bob), TYPING_VIEW_PUSHES_PER_TICK);
    }
    size_t told = 4 * TYPING_VIEW_PUSHES_PER_TICK;
    for (int i = 0; i < CROWD; i++) /* those who were not shown yet cost nothing */
        say(&crowd[i], "typing_stop", "room");
    for (int tick = 1; tick <= 20; tick++) {
        world_advance(&world, TYPING_VIEW_TICK_MS);
        told += take_all(&bob);
    }
    assert_int_equal(told, 2 * 4 * TYPING_VIEW_PUSHES_PER_TICK);
    assert_int_equal(counted(METRIC_TYPING_COALESCED),
                     TYPING_VIEW_SHOWN_MAX - 4 * TYPING_VIEW_PUSHES_PER_TICK);
    crowd_leave(crowd);
}

static void one_who_flickers_is_told_as_it_stands(void **unused)
{
    (void)unused;
    struct client *crowd = crowd_connect();
    open_chat(&bob, "room");
    say(&alice, "typing_start", "room");
    expect_typing(&bob, "alice", true);
    world_advance(&world, 990);
    for (int i = 0; i < TYPING_VIEW_PUSHES_PER_TICK; i++) /* spend the budget */
        say(&crowd[i], "typing_start", "room");
    assert_int_equal(take_all(&bob), TYPING_VIEW_PUSHES_PER_TICK);
    say(&alice, "typing_stop", "room");
    world_advance(&world, 10);
    say(&alice, "typing_start", "room");
    world_advance(&world, TYPING_VIEW_TICK_MS);
    client_expect_nothing(&bob); /* alice types, as bob was told */
    crowd_leave(crowd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(silence_ends_it_to_the_millisecond),
        TEST(a_renewal_is_silent_and_lasts),
        TEST(excess_is_told_once_until_one_is_taken),
        TEST(a_stop_is_never_dropped),
        TEST(a_stop_overtakes_a_start_that_is_still_checked),
        TEST(a_stop_overtakes_a_start_that_the_store_is_slow_to_take),
        TEST(a_start_is_answered_where_it_has_an_id),
        TEST(a_device_that_leaves_ends_what_it_typed),
        TEST(closing_ends_it),
        TEST(the_oldest_of_too_many_chats_is_ended),
        TEST(a_member_removed_loses_the_chat_and_stops_typing),
        TEST(who_looks_again_hears_of_a_new_start),
        TEST(a_removal_while_opening_confirms_nothing),
        TEST(nothing_is_told_before_membership_is_known),
        TEST(a_ledger_that_fails_leaves_the_chat_closed),
        TEST(leaving_while_opening_is_harmless),
        TEST(a_snapshot_knows_who_types_and_the_end_is_told),
        TEST(typing_asks_the_privacy_engine),
        TEST(the_blocked_see_nothing),
        TEST(without_an_answer_nobody_sees),
        TEST(a_block_ends_what_was_seen_with_the_next_renewal),
        TEST(visibility_taken_in_the_chat_ends_it_at_once),
        TEST(who_may_see_again_is_told_with_the_next_renewal),
        TEST(a_crowd_costs_a_bounded_number_of_pushes),
        TEST(one_who_flickers_is_told_as_it_stands),
    };
    return cmocka_run_group_tests_name("typing", tests, NULL, NULL);
}

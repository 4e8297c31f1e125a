/* Open chats and typing in virtual time, with one real gateway. */
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
    fake_ledger_join(&world.ledger, "team", "alice");
    fake_ledger_join(&world.ledger, "team", "bob");
    fake_ledger_join(&world.ledger, "team", "carol");
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

static void send_command(struct client *client, const char *type, const char *chat)
{
    char json[256];
    snprintf(json, sizeof(json), "{\"type\":\"%s\",\"chat_id\":\"%s\"}", type, chat);
    client_send(client, json);
}

static void open_chat(struct client *client, const char *chat)
{
    send_command(client, "open_chat", chat);
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

/* Every change over REST drops the cached graph. */
static void drop_cached_graph(const char *user)
{
    graph_reader_drop(&world.presence->graphs, slice_of(user));
}

/* ---- viewers and duration ---- */

static void typing_ends_exactly_at_the_time_to_live(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    world_advance(&world, TTL_MS - 1);
    client_expect_nothing(&bob);
    world_advance(&world, 1);
    expect_typing(&bob, "alice", false);
    client_expect_nothing(&alice);
    client_expect_nothing(&carol);
}

static void a_renewal_extends_typing_silently(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    for (int i = 0; i < 10; i++) {
        world_advance(&world, SECOND_MS);
        send_command(&alice, "typing_start", "team");
    }
    client_expect_nothing(&bob);
    world_advance(&world, TTL_MS - 1);
    client_expect_nothing(&bob);
    world_advance(&world, 1);
    expect_typing(&bob, "alice", false);
}

static void excess_updates_are_refused_once_until_one_is_accepted(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    for (int series = 0; series < 2; series++) {
        for (int i = 0; i < 5; i++)
            send_command(&alice, "typing_start", "team");
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
    open_chat(&bob, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    for (int i = 0; i < 300; i++) /* far beyond the rate limit of commands */
        send_command(&alice, "typing_stop", "team");
    expect_typing(&bob, "alice", false);
    client_expect_nothing(&alice);
    client_expect_nothing(&bob);
}

/* The ledger answers late whether alice is a member; by then she has stopped. */
static void a_stop_cancels_a_start_whose_membership_is_pending(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    world.ledger.holding = true;
    client_send(&alice, "{\"type\":\"typing_start\",\"id\":1,\"chat_id\":\"team\"}");
    client_send(&alice, "{\"type\":\"typing_start\",\"id\":2,\"chat_id\":\"other\"}");
    send_command(&alice, "typing_stop", "team");
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger);
    client_expect_with(&alice, "ok", "\"id\":1");
    client_expect_with(&alice, "error", "\"id\":2"); /* this one was not cancelled */
    client_expect_nothing(&bob);
    assert_int_equal(counted(METRIC_TYPING_UPDATES), 0);
}

/* Holds the store's answer to a start until the test releases it. */
static struct {
    const struct typing_store_operations *real;
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
    slow_start.real->start(store, chat_id, user_id, conn_id, note_answer, NULL);
}

static void a_stop_cancels_a_start_that_the_store_answers_late(void **unused)
{
    (void)unused;
    struct typing_store *store = world.sessions->typing->store;
    open_chat(&alice, "team");
    open_chat(&bob, "team");
    slow_start.real = store->operations;
    slow_start.slow = *store->operations;
    slow_start.slow.start = start_slowly;
    store->operations = &slow_start.slow;
    send_command(&alice, "typing_start", "team");
    send_command(&alice, "typing_stop", "team");
    store->operations = slow_start.real;
    slow_start.done(slow_start.arg, STATE_OK, &(struct typing_outcome){TYPING_STARTED, 0});
    client_expect_nothing(&bob);
    open_chat(&carol, "team");
    assert_true(client_has(&carol, "\"typing\":[]"));
}

static void a_start_with_an_id_is_answered(void **unused)
{
    (void)unused;
    client_send(&alice, "{\"type\":\"typing_start\",\"chat_id\":\"team\",\"id\":1}");
    client_expect(&alice, "ok");
    client_send(&alice, "{\"type\":\"typing_start\",\"chat_id\":\"nowhere\",\"id\":2}");
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "NOT_FOUND") && client_has(&alice, "\"id\":2"));
    world.ledger.failing = LEDGER_UNAVAILABLE;
    client_send(&alice, "{\"type\":\"typing_start\",\"chat_id\":\"other\",\"id\":3}");
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "SERVICE_UNAVAILABLE"));
}

/* ---- the end of typing ---- */

static void a_device_that_leaves_stops_typing(void **unused)
{
    (void)unused;
    struct client *laptop = malloc(sizeof(*laptop));
    client_connect(laptop, &world, "alice");
    open_chat(&bob, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    world_advance(&world, SECOND_MS);
    send_command(laptop, "typing_start", "team");
    client_hang_up(&alice);
    client_expect_nothing(&bob); /* the other device still types */
    client_hang_up(laptop);
    expect_typing(&bob, "alice", false);
    free(laptop);
    client_connect(&alice, &world, "alice");
}

static void closing_the_chat_ends_typing(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    open_chat(&alice, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    send_command(&alice, "close_chat", "team");
    client_expect(&alice, "ok");
    expect_typing(&bob, "alice", false);
}

static void typing_in_too_many_chats_ends_the_oldest(void **unused)
{
    (void)unused;
    char chat[16];
    open_chat(&bob, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    for (int i = 1; i <= TYPING_CHATS_PER_DEVICE_MAX; i++) {
        client_expect_nothing(&bob);
        snprintf(chat, sizeof(chat), "chat-%d", i);
        fake_ledger_join(&world.ledger, chat, "alice");
        send_command(&alice, "typing_start", chat);
    }
    expect_typing(&bob, "alice", false);
}

static void a_removed_member_loses_the_chat_and_stops_typing(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    open_chat(&carol, "team");
    send_command(&bob, "typing_start", "team");
    expect_typing(&carol, "bob", true);
    fake_ledger_leave(&world.ledger, "team", "bob");
    chat_publish_removal(world.sessions->chats, SLICE("team"), SLICE("bob"));
    expect_typing(&carol, "bob", false);
    client_expect(&bob, "chat_closed");
    send_command(&alice, "typing_start", "team");
    expect_typing(&carol, "alice", true);
    client_expect_nothing(&bob);
}

/* ---- opening ---- */

static void reopening_a_chat_shows_a_new_start(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    send_command(&bob, "close_chat", "team");
    client_expect(&bob, "ok");
    send_command(&alice, "typing_stop", "team"); /* no gateway with the chat open receives it */
    open_chat(&bob, "team");
    world_advance(&world, SECOND_MS);
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    world_advance(&world, TTL_MS - 1);
    client_expect_nothing(&bob);
}

static void a_removal_while_opening_closes_the_chat(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    send_command(&bob, "open_chat", "team");
    chat_publish_removal(world.sessions->chats, SLICE("team"), SLICE("bob"));
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger); /* the answer is from before the removal */
    client_expect(&bob, "error");
    assert_true(client_has(&bob, "NOT_FOUND"));
    assert_int_equal(counted(METRIC_CHATS_OPEN), 0);
    send_command(&alice, "typing_start", "team");
    client_expect_nothing(&bob);
}

static void no_event_before_membership_is_confirmed(void **unused)
{
    (void)unused;
    open_chat(&carol, "team");
    world.ledger.holding = true;
    client_send(&bob, "{\"type\":\"open_chat\",\"chat_id\":\"team\"}");
    world.ledger.holding = false;
    send_command(&alice, "typing_start", "team");
    expect_typing(&carol, "alice", true);
    client_expect_nothing(&bob);
    fake_ledger_release_all(&world.ledger);
    client_expect(&bob, "chat_snapshot");
    assert_true(client_has(&bob, "\"typing\":[\"alice\"]"));
}

static void a_failing_ledger_leaves_the_chat_closed(void **unused)
{
    (void)unused;
    world.ledger.failing = LEDGER_UNAVAILABLE;
    send_command(&bob, "open_chat", "team");
    client_expect(&bob, "error");
    assert_true(client_has(&bob, "SERVICE_UNAVAILABLE"));
    assert_int_equal(counted(METRIC_CHATS_OPEN), 0);
    world.ledger.failing = LEDGER_OK;
    open_chat(&bob, "team");
    world.ledger.failing = LEDGER_UNAVAILABLE;
    send_command(&bob, "open_chat", "team"); /* an open chat stays open */
    client_expect(&bob, "error");
    assert_int_equal(counted(METRIC_CHATS_OPEN), 1);
}

static void leaving_while_opening_leaves_no_open_chat(void **unused)
{
    (void)unused;
    for (size_t answers = 0; answers < 3; answers++) {
        world.ledger.holding = true;
        send_command(&bob, "open_chat", "team");
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

static void a_snapshot_shows_who_types_and_the_end_follows(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "carol", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    drop_cached_graph("carol");
    send_command(&alice, "typing_start", "team");
    send_command(&bob, "typing_start", "team");
    send_command(&carol, "typing_start", "team");
    world_advance(&world, 2000);
    send_command(&bob, "open_chat", "team");
    client_expect(&bob, "chat_snapshot");
    assert_true(client_has(&bob, "\"typing\":[\"alice\"]"));
    world_advance(&world, TTL_MS - 2000 - 1);
    client_expect_nothing(&bob);
    world_advance(&world, 1);
    expect_typing(&bob, "alice", false);
    client_expect_nothing(&bob);
}

/* ---- privacy ---- */

static void members_who_are_no_contacts_see_typing(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "alice", LEDGER_VISIBLE_CONTACTS_ONLY, LEDGER_VISIBLE_EVERYONE);
    fake_ledger_befriend(&world.ledger, "carol", "alice");
    drop_cached_graph("alice");
    open_chat(&bob, "team");
    open_chat(&carol, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&carol, "alice", true);
    expect_typing(&bob, "alice", true);
    send_command(&alice, "typing_stop", "team");
    expect_typing(&carol, "alice", false);
    expect_typing(&bob, "alice", false);
}

static void typing_of_a_user_who_shows_presence_to_nobody_is_hidden(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "alice", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_EVERYONE);
    fake_ledger_befriend(&world.ledger, "carol", "alice");
    drop_cached_graph("alice");
    open_chat(&carol, "team");
    send_command(&alice, "typing_start", "team");
    client_expect_nothing(&carol);
}

static void viewers_see_no_typing_of_users_they_blocked(void **unused)
{
    (void)unused;
    fake_ledger_block(&world.ledger, "bob", "alice");
    drop_cached_graph("alice");
    open_chat(&bob, "team");
    open_chat(&carol, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&carol, "alice", true);
    client_expect_nothing(&bob);
}

static void blocked_viewers_see_no_typing(void **unused)
{
    (void)unused;
    fake_ledger_block(&world.ledger, "alice", "bob");
    drop_cached_graph("alice");
    open_chat(&bob, "team");
    open_chat(&carol, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&carol, "alice", true);
    world_advance(&world, TTL_MS);
    expect_typing(&carol, "alice", false);
    client_expect_nothing(&bob);
}

static void without_a_visibility_nobody_sees_typing(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    open_chat(&alice, "team");
    drop_cached_graph("alice");
    world.ledger.failing = LEDGER_UNAVAILABLE;
    send_command(&alice, "typing_start", "team");
    client_expect_nothing(&bob);
    world_advance(&world, TTL_MS);
    client_expect_nothing(&bob);
}

/* Bob sees alice typing; then she blocks him. For carol, who saw it too, nothing changes. */
static void a_block_ends_shown_typing_with_the_next_renewal(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    open_chat(&carol, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    expect_typing(&carol, "alice", true);
    fake_ledger_block(&world.ledger, "alice", "bob");
    drop_cached_graph("alice");
    world_advance(&world, SECOND_MS);
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", false);
    send_command(&alice, "typing_stop", "team");
    expect_typing(&carol, "alice", false);
    client_expect_nothing(&bob);
    client_expect_nothing(&carol);
}

static void lost_visibility_ends_shown_typing_at_once(void **unused)
{
    (void)unused;
    open_chat(&bob, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    fake_ledger_show(&world.ledger, "alice", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    drop_cached_graph("alice");
    chat_received(world.sessions->chats, CHAT_TOPIC_PRESENCE, SLICE("team"),
                  SLICE("{\"type\":\"presence_changed\",\"user_id\":\"alice\","
                        "\"status\":\"unknown\",\"reason\":\"privacy\",\"version\":0}"));
    client_expect(&bob, "presence_changed");
    expect_typing(&bob, "alice", false);
    world_advance(&world, SECOND_MS);
    send_command(&alice, "typing_start", "team");
    client_expect_nothing(&bob);
}

static void regained_visibility_shows_typing_with_the_next_renewal(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "alice", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    drop_cached_graph("alice");
    open_chat(&bob, "team");
    send_command(&alice, "typing_start", "team");
    client_expect_nothing(&bob);
    fake_ledger_show(&world.ledger, "alice", LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_NOBODY);
    drop_cached_graph("alice");
    world_advance(&world, SECOND_MS);
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
}

/* ---- many typers ---- */

enum { CROWD = 60 };

static struct client *crowd_connect(void)
{
    struct client *crowd = calloc(CROWD, sizeof(*crowd));
    for (int i = 0; i < CROWD; i++) {
        char name[16];
        snprintf(name, sizeof(name), "crowd-%d", i);
        fake_ledger_join(&world.ledger, "team", name);
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

static void many_typers_cost_a_bounded_number_of_pushes(void **unused)
{
    (void)unused;
    struct client *crowd = crowd_connect();
    open_chat(&bob, "team");
    for (int i = 0; i < CROWD; i++)
        send_command(&crowd[i], "typing_start", "team");
    assert_int_equal(take_all(&bob), TYPING_VIEW_PUSHES_PER_PERIOD);
    for (int period = 1; period <= 3; period++) {
        world_advance(&world, TYPING_VIEW_PERIOD_MS);
        assert_int_equal(take_all(&bob), TYPING_VIEW_PUSHES_PER_PERIOD);
    }
    size_t told = 4 * TYPING_VIEW_PUSHES_PER_PERIOD;
    for (int i = 0; i < CROWD; i++) /* typers who were not shown yet cost nothing */
        send_command(&crowd[i], "typing_stop", "team");
    for (int period = 1; period <= 20; period++) {
        world_advance(&world, TYPING_VIEW_PERIOD_MS);
        told += take_all(&bob);
    }
    assert_int_equal(told, 2 * 4 * TYPING_VIEW_PUSHES_PER_PERIOD);
    assert_int_equal(counted(METRIC_TYPING_COALESCED),
                     TYPING_VIEW_SHOWN_MAX - 4 * TYPING_VIEW_PUSHES_PER_PERIOD);
    crowd_leave(crowd);
}

static void quick_changes_are_coalesced_to_the_latest_state(void **unused)
{
    (void)unused;
    struct client *crowd = crowd_connect();
    open_chat(&bob, "team");
    send_command(&alice, "typing_start", "team");
    expect_typing(&bob, "alice", true);
    world_advance(&world, 990);
    for (int i = 0; i < TYPING_VIEW_PUSHES_PER_PERIOD; i++) /* spend the budget */
        send_command(&crowd[i], "typing_start", "team");
    assert_int_equal(take_all(&bob), TYPING_VIEW_PUSHES_PER_PERIOD);
    send_command(&alice, "typing_stop", "team");
    world_advance(&world, 10);
    send_command(&alice, "typing_start", "team");
    world_advance(&world, TYPING_VIEW_PERIOD_MS);
    client_expect_nothing(&bob); /* alice types, and bob was told so */
    crowd_leave(crowd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(typing_ends_exactly_at_the_time_to_live),
        TEST(a_renewal_extends_typing_silently),
        TEST(excess_updates_are_refused_once_until_one_is_accepted),
        TEST(a_stop_is_never_dropped),
        TEST(a_stop_cancels_a_start_whose_membership_is_pending),
        TEST(a_stop_cancels_a_start_that_the_store_answers_late),
        TEST(a_start_with_an_id_is_answered),
        TEST(a_device_that_leaves_stops_typing),
        TEST(closing_the_chat_ends_typing),
        TEST(typing_in_too_many_chats_ends_the_oldest),
        TEST(a_removed_member_loses_the_chat_and_stops_typing),
        TEST(reopening_a_chat_shows_a_new_start),
        TEST(a_removal_while_opening_closes_the_chat),
        TEST(no_event_before_membership_is_confirmed),
        TEST(a_failing_ledger_leaves_the_chat_closed),
        TEST(leaving_while_opening_leaves_no_open_chat),
        TEST(a_snapshot_shows_who_types_and_the_end_follows),
        TEST(members_who_are_no_contacts_see_typing),
        TEST(typing_of_a_user_who_shows_presence_to_nobody_is_hidden),
        TEST(viewers_see_no_typing_of_users_they_blocked),
        TEST(blocked_viewers_see_no_typing),
        TEST(without_a_visibility_nobody_sees_typing),
        TEST(a_block_ends_shown_typing_with_the_next_renewal),
        TEST(lost_visibility_ends_shown_typing_at_once),
        TEST(regained_visibility_shows_typing_with_the_next_renewal),
        TEST(many_typers_cost_a_bounded_number_of_pushes),
        TEST(quick_changes_are_coalesced_to_the_latest_state),
    };
    return cmocka_run_group_tests_name("typing", tests, NULL, NULL);
}

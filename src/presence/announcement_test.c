/* Socket.IO clients get an announcement for each change source; native clients get only the change. */
#include "presence/announcement.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct world world;
static struct client alice, bob, carol;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    fake_ledger_befriend(&world.ledger, "alice", "bob");
    fake_ledger_show(&world.ledger, "bob", LEDGER_VISIBLE_CONTACTS_ONLY, LEDGER_VISIBLE_EVERYONE);
    fake_ledger_join(&world.ledger, "team", "alice");
    fake_ledger_join(&world.ledger, "team", "bob");
    fake_ledger_join(&world.ledger, "hall", "alice");
    fake_ledger_join(&world.ledger, "hall", "bob");
    fake_ledger_join(&world.ledger, "team", "carol");
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    world_close(&world);
    return 0;
}

static void open_chat(struct client *client, const char *chat)
{
    char packet[128];
    snprintf(packet, sizeof(packet), "420[\"open_chat\",{\"chat_id\":\"%s\"}]", chat);
    client_send(client, packet);
    assert_int_equal(client_next(client), CLIENT_TEXT);
    assert_true(client_has(client, "chat_snapshot"));
}

static void contacts_get_announcements_of_online_calls_and_offline(void **unused)
{
    (void)unused;
    client_connect_socketio(&alice, &world, "alice");
    client_connect(&bob, &world, "bob");
    assert_string_equal(client_event_names(&alice), "friend_online presence_changed ");
    client_send(&bob, "{\"type\":\"heartbeat\",\"active\":false}");
    assert_string_equal(client_event_names(&alice),
                        "presence_changed "); /* going idle announces nothing */
    client_send(&bob, "{\"type\":\"heartbeat\",\"active\":true}");
    assert_string_equal(client_event_names(&alice), "presence_changed ");
    client_hang_up(&bob);
    assert_string_equal(client_event_names(&alice), "friend_offline presence_changed ");
    client_connect_socketio(&bob, &world, "bob");
    client_event_names(&alice);
    client_send(&bob, "42[\"call:start\"]");
    assert_string_equal(client_event_names(&alice), "friend_in_call presence_changed ");
    client_send(&bob, "42[\"call:end\"]");
    assert_string_equal(client_event_names(&alice), "friend_out_of_call presence_changed ");
    client_hang_up(&bob);
    client_hang_up(&alice);
}

static void a_second_device_of_an_away_user_announces_nothing(void **unused)
{
    (void)unused;
    client_connect_socketio(&alice, &world, "alice");
    client_connect(&bob, &world, "bob");
    client_send(&bob, "{\"type\":\"heartbeat\",\"active\":false}");
    client_event_names(&alice);
    client_connect(&carol, &world, "bob");
    assert_string_equal(client_event_names(&alice), "presence_changed ");
    client_hang_up(&carol);
    client_hang_up(&bob);
    client_hang_up(&alice);
}

static void chat_members_get_online_and_offline_once(void **unused)
{
    (void)unused;
    client_connect_socketio(&alice, &world, "alice");
    open_chat(&alice, "team");
    open_chat(&alice, "hall");
    client_connect(&bob, &world, "bob");
    assert_string_equal(client_event_names(&alice), "friend_online USER_ONLINE presence_changed ");
    client_hang_up(&bob);
    assert_string_equal(client_event_names(&alice),
                        "friend_offline USER_OFFLINE presence_changed ");
    client_hang_up(&alice);
}

static void contact_and_chat_as_sources_make_one_chat_event(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "bob", LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_EVERYONE);
    chat_members_get_online_and_offline_once(unused);
}

static void other_members_get_announcements_of_a_user_visible_to_everybody(void **unused)
{
    (void)unused;
    client_connect_socketio(&carol, &world, "carol");
    open_chat(&carol, "team");
    client_connect(&bob, &world, "bob");
    assert_string_equal(client_event_names(&carol), "");
    client_hang_up(&bob);
    fake_ledger_show(&world.ledger, "bob", LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_EVERYONE);
    graph_reader_drop(&world.presence->graphs, SLICE("bob"));
    client_connect(&bob, &world, "bob");
    assert_string_equal(client_event_names(&carol), "USER_ONLINE presence_changed ");
    client_hang_up(&bob);
    assert_string_equal(client_event_names(&carol), "USER_OFFLINE presence_changed ");
    client_hang_up(&carol);
}

static void a_subscriber_who_is_a_contact_gets_the_contact_event_too(void **unused)
{
    (void)unused;
    client_connect_socketio(&alice, &world, "alice");
    client_send(&alice, "420[\"subscribe_presence\",{\"user_ids\":[\"bob\"]}]");
    assert_int_equal(client_next(&alice), CLIENT_TEXT);
    client_connect(&bob, &world, "bob");
    assert_string_equal(client_event_names(&alice), "presence_changed friend_online ");
    client_hang_up(&bob);
    client_hang_up(&alice);
}

static void native_clients_get_only_the_change(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    client_connect_socketio(&bob, &world, "bob");
    client_expect(&alice, "presence_changed");
    client_expect_nothing(&alice);
    client_hang_up(&bob);
    client_expect(&alice, "presence_changed");
    client_expect_nothing(&alice);
    client_hang_up(&alice);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(contacts_get_announcements_of_online_calls_and_offline),
        TEST(a_second_device_of_an_away_user_announces_nothing),
        TEST(chat_members_get_online_and_offline_once),
        TEST(contact_and_chat_as_sources_make_one_chat_event),
        TEST(other_members_get_announcements_of_a_user_visible_to_everybody),
        TEST(a_subscriber_who_is_a_contact_gets_the_contact_event_too),
        TEST(native_clients_get_only_the_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

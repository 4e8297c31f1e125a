/* What a chat's snapshot shows, and what it must not: who of those that are hidden types. */
#include "session/chat_commands.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { CROWD = 110, SHOWN = 100 };

static struct world world;
static struct client alice, zoe;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    client_connect(&alice, &world, "alice");
    client_connect(&zoe, &world, "zoe");
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice, &zoe));
    return 0;
}

/* Alice, so many in the middle, and zoe, who comes last by id and types. */
static void make_room(unsigned others)
{
    fake_ledger_join(&world.ledger, "room", "alice");
    for (unsigned i = 0; i < others; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%03u", i);
        fake_ledger_join(&world.ledger, "room", name);
    }
    fake_ledger_join(&world.ledger, "room", "zoe");
    client_send(&zoe, "{\"type\":\"typing_start\",\"chat_id\":\"room\"}");
}

static const char *place_of(const char *user)
{
    char member[64];
    snprintf(member, sizeof(member), "{\"user_id\":\"%s\"", user);
    return strstr(alice.text, member);
}

static size_t count_presences(void)
{
    size_t count = 0;
    for (const char *at = alice.text; (at = strstr(at, "{\"user_id\":")); at++)
        count++;
    return count;
}

static void open_room(void)
{
    client_send(&alice, "{\"type\":\"open_chat\",\"chat_id\":\"room\"}");
    client_expect(&alice, "chat_snapshot");
}

static void who_is_seen_typing_comes_first(void **unused)
{
    (void)unused;
    make_room(CROWD);
    open_room();
    assert_true(client_has(&alice, "\"typing\":[\"zoe\"]"));
    assert_non_null(place_of("zoe"));
    assert_true(place_of("zoe") < place_of("alice"));
    assert_true(place_of("alice") < place_of("m000"));
    assert_int_equal(count_presences(), SHOWN);
}

static void who_is_hidden_keeps_their_place(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "zoe", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    make_room(2);
    open_room();
    assert_true(client_has(&alice, "\"typing\":[]"));
    assert_non_null(place_of("zoe"));
    assert_true(place_of("zoe") > place_of("m001"));
    assert_int_equal(count_presences(), 4);
}

static void who_is_hidden_is_not_in_sight_for_typing(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "zoe", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    make_room(CROWD);
    open_room();
    assert_null(place_of("zoe"));
    assert_int_equal(count_presences(), SHOWN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(who_is_seen_typing_comes_first),
        TEST(who_is_hidden_keeps_their_place),
        TEST(who_is_hidden_is_not_in_sight_for_typing),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}

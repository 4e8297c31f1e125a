/* What a chat snapshot shows, and that it does not reveal which hidden users are typing. */
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

/* Makes a chat of alice, `others` more, and zoe, who is last by id and types. */
static void make_chat(unsigned others)
{
    fake_ledger_join(&world.ledger, "chat", "alice");
    for (unsigned i = 0; i < others; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%03u", i);
        fake_ledger_join(&world.ledger, "chat", name);
    }
    fake_ledger_join(&world.ledger, "chat", "zoe");
    client_send(&zoe, "{\"type\":\"typing_start\",\"chat_id\":\"chat\"}");
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

static void open_chat(void)
{
    client_send(&alice, "{\"type\":\"open_chat\",\"chat_id\":\"chat\"}");
    client_expect(&alice, "chat_snapshot");
}

static void visible_typing_user_comes_first(void **unused)
{
    (void)unused;
    make_chat(CROWD);
    open_chat();
    assert_true(client_has(&alice, "\"typing\":[\"zoe\"]"));
    assert_non_null(place_of("zoe"));
    assert_true(place_of("zoe") < place_of("alice"));
    assert_true(place_of("alice") < place_of("m000"));
    assert_int_equal(count_presences(), SHOWN);
}

static void hidden_typing_user_keeps_the_place_by_id(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "zoe", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    make_chat(2);
    open_chat();
    assert_true(client_has(&alice, "\"typing\":[]"));
    assert_non_null(place_of("zoe"));
    assert_true(place_of("zoe") > place_of("m001"));
    assert_int_equal(count_presences(), 4);
}

static void hidden_typing_user_is_not_listed_as_typing(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "zoe", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    make_chat(CROWD);
    open_chat();
    assert_null(place_of("zoe"));
    assert_int_equal(count_presences(), SHOWN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(visible_typing_user_comes_first),
        TEST(hidden_typing_user_keeps_the_place_by_id),
        TEST(hidden_typing_user_is_not_listed_as_typing),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}

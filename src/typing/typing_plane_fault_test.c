/* Typing while memory runs out: an update may be lost, nobody is shown as typing forever, nothing leaks. */
#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { TTL_MS = 5000, ALLOCATIONS_MAX = 200 };

static struct world world;
static struct client alice, bob;

static void connect_bob(void)
{
    client_connect(&bob, &world, "bob");
    client_send(&bob, "{\"type\":\"open_chat\",\"chat_id\":\"team\"}");
    client_expect(&bob, "chat_snapshot");
}

/* Returns whether bob sees alice typing after all messages that came. His connection is closed if there was no
 * memory for a message; he connects again then. */
static bool sees_typing(bool before)
{
    while (client_next(&bob) == CLIENT_TEXT)
        if (client_has(&bob, "\"type\":\"typing_changed\"")) {
            before = client_has(&bob, "\"typing\":true");
        } else if (client_has(&bob, "memory_pressure")) {
            client_hang_up(&bob);
            connect_bob();
            return client_has(&bob, "\"typing\":[\"alice\"]");
        }
    return before;
}

static void typing_ends_at_its_time_to_live_after_any_failed_allocation(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_SETS("timing.profile=relaxed"));
    fake_ledger_join(&world.ledger, "team", "alice");
    fake_ledger_join(&world.ledger, "team", "bob");
    client_connect(&alice, &world, "alice");
    connect_bob();
    client_send(&alice, "{\"type\":\"open_chat\",\"chat_id\":\"team\"}");
    bool seen = false;
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        assert_true(n < ALLOCATIONS_MAX);
        alloc_fault_after(n);
        client_send(&alice, "{\"type\":\"typing_start\",\"chat_id\":\"team\"}");
        failed = alloc_fault_off();
        seen = sees_typing(seen);
        assert_true(failed > 0 || seen);
        world_advance(&world, TTL_MS);
        seen = sees_typing(seen);
        assert_false(seen);
    }
    client_hang_up(&alice);
    client_hang_up(&bob);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typing_ends_at_its_time_to_live_after_any_failed_allocation),
    };
    return cmocka_run_group_tests_name("typing_fault", tests, NULL, NULL);
}

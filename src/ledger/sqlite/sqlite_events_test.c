/* What only SQLite promises of queues of events: their bound, and that they are still there after a restart. */
#include "conformance/ledger_harness.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger/sqlite/sqlite_test_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define expect(answer, text) assert_string_equal(answer, text)

static struct ledger *open_events_ledger(const struct test_file *file)
{
    struct sqlite_ledger_error error;
    struct ledger *ledger = sqlite_ledger_open(file->path, NULL, &error);
    if (!ledger)
        fail_msg("%s", error.text);
    return ledger;
}

static void beyond_the_bound_the_oldest_events_give_way_and_are_counted(void **state)
{
    (void)state;
    static const struct ledger_event_queue queue = {{"q", 1}, 1 << LEDGER_EVENT_MESSAGE_CREATED, 3};
    struct test_file file;
    struct harness h;
    test_file_make(&file);
    struct ledger *ledger = open_events_ledger(&file);
    harness_init(&h, ledger);
    h.client.event_queues = &queue;
    h.client.event_queue_count = 1;
    harness_chat_create(&h, "c", "alice", "bob");
    for (int i = 1; i <= 5; i++) {
        char id[] = {(char)('0' + i), '\0'};
        h.clock.wall_ms = 6000 + i;
        harness_send(&h, "c", "alice", id, "text");
    }
    expect(harness_events(&h, "q", 0),
           "ok message.created@6003:c message.created@6004:c message.created@6005:c");
    harness_event_queue(&h, "q");
    assert_int_equal(h.queue_count, 3);
    assert_int_equal(h.queue_dropped, 2);
    harness_events_remove(&h, "q", 0, 1);
    harness_event_queue(&h, "q");
    assert_int_equal(h.queue_count, 2);
    ledger_close(&ledger);
    harness_free(&h);

    ledger = open_events_ledger(&file);
    harness_init(&h, ledger);
    expect(harness_events(&h, "q", 0), "ok message.created@6004:c message.created@6005:c");
    harness_event_queue(&h, "q");
    assert_int_equal(h.queue_count, 2);
    assert_int_equal(h.queue_dropped, 2);
    ledger_close(&ledger);
    harness_free(&h);
    test_file_remove(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beyond_the_bound_the_oldest_events_give_way_and_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

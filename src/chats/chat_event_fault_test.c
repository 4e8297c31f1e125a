/* Reading a chat event while memory runs out. */
#include "chats/chat_event.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void an_event_is_read_completely_or_not_at_all(void **unused)
{
    (void)unused;
    static const char TEXT[] =
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"away\",\"except\":["
        "\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\",\"13\",\"14\","
        "\"15\",\"16\",\"17\"]}";
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        struct chat_event event;
        alloc_fault_after(n);
        bool read = chat_event_parse(slice_of(TEXT), &event);
        failed = alloc_fault_off();
        assert_int_equal(read, failed == 0);
        if (read)
            assert_int_equal(event.except.count, 17);
        if (read)
            chat_event_free(&event);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_read_completely_or_not_at_all),
    };
    return cmocka_run_group_tests_name("chat_event_fault", tests, NULL, NULL);
}

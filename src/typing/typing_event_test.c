/* Typing events between gateways: written, read back, and invalid ones. */
#include "typing/typing_event.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_event(const char *text, size_t len)
{
    struct typing_event event;
    char *copy = exact_copy((struct slice){text, len});
    bool parsed = typing_event_parse(copy, len, &event);
    free(copy);
    return parsed;
}

static void a_written_event_is_read_back(void **unused)
{
    (void)unused;
    struct buffer out = BUFFER_INIT;
    struct typing_event event;
    typing_event_write(&out, SLICE("a\"b"), SLICE("al\nice"), true, 1700000000123);
    assert_true(typing_event_parse(out.data, out.len, &event));
    assert_true(slice_is(event.user_id, "al\nice"));
    assert_true(event.typing);
    assert_int_equal(event.timestamp_ms, 1700000000123);
    buffer_free(&out);
}

static void an_invalid_event_is_refused(void **unused)
{
    (void)unused;
    static const char *const TEXTS[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"type\":\"typing_changed\"}",
        "{\"type\":\"typing_changed\",\"user_id\":\"\",\"typing\":true}",
        "{\"type\":\"typing_changed\",\"user_id\":7,\"typing\":true}",
        "{\"type\":\"typing_changed\",\"user_id\":\"a\",\"typing\":1}",
        "{\"type\":\"typing_changed\",\"user_id\":\"a\",\"typing\":true} ,",
        "{\"type\":\"member_removed\",\"user_id\":\"a\"}",
        "{\"user_id\":\"a\"}",
    };
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++)
        if (is_event(TEXTS[i], strlen(TEXTS[i])))
            fail_msg("%s is accepted as an event", TEXTS[i]);
}

static void a_cut_event_is_refused(void **unused)
{
    (void)unused;
    static const char TEXT[] = "{\"type\":\"typing_changed\",\"chat_id\":\"c\",\"user_id\":\"a\","
                               "\"typing\":true,\"timestamp\":\"2026-01-31T10:00:00.000Z\"}";
    for (size_t len = 0; len < sizeof(TEXT) - 1; len++)
        assert_false(is_event(TEXT, len));
    assert_true(is_event(TEXT, sizeof(TEXT) - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_event_is_read_back),
        cmocka_unit_test(an_invalid_event_is_refused),
        cmocka_unit_test(a_cut_event_is_refused),
    };
    return cmocka_run_group_tests_name("typing_event", tests, NULL, NULL);
}

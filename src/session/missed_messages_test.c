#include "session/missed_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void note(struct missed_messages **missed, const char *chat, int64_t sequence)
{
    missed_messages_note(missed, slice_of(chat), sequence);
}

static void first_missed_message_of_each_chat_is_noted(void **state)
{
    (void)state;
    struct missed_messages *missed = NULL;
    const struct sync_point *points;
    assert_int_equal(missed_messages_points(missed, &points), 0);
    note(&missed, "a", 7);
    note(&missed, "b", 3);
    note(&missed, "a", 8);
    note(&missed, "b", 2);
    assert_int_equal(missed_messages_points(missed, &points), 2);
    assert_true(slice_is(points[0].chat_id, "a"));
    assert_int_equal(points[0].sequence, 6);
    assert_int_equal(points[1].sequence, 1);
    missed_messages_free(&missed);
    assert_null(missed);
}

static void noted_chats_are_bounded(void **state)
{
    (void)state;
    struct missed_messages *missed = NULL;
    const struct sync_point *points;
    for (int i = 0; i < MISSED_CHATS_MAX + 100; i++) {
        char chat[16];
        snprintf(chat, sizeof(chat), "chat-%d", i);
        note(&missed, chat, i + 1);
    }
    assert_int_equal(missed_messages_points(missed, &points), MISSED_CHATS_MAX);
    assert_true(slice_is(points[MISSED_CHATS_MAX - 1].chat_id, "chat-1023"));
    missed_messages_free(&missed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_missed_message_of_each_chat_is_noted),
        cmocka_unit_test(noted_chats_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

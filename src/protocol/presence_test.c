#include "protocol/presence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void every_status_name_parses_to_its_status(void **state)
{
    (void)state;
    static const char *const names[] = {"unknown", "offline", "away", "online"};
    for (int status = PRESENCE_UNKNOWN; status <= PRESENCE_ONLINE; status++) {
        enum presence_status parsed = PRESENCE_UNKNOWN;
        assert_string_equal(presence_status_name((enum presence_status)status), names[status]);
        assert_true(presence_status_parse(slice_of(names[status]), &parsed));
        assert_int_equal(parsed, status);
    }
}

static void other_names_are_no_status(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "Online", "onlin", "onlinee", "busy", "incall"};
    enum presence_status parsed = PRESENCE_AWAY;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(presence_status_parse(slice_of(wrong[i]), &parsed));
    assert_false(presence_status_parse(SLICE_NONE, &parsed));
    assert_int_equal(parsed, PRESENCE_AWAY);
}

static void reasons_have_names_except_none(void **state)
{
    (void)state;
    assert_null(presence_reason_name(PRESENCE_REASON_NONE));
    assert_string_equal(presence_reason_name(PRESENCE_REASON_PRIVACY), "privacy");
    assert_string_equal(presence_reason_name(PRESENCE_REASON_NOT_CONTACTS), "not_contacts");
}

static void hidden_presence_reveals_nothing(void **state)
{
    (void)state;
    struct presence hidden = presence_hidden(SLICE("bob"), PRESENCE_REASON_PRIVACY);
    assert_true(slice_is(hidden.user_id, "bob"));
    assert_int_equal(hidden.status, PRESENCE_UNKNOWN);
    assert_int_equal(hidden.reason, PRESENCE_REASON_PRIVACY);
    assert_int_equal(hidden.version, 0);
    assert_true(hidden.last_seen_ms == TIME_NONE);
    assert_false(hidden.in_call);
    assert_false(hidden.stale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_name_parses_to_its_status),
        cmocka_unit_test(other_names_are_no_status),
        cmocka_unit_test(reasons_have_names_except_none),
        cmocka_unit_test(hidden_presence_reveals_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

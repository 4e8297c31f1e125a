#include "config/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const char *const names[] = {"gateway", "gateway.listen", "gateway.workers", "peer.listen",
                                    "presence.idle_seconds"};

static void expect_nearest(const char *wanted, const char *expected)
{
    struct nearest nearest = nearest_to(slice_of(wanted));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        nearest_offer(&nearest, slice_of(names[i]));
    if (!slice_equal(nearest.best, slice_of(expected)))
        fail_msg("%s: %.*s", wanted, SLICE_FORMAT(nearest.best));
}

static void name_with_the_fewest_edits_wins(void **state)
{
    (void)state;
    expect_nearest("gatewy", "gateway");
    expect_nearest("gatewya", "gateway");
    expect_nearest("gateway.lisen", "gateway.listen");
    expect_nearest("gateway.worker", "gateway.workers");
    expect_nearest("peer_listen", "peer.listen");
}

static void swapped_neighbours_are_one_edit(void **state)
{
    (void)state;
    struct nearest nearest = nearest_to(SLICE("gateway.wrokers"));
    nearest_offer(&nearest, SLICE("gateway.workers"));
    assert_int_equal(nearest.best_edits, 1);
}

static void name_without_its_section_is_found(void **state)
{
    (void)state;
    expect_nearest("workers", "gateway.workers");
    expect_nearest("idle_seconds", "presence.idle_seconds");
}

static void distant_name_is_not_suggested(void **state)
{
    (void)state;
    expect_nearest("", NULL);
    expect_nearest("x", NULL);
    expect_nearest("colour.of.the.logo", NULL);
}

static void long_names_are_not_compared(void **state)
{
    (void)state;
    char text[NEAREST_NAME_MAX + 1];
    memset(text, 'a', sizeof(text));
    struct nearest nearest = nearest_to((struct slice){text, sizeof(text)});
    nearest_offer(&nearest, (struct slice){text, NEAREST_NAME_MAX});
    assert_null(nearest.best.data);
    nearest = nearest_to((struct slice){text, NEAREST_NAME_MAX});
    nearest_offer(&nearest, (struct slice){text, sizeof(text)});
    assert_null(nearest.best.data);
    nearest_offer(&nearest, (struct slice){text, NEAREST_NAME_MAX - 1});
    assert_int_equal(nearest.best_edits, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_with_the_fewest_edits_wins),
        cmocka_unit_test(swapped_neighbours_are_one_edit),
        cmocka_unit_test(name_without_its_section_is_found),
        cmocka_unit_test(distant_name_is_not_suggested),
        cmocka_unit_test(long_names_are_not_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

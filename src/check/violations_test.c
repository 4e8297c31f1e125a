#include "check/violations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void add_finding(struct violations *violations, const char *key, const char *what)
{
    violations_add(violations, slice_of(key), SLICE("well_formed"), slice_of(what));
}

static char *print_findings(const struct violations *violations, size_t limit)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    violations_print(violations, limit, out);
    fclose(out);
    return text;
}

static void expect_printed(const struct violations *violations, size_t limit, const char *expected)
{
    char *text = print_findings(violations, limit);
    assert_string_equal(text, expected);
    free(text);
}

static void a_repeated_finding_is_kept_once(void **state)
{
    struct violations *violations = *state;
    add_finding(violations, "a", "a is wrong");
    add_finding(violations, "a", "a is wrong");
    add_finding(violations, "a", "a is also odd");
    assert_int_equal(violations->count, 2);
    expect_printed(violations, 10, "well_formed: a is wrong\nwell_formed: a is also odd\n");
    expect_printed(violations, 1, "well_formed: a is wrong\n… and 1 more\n");
}

static void only_findings_of_every_round_stay(void **state)
{
    struct violations *violations = *state;
    add_finding(violations, "a", "a passes");
    add_finding(violations, "b", "b stays");
    violations_confirm(violations);
    add_finding(violations, "b", "b stays");
    add_finding(violations, "c", "c is new"); /* the first round did not find it */
    violations_drop_unseen(violations);
    expect_printed(violations, 10, "well_formed: b stays\n");
    violations_confirm(violations);
    violations_drop_unseen(violations);
    assert_int_equal(violations->count, 0);
}

static void control_characters_are_escaped(void **state)
{
    struct violations *violations = *state;
    add_finding(violations, "k", "\033[2J\n\\ 😀");
    expect_printed(violations, 10, "well_formed: \\x1b[2J\\x0a\\x5c 😀\n");
}

static void findings_beyond_the_bound_are_counted(void **state)
{
    struct violations *violations = *state;
    char what[32];
    for (int i = 0; i < VIOLATIONS_MAX + 5; i++) {
        snprintf(what, sizeof(what), "wrong %d", i);
        add_finding(violations, "k", what);
    }
    assert_int_equal(violations->count, VIOLATIONS_MAX);
    assert_int_equal(violations->more, 5);
}

static int set_up(void **state)
{
    *state = calloc(1, sizeof(struct violations));
    return 0;
}

static int tear_down(void **state)
{
    struct violations *violations = *state;
    violations_free(violations);
    free(violations);
    return 0;
}

#define with_violations(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_violations(a_repeated_finding_is_kept_once),
        with_violations(only_findings_of_every_round_stay),
        with_violations(control_characters_are_escaped),
        with_violations(findings_beyond_the_bound_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

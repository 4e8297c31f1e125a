#include "protocol/http1/http1_target.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_slice(struct slice actual, const char *expected)
{
    assert_int_equal(actual.len, strlen(expected));
    assert_memory_equal(actual.data, expected, actual.len);
}

/* Decodes an exact copy; `expected` NULL: it must be refused. */
static void expect_decoded(bool (*decode)(struct slice text, char *out, size_t *len),
                           struct slice text, const char *expected)
{
    char out[64];
    size_t len;
    char *copy = exact_copy(text);
    assert_int_equal(decode((struct slice){copy, text.len}, out, &len), expected != NULL);
    if (expected)
        assert_slice((struct slice){out, len}, expected);
    free(copy);
}

static void escapes_are_decoded(void **unused)
{
    (void)unused;
    char out[64];
    size_t len;
    expect_decoded(http1_percent_decode, SLICE("a%2Fb+c%c3%A9%25"), "a/b+c\xc3\xa9%");
    expect_decoded(http1_query_decode, SLICE("a+b%2Bc"), "a b+c");
    assert_true(http1_percent_decode(SLICE_NONE, out, &len));
    assert_int_equal(len, 0);
}

static void escapes_can_be_decoded_in_place(void **unused)
{
    (void)unused;
    char *text = exact_copy(SLICE("%41%42c"));
    size_t len;
    assert_true(http1_percent_decode((struct slice){text, 7}, text, &len));
    assert_slice((struct slice){text, len}, "ABc");
    free(text);
}

static void bad_escapes_are_refused(void **unused)
{
    (void)unused;
    const struct slice bad[] = {
        SLICE("%"),   SLICE("%4"),   SLICE("a%4g"), SLICE("%g4"),
        SLICE("%00"), SLICE("a\0b"), SLICE("%%41"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_decoded(http1_percent_decode, bad[i], NULL);
}

static void query_parameters_come_in_order(void **unused)
{
    (void)unused;
    struct slice text = SLICE("a=1&&b=x%26y&c&=d&e==f&");
    char *copy = exact_copy(text);
    struct slice query = {copy, text.len};
    struct slice name;
    struct slice value;
    assert_true(http1_query_next(&query, &name, &value));
    assert_slice(name, "a");
    assert_slice(value, "1");
    assert_true(http1_query_next(&query, &name, &value));
    assert_slice(name, "b");
    assert_slice(value, "x%26y");
    assert_true(http1_query_next(&query, &name, &value));
    assert_slice(name, "c");
    assert_null(value.data);
    assert_true(http1_query_next(&query, &name, &value));
    assert_slice(name, "");
    assert_slice(value, "d");
    assert_true(http1_query_next(&query, &name, &value));
    assert_slice(name, "e");
    assert_slice(value, "=f");
    assert_false(http1_query_next(&query, &name, &value));
    free(copy);
}

/* Searches an exact copy; `expected` NULL: the parameter must not be found. */
static void expect_parameter(const char *query, struct slice name, const char *expected)
{
    struct slice text = slice_of(query);
    char *copy = exact_copy(text);
    struct slice value = http1_query_find((struct slice){copy, text.len}, name);
    assert_int_equal(value.data != NULL, expected != NULL);
    if (expected)
        assert_slice(value, expected);
    free(copy);
}

static void parameter_is_found_by_name(void **unused)
{
    (void)unused;
    const char *query = "aa=0&a=1&a=2&flag";
    expect_parameter(query, SLICE("a"), "1");
    expect_parameter(query, SLICE("flag"), "");
    expect_parameter(query, SLICE("b"), NULL);
    assert_null(http1_query_find(SLICE_NONE, SLICE("b")).data);
}

static void parameter_name_may_be_escaped(void **unused)
{
    (void)unused;
    expect_parameter("a=0&%75s%65r%73=1&users=2", SLICE("users"), "1");
    expect_parameter("users=2&%75sers=1", SLICE("users"), "2");
    expect_parameter("a+b=1", SLICE("a b"), "1");
    expect_parameter("a%2bb=1", SLICE("a+b"), "1");
    expect_parameter("%61%3D=1", SLICE("a="), "1");
    expect_parameter("%61&b", SLICE("a"), "");
}

static void parameter_name_with_a_bad_escape_matches_nothing(void **unused)
{
    (void)unused;
    static const char *const queries[] = {"a%=1",   "a%6=1",   "%6=1",   "%=1",    "%g1=1",
                                          "a%00=1", "%2561=1", "%61a=1", "aa%61=1"};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        expect_parameter(queries[i], SLICE("a"), NULL);
    expect_parameter("a%zz=1&a=2", SLICE("a"), "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(escapes_can_be_decoded_in_place),
        cmocka_unit_test(bad_escapes_are_refused),
        cmocka_unit_test(query_parameters_come_in_order),
        cmocka_unit_test(parameter_is_found_by_name),
        cmocka_unit_test(parameter_name_may_be_escaped),
        cmocka_unit_test(parameter_name_with_a_bad_escape_matches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

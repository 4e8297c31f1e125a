#include "protocol/http1/http1_target.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_slice(struct slice actual, const char *expected)
{
    assert_int_equal(actual.len, strlen(expected));
    assert_memory_equal(actual.data, expected, actual.len);
}

static void escapes_are_decoded(void **unused)
{
    (void)unused;
    char out[64];
    size_t len;
    assert_true(http1_percent_decode(SLICE("a%2Fb+c%c3%A9%25"), out, &len));
    assert_slice((struct slice){out, len}, "a/b+c\xc3\xa9%");
    assert_true(http1_query_decode(SLICE("a+b%2Bc"), out, &len));
    assert_slice((struct slice){out, len}, "a b+c");
    assert_true(http1_percent_decode(SLICE_NONE, out, &len));
    assert_int_equal(len, 0);
}

static void decoding_may_be_in_place(void **unused)
{
    (void)unused;
    char text[] = "%41%42c";
    size_t len;
    assert_true(http1_percent_decode((struct slice){text, 7}, text, &len));
    assert_slice((struct slice){text, len}, "ABc");
}

static void bad_escapes_are_refused(void **unused)
{
    (void)unused;
    char out[64];
    size_t len;
    const struct slice bad[] = {
        SLICE("%"),   SLICE("%4"),   SLICE("a%4g"), SLICE("%g4"),
        SLICE("%00"), SLICE("a\0b"), SLICE("%%41"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(http1_percent_decode(bad[i], out, &len));
}

static void query_parameters_come_in_order(void **unused)
{
    (void)unused;
    struct slice query = SLICE("a=1&&b=x%26y&c&=d&e==f&");
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
}

static void parameter_is_found_by_name(void **unused)
{
    (void)unused;
    const struct slice query = SLICE("aa=0&a=1&a=2&flag");
    assert_slice(http1_query_find(query, SLICE("a")), "1");
    assert_non_null(http1_query_find(query, SLICE("flag")).data);
    assert_int_equal(http1_query_find(query, SLICE("flag")).len, 0);
    assert_null(http1_query_find(query, SLICE("b")).data);
    assert_null(http1_query_find(SLICE_NONE, SLICE("b")).data);
}

static void parameter_name_may_be_escaped(void **unused)
{
    (void)unused;
    assert_slice(http1_query_find(SLICE("a=0&%75s%65r%73=1&users=2"), SLICE("users")), "1");
    assert_slice(http1_query_find(SLICE("users=2&%75sers=1"), SLICE("users")), "2");
    assert_slice(http1_query_find(SLICE("a+b=1"), SLICE("a b")), "1");
    assert_slice(http1_query_find(SLICE("a%2bb=1"), SLICE("a+b")), "1");
    assert_slice(http1_query_find(SLICE("%61%3D=1"), SLICE("a=")), "1");
    assert_int_equal(http1_query_find(SLICE("%61&b"), SLICE("a")).len, 0);
    assert_non_null(http1_query_find(SLICE("%61&b"), SLICE("a")).data);
}

static void parameter_name_with_a_bad_escape_matches_nothing(void **unused)
{
    (void)unused;
    static const char *const queries[] = {"a%=1",   "a%6=1",   "%6=1",   "%=1",    "%g1=1",
                                          "a%00=1", "%2561=1", "%61a=1", "aa%61=1"};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        assert_null(http1_query_find(slice_of(queries[i]), SLICE("a")).data);
    assert_slice(http1_query_find(SLICE("a%zz=1&a=2"), SLICE("a")), "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(decoding_may_be_in_place),
        cmocka_unit_test(bad_escapes_are_refused),
        cmocka_unit_test(query_parameters_come_in_order),
        cmocka_unit_test(parameter_is_found_by_name),
        cmocka_unit_test(parameter_name_may_be_escaped),
        cmocka_unit_test(parameter_name_with_a_bad_escape_matches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

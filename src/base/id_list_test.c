#include "base/id_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void copy_is_independent_of_its_source(void **state)
{
    (void)state;
    char first[] = "alice", second[] = "bob";
    struct slice ids[] = {slice_of(first), SLICE_NONE, slice_of(second)};
    struct id_list list;
    assert_true(id_list_copy(&list, ids, 3));
    memset(first, '?', sizeof(first));
    memset(second, '?', sizeof(second));
    memset(ids, 0, sizeof(ids));
    assert_int_equal(list.count, 3);
    assert_true(slice_is(list.ids[0], "alice"));
    assert_int_equal(list.ids[1].len, 0);
    assert_true(slice_is(list.ids[2], "bob"));
    id_list_free(&list);
    assert_null(list.ids);
    assert_int_equal(list.count, 0);
    id_list_free(&list);
}

static void empty_copy_needs_no_memory(void **state)
{
    (void)state;
    struct id_list list = {(const struct slice *)(uintptr_t)1, 7};
    assert_true(id_list_copy(&list, NULL, 0));
    assert_null(list.ids);
    assert_int_equal(list.count, 0);
    id_list_sort(&list);
    assert_false(id_list_contains(&list, SLICE("a")));
    assert_false(id_list_sorted_contains(&list, SLICE("a")));
    id_list_free(&list);
}

static void copy_beyond_the_bound_is_refused(void **state)
{
    (void)state;
    struct slice id = SLICE("a"); /* the count alone decides: nothing is read */
    struct id_list list;
    assert_false(id_list_copy(&list, &id, (size_t)ID_LIST_COUNT_MAX + 1));
    assert_int_equal(list.count, 0);
}

static void pack_writes_exactly_its_bytes(void **state)
{
    (void)state;
    const struct slice ids[] = {SLICE("ab"), SLICE("c"), SLICE("def")};
    struct slice slices[3];
    size_t bytes = id_list_bytes(ids, 3);
    assert_int_equal(bytes, 6);
    char *text = malloc(bytes); /* exact, so that the sanitizer sees a byte too many */
    assert_ptr_equal(id_list_pack(slices, ids, 3, text), text + bytes);
    assert_memory_equal(text, "abcdef", bytes);
    assert_true(slice_is(slices[2], "def"));
    assert_ptr_equal(slices[2].data, text + 3);
    free(text);
}

static void pack_works_in_place(void **state)
{
    (void)state;
    struct slice ids[] = {SLICE("ab"), SLICE("c")};
    char text[3];
    id_list_pack(ids, ids, 2, text);
    assert_ptr_equal(ids[0].data, text);
    assert_ptr_equal(ids[1].data, text + 2);
    assert_true(slice_is(ids[0], "ab"));
    assert_true(slice_is(ids[1], "c"));
}

static void sort_orders_by_bytes(void **state)
{
    (void)state;
    static const char *const SORTED[] = {"", "a", "ab", "b", "\x80"};
    const struct slice ids[] = {SLICE("b"), SLICE("\x80"), SLICE("ab"), SLICE(""), SLICE("a")};
    struct id_list list;
    assert_true(id_list_copy(&list, ids, 5));
    id_list_sort(&list);
    for (size_t i = 0; i < 5; i++) {
        assert_true(slice_is(list.ids[i], SORTED[i]));
        assert_true(id_list_sorted_contains(&list, slice_of(SORTED[i])));
        assert_true(id_list_contains(&list, slice_of(SORTED[i])));
    }
    assert_false(id_list_sorted_contains(&list, SLICE("aa")));
    assert_false(id_list_contains(&list, SLICE("aa")));
    id_list_free(&list);
}

static void sort_unique_keeps_each_id_once(void **state)
{
    (void)state;
    struct slice ids[] = {SLICE("b"), SLICE("a"), SLICE("b"), SLICE("ab"), SLICE("a")};
    struct id_list list = {ids, id_list_sort_unique(ids, 5)};
    assert_int_equal(list.count, 3);
    assert_ptr_equal(id_list_sorted_find(&list, SLICE("ab")), &ids[1]);
    assert_ptr_equal(id_list_sorted_find(&list, SLICE("b")), &ids[2]);
    assert_null(id_list_sorted_find(&list, SLICE("c")));
    assert_int_equal(id_list_sort_unique(ids, 0), 0);
}

static void equal_lists_have_the_same_ids_in_order(void **state)
{
    (void)state;
    const struct slice ids[] = {SLICE("a"), SLICE("b")}, swapped[] = {SLICE("b"), SLICE("a")};
    const struct id_list list = {ids, 2}, shorter = {ids, 1}, other = {swapped, 2};
    struct id_list copy;
    assert_true(id_list_copy(&copy, ids, 2));
    assert_true(id_list_equal(&list, &copy));
    assert_false(id_list_equal(&list, &shorter));
    assert_false(id_list_equal(&list, &other));
    id_list_free(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_is_independent_of_its_source),
        cmocka_unit_test(empty_copy_needs_no_memory),
        cmocka_unit_test(copy_beyond_the_bound_is_refused),
        cmocka_unit_test(pack_writes_exactly_its_bytes),
        cmocka_unit_test(pack_works_in_place),
        cmocka_unit_test(sort_orders_by_bytes),
        cmocka_unit_test(sort_unique_keeps_each_id_once),
        cmocka_unit_test(equal_lists_have_the_same_ids_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

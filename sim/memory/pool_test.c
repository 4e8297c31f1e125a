#include "memory/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SIZES = 40, BYTES_MAX = 3 * 1024 * 1024 };

static size_t nth_size(size_t n)
{
    size_t bytes = n * n * n * 47 + n;
    return bytes < BYTES_MAX ? bytes : BYTES_MAX;
}

static void test_pieces_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    char *pieces[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        pieces[i] = pool_take(nth_size(i));
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)i, nth_size(i));
    }
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t at = 0; at < nth_size(i); at += 97)
            assert_int_equal((unsigned char)pieces[i][at], i);
        pool_give(pieces[i], nth_size(i));
    }
}

static void test_a_resized_piece_keeps_its_bytes(void **state)
{
    (void)state;
    char *piece = pool_resize(NULL, 0, 5);
    assert_non_null(piece);
    memcpy(piece, "bytes", 5);
    size_t before = 5;
    for (size_t i = 1; i < SIZES; i++) {
        piece = pool_resize(piece, before, 5 + nth_size(i));
        assert_non_null(piece);
        assert_memory_equal(piece, "bytes", 5);
        before = 5 + nth_size(i);
    }
    piece = pool_resize(piece, before, 5);
    assert_memory_equal(piece, "bytes", 5);
    pool_give(piece, 5);
    pool_give(NULL, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces_are_aligned_and_do_not_overlap),
                                       cmocka_unit_test(test_a_resized_piece_keeps_its_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Notes tokens while allocations fail: what is found is right, and nothing leaks. */
#include "auth/verified_tokens.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static size_t note_token(alloc_fault_start fail_at, size_t n)
{
    struct verified_tokens tokens = {0};
    struct identity identity = {.user = "a", .user_len = 1};
    struct token_digest digest;
    assert_true(token_digest_make(&digest, SLICE("a.b.c")));
    fail_at(n);
    for (int i = 0; i < 3; i++)
        verified_tokens_note(&tokens, &digest, &identity);
    size_t failed = alloc_fault_off();
    const struct identity *found = verified_tokens_find(&tokens, &digest);
    assert_true(found || failed);
    if (found)
        assert_memory_equal(found, &identity, sizeof(identity));
    verified_tokens_free(&tokens);
    return failed;
}

static void without_memory_nothing_is_remembered(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, note_token) > 3);
    assert_true(alloc_fault_sweep(alloc_fault_from, note_token) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory_nothing_is_remembered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "auth/verified_tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct identity make_identity(char user)
{
    struct identity identity = {.user_len = 1};
    identity.user[0] = user;
    return identity;
}

static struct token_digest make_digest(const char *token)
{
    struct token_digest digest;
    assert_true(token_digest_make(&digest, slice_of(token)));
    return digest;
}

static void note(struct verified_tokens *tokens, const char *token, char user)
{
    struct token_digest digest = make_digest(token);
    struct identity identity = make_identity(user);
    verified_tokens_note(tokens, &digest, &identity);
}

/* Returns whose token it is; 0: it is not remembered. */
static char find(const struct verified_tokens *tokens, const char *token)
{
    struct token_digest digest = make_digest(token);
    const struct identity *identity = verified_tokens_find(tokens, &digest);
    return identity ? identity->user[0] : 0;
}

static void test_token_is_remembered_when_it_comes_again(void **state)
{
    (void)state;
    struct verified_tokens tokens = {0};
    assert_int_equal(find(&tokens, "a.b.c"), 0);
    note(&tokens, "a.b.c", 'a');
    assert_int_equal(find(&tokens, "a.b.c"), 0);
    note(&tokens, "a.b.c", 'a');
    assert_int_equal(find(&tokens, "a.b.c"), 'a');
    assert_int_equal(find(&tokens, "a.b.d"), 0);
    assert_int_equal(find(&tokens, "a.b.c "), 0);
    assert_int_equal(find(&tokens, ""), 0);
    verified_tokens_free(&tokens);
    assert_int_equal(find(&tokens, "a.b.c"), 0);
}

static void test_tokens_of_one_place_replace_each_other(void **state)
{
    (void)state;
    struct verified_tokens tokens = {0};
    char token[32];
    unsigned remembered = 0;
    for (unsigned i = 0; i < 4 * VERIFIED_TOKENS_MAX; i++) {
        snprintf(token, sizeof(token), "token-%u", i);
        note(&tokens, token, 'x');
        note(&tokens, token, 'x');
        assert_int_equal(find(&tokens, token), 'x');
    }
    for (unsigned i = 0; i < 4 * VERIFIED_TOKENS_MAX; i++) {
        snprintf(token, sizeof(token), "token-%u", i);
        remembered += find(&tokens, token) != 0;
    }
    assert_in_range(remembered, VERIFIED_TOKENS_MAX / 2, VERIFIED_TOKENS_MAX);
    verified_tokens_free(&tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_is_remembered_when_it_comes_again),
        cmocka_unit_test(test_tokens_of_one_place_replace_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests the verifier: bounded per turn and in number, in order, one result for each token. */
#include "auth/verifier.h"

#include "auth/keys/key_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PER_TURN = 3, PENDING_MAX = 8, HOUR_MS = 3600000 };

static const struct clock now = {.now_ms = 5000, .wall_ms = INT64_C(1700000000000)};

static struct verifier verifier;
static struct jwt_signer *signer;
static struct buffer answers; /* a line each */

static struct key_set *keys_of(const struct jwt_signer *of)
{
    struct buffer jwks = BUFFER_INIT;
    struct auth_error error;
    assert_true(jwt_signer_write_jwks(of, &jwks));
    struct key_set *keys = key_testing_parse(buffer_slice(&jwks), &error);
    buffer_free(&jwks);
    return keys;
}

static struct jwt_signer *make_signer(void)
{
    EVP_PKEY *pkey = key_testing_ed25519();
    struct jwt_signer *made = key_testing_signer(pkey, NULL);
    EVP_PKEY_free(pkey);
    return made;
}

static int open_verifier(void **unused)
{
    (void)unused;
    signer = make_signer();
    answers = BUFFER_INIT;
    verifier_init(&verifier, keys_of(signer), &JWT_POLICY_DEFAULT, PER_TURN, PENDING_MAX);
    return 0;
}

static int close_verifier(void **unused)
{
    (void)unused;
    verifier_free(&verifier);
    jwt_signer_free(&signer);
    buffer_free(&answers);
    return 0;
}

static void note(void *arg, enum jwt_result result, const struct identity *identity)
{
    buffer_printf(&answers, "%s %s", (const char *)arg, jwt_result_label(result));
    if (identity)
        buffer_printf(&answers, " %.*s", SLICE_FORMAT(identity_user(identity)));
    buffer_append_byte(&answers, '\n');
    assert_int_equal(identity != NULL, jwt_result_names_user(result));
}

static bool submit(const struct jwt_signer *by, char *name)
{
    struct buffer token = BUFFER_INIT;
    struct jwt_sign_claims claims = {.user = slice_of(name),
                                     .expires_at_wall_ms = now.wall_ms + HOUR_MS};
    assert_true(jwt_sign(by, &claims, &token));
    bool taken = verifier_submit(&verifier, buffer_slice(&token), note, name);
    buffer_free(&token); /* it was copied */
    return taken;
}

static void expect_answers(const char *text)
{
    buffer_append_byte(&answers, '\0');
    assert_string_equal(answers.data, text);
    buffer_clear(&answers);
}

static void tokens_are_verified_in_order_and_bounded_per_turn(void **unused)
{
    (void)unused;
    static char names[5][2] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++)
        assert_true(submit(signer, names[i]));
    expect_answers(""); /* never before verifier_submit() returns */
    assert_true(verifier_run(&verifier, &now));
    expect_answers("a ok a\nb ok b\nc ok c\n");
    assert_false(verifier_run(&verifier, &now));
    expect_answers("d ok d\ne ok e\n");
    assert_false(verifier_run(&verifier, &now));
    expect_answers("");
}

static void token_beyond_the_queue_is_refused_and_gets_no_result(void **unused)
{
    (void)unused;
    static char name[] = "x", late[] = "late";
    for (int i = 0; i < PENDING_MAX; i++)
        assert_true(submit(signer, name));
    assert_false(submit(signer, late));
    verifier_run(&verifier, &now);
    expect_answers("x ok x\nx ok x\nx ok x\n");
    assert_true(submit(signer, late)); /* the queue has space again */
    while (verifier_run(&verifier, &now))
        ;
    expect_answers("x ok x\nx ok x\nx ok x\nx ok x\nx ok x\nlate ok late\n");
}

static void malformed_token_gets_its_result(void **unused)
{
    (void)unused;
    static char large[2 * JWT_BYTES_MAX];
    memset(large, 'a', sizeof(large));
    assert_true(verifier_submit(&verifier, SLICE(""), note, (void *)"empty"));
    assert_true(verifier_submit(&verifier, SLICE("a.b"), note, (void *)"short"));
    assert_true(
        verifier_submit(&verifier, (struct slice){large, sizeof(large)}, note, (void *)"large"));
    verifier_run(&verifier, &now);
    expect_answers("empty malformed\nshort malformed\nlarge too_long\n");
}

static void rotated_keys_apply_to_pending_tokens(void **unused)
{
    (void)unused;
    static char before[] = "before", after[] = "after";
    struct jwt_signer *newer = make_signer();
    submit(signer, before);
    verifier_use(&verifier, keys_of(newer));
    submit(newer, after);
    verifier_run(&verifier, &now);
    expect_answers("before unknown_key\nafter ok after\n");
    jwt_signer_free(&newer);
}

static void resubmit(void *arg, enum jwt_result result, const struct identity *identity)
{
    static char again[] = "again";
    note(arg, result, identity);
    assert_true(submit(signer, again));
}

static void token_submitted_by_a_completion_waits(void **unused)
{
    (void)unused;
    verifier_submit(&verifier, SLICE("a.b"), resubmit, (void *)"first");
    while (verifier_run(&verifier, &now))
        ;
    expect_answers("first malformed\nagain ok again\n");
}

static void free_completes_pending_tokens(void **unused)
{
    (void)unused;
    static char name[] = "left";
    submit(signer, name);
    verifier_free(&verifier);
    expect_answers("left unknown_key\n");
    verifier_init(&verifier, keys_of(signer), &JWT_POLICY_DEFAULT, PER_TURN, PENDING_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_verifier, close_verifier)
    const struct CMUnitTest tests[] = {
        TEST(tokens_are_verified_in_order_and_bounded_per_turn),
        TEST(token_beyond_the_queue_is_refused_and_gets_no_result),
        TEST(malformed_token_gets_its_result),
        TEST(rotated_keys_apply_to_pending_tokens),
        TEST(token_submitted_by_a_completion_waits),
        TEST(free_completes_pending_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

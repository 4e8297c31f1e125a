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
static struct buffer results; /* a line each */

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
    results = BUFFER_INIT;
    verifier_init(&verifier, keys_of(signer), &JWT_POLICY_DEFAULT, PER_TURN, PENDING_MAX);
    return 0;
}

static int close_verifier(void **unused)
{
    (void)unused;
    verifier_free(&verifier);
    jwt_signer_free(&signer);
    buffer_free(&results);
    return 0;
}

static void on_token_verified(void *arg, enum jwt_result result, const struct identity *identity)
{
    buffer_printf(&results, "%s %s", (const char *)arg, jwt_result_label(result));
    if (identity)
        buffer_printf(&results, " %.*s", SLICE_FORMAT(identity_user(identity)));
    buffer_append_byte(&results, '\n');
    assert_int_equal(identity != NULL, jwt_result_names_user(result));
}

static bool submit(const struct jwt_signer *by, char *name)
{
    struct buffer token = BUFFER_INIT;
    struct jwt_sign_claims claims = {.user = slice_of(name),
                                     .expires_at_wall_ms = now.wall_ms + HOUR_MS};
    assert_true(jwt_sign(by, &claims, &token));
    bool taken = verifier_submit(&verifier, buffer_slice(&token), on_token_verified, name);
    buffer_free(&token); /* it was copied */
    return taken;
}

static void expect_results(const char *text)
{
    buffer_append_byte(&results, '\0');
    assert_string_equal(results.data, text);
    buffer_clear(&results);
}

static void tokens_are_verified_in_order_and_bounded_per_turn(void **unused)
{
    (void)unused;
    static char names[5][2] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++)
        assert_true(submit(signer, names[i]));
    expect_results(""); /* never before verifier_submit() returns */
    assert_true(verifier_run(&verifier, &now));
    expect_results("a ok a\nb ok b\nc ok c\n");
    assert_false(verifier_run(&verifier, &now));
    expect_results("d ok d\ne ok e\n");
    assert_false(verifier_run(&verifier, &now));
    expect_results("");
}

static void token_beyond_the_queue_is_refused_and_gets_no_result(void **unused)
{
    (void)unused;
    static char name[] = "x", late[] = "late";
    for (int i = 0; i < PENDING_MAX; i++)
        assert_true(submit(signer, name));
    assert_false(submit(signer, late));
    verifier_run(&verifier, &now);
    expect_results("x ok x\nx ok x\nx ok x\n");
    assert_true(submit(signer, late)); /* the queue has space again */
    while (verifier_run(&verifier, &now))
        ;
    expect_results("x ok x\nx ok x\nx ok x\nx ok x\nx ok x\nlate ok late\n");
}

static void malformed_token_gets_its_result(void **unused)
{
    (void)unused;
    static char large[2 * JWT_BYTES_MAX];
    memset(large, 'a', sizeof(large));
    assert_true(verifier_submit(&verifier, SLICE(""), on_token_verified, (void *)"empty"));
    assert_true(verifier_submit(&verifier, SLICE("a.b"), on_token_verified, (void *)"short"));
    assert_true(verifier_submit(&verifier, (struct slice){large, sizeof(large)}, on_token_verified,
                                (void *)"large"));
    verifier_run(&verifier, &now);
    expect_results("empty malformed\nshort malformed\nlarge too_long\n");
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
    expect_results("before unknown_key\nafter ok after\n");
    jwt_signer_free(&newer);
}

static void on_token_verified_resubmit(void *arg, enum jwt_result result,
                                       const struct identity *identity)
{
    static char again[] = "again";
    on_token_verified(arg, result, identity);
    assert_true(submit(signer, again));
}

static void token_submitted_by_a_completion_waits(void **unused)
{
    (void)unused;
    verifier_submit(&verifier, SLICE("a.b"), on_token_verified_resubmit, (void *)"first");
    while (verifier_run(&verifier, &now))
        ;
    expect_results("first malformed\nagain ok again\n");
}

static void free_completes_pending_tokens(void **unused)
{
    (void)unused;
    static char name[] = "left";
    submit(signer, name);
    verifier_free(&verifier);
    expect_results("left unknown_key\n");
    verifier_init(&verifier, keys_of(signer), &JWT_POLICY_DEFAULT, PER_TURN, PENDING_MAX);
}

static int asked;

static bool count_asks(void *arg)
{
    (void)arg;
    asked++;
    return true;
}

static void unknown_kid_waits_for_new_keys_once(void **unused)
{
    (void)unused;
    static char early[] = "early", late[] = "late";
    struct jwt_signer *newer = make_signer();
    asked = 0;
    verifier.ask_for_keys = count_asks;
    submit(newer, early);
    assert_false(verifier_run(&verifier, &now));
    assert_int_equal(asked, 1);
    expect_results("");
    verifier_use(&verifier, keys_of(newer));
    verifier_run(&verifier, &now);
    expect_results("early ok early\n");

    submit(signer, late); /* its key is gone, and stays so */
    verifier_run(&verifier, &now);
    assert_int_equal(asked, 2);
    assert_false(verifier_end_waits(&verifier, &now));
    struct clock later = now;
    later.now_ms += VERIFIER_KEYS_WAIT_MS;
    assert_true(verifier_end_waits(&verifier, &later));
    verifier_run(&verifier, &later);
    assert_int_equal(asked, 2);
    expect_results("late unknown_key\n");
    jwt_signer_free(&newer);
}

static void tokens_that_wait_for_keys_are_bounded(void **unused)
{
    (void)unused;
    static char name[] = "x";
    struct jwt_signer *newer = make_signer();
    verifier.ask_for_keys = count_asks;
    for (int i = 0; i < VERIFIER_WAITING_MAX; i++) {
        submit(newer, name);
        verifier_run(&verifier, &now);
    }
    expect_results("");
    submit(newer, name);
    verifier_run(&verifier, &now);
    expect_results("x unknown_key\n");
    assert_int_equal(verifier.waiting.count, VERIFIER_WAITING_MAX);
    assert_int_equal(verifier.pending.count, 0);
    jwt_signer_free(&newer);
}

static void no_keys_at_all_is_unavailable(void **unused)
{
    (void)unused;
    static char name[] = "x";
    verifier_use(&verifier, NULL);
    submit(signer, name);
    verifier_run(&verifier, &now);
    expect_results("x unavailable\n");
}

static void revoked_token_is_refused_once_revocations_are_loaded(void **unused)
{
    (void)unused;
    static char name[] = "x";
    struct revocations revocations;
    assert_true(revocations_init(&revocations, 1));
    verifier.revocations = &revocations;
    submit(signer, name);
    verifier_run(&verifier, &now);
    expect_results(""); /* it waits */
    revocations_put(&revocations, SLICE("x"), now.wall_ms / 1000);
    revocations.state = REVOCATIONS_LOADED;
    verifier_run(&verifier, &now);
    expect_results("x token_revoked\n");
    verifier.revocations = NULL;
    revocations_free(&revocations);
}

static unsigned count_remembered(void)
{
    unsigned count = 0;
    for (size_t i = 0; verifier.verified.places && i < VERIFIED_TOKENS_MAX; i++)
        count += verifier.verified.places[i] != NULL;
    return count;
}

/* The same token is remembered when it comes for the second time. */
static void submit_until_remembered(char *name)
{
    for (unsigned i = 0; i < 2; i++) {
        assert_true(submit(signer, name));
        verifier_run(&verifier, &now);
        assert_int_equal(count_remembered(), i);
    }
    buffer_clear(&results);
    assert_true(submit(signer, name));
}

static void token_that_comes_again_is_still_checked_against_time(void **unused)
{
    char name[] = "a";
    (void)unused;
    struct clock later = now;
    submit_until_remembered(name);
    verifier_run(&verifier, &later);
    later.wall_ms += HOUR_MS;
    submit(signer, name);
    verifier_run(&verifier, &later);
    expect_results("a ok a\na expired a\n");
}

static void token_that_comes_again_is_refused_without_its_key(void **unused)
{
    char name[] = "a";
    (void)unused;
    struct jwt_signer *other = make_signer();
    submit_until_remembered(name);
    verifier_use(&verifier, keys_of(other));
    verifier_run(&verifier, &now);
    verifier_use(&verifier, keys_of(signer));
    submit(signer, name);
    verifier_run(&verifier, &now);
    expect_results("a unknown_key\na ok a\n");
    jwt_signer_free(&other);
}

static void token_that_comes_again_is_refused_once_revoked(void **unused)
{
    char name[] = "a";
    (void)unused;
    struct revocations revocations;
    assert_true(revocations_init(&revocations, 1));
    revocations.state = REVOCATIONS_LOADED;
    verifier.revocations = &revocations;
    submit_until_remembered(name);
    revocations_put(&revocations, SLICE("a"), now.wall_ms / 1000);
    verifier_run(&verifier, &now);
    expect_results("a token_revoked\n");
    verifier.revocations = NULL;
    revocations_free(&revocations);
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
        TEST(unknown_kid_waits_for_new_keys_once),
        TEST(tokens_that_wait_for_keys_are_bounded),
        TEST(no_keys_at_all_is_unavailable),
        TEST(revoked_token_is_refused_once_revocations_are_loaded),
        TEST(token_that_comes_again_is_still_checked_against_time),
        TEST(token_that_comes_again_is_refused_without_its_key),
        TEST(token_that_comes_again_is_refused_once_revoked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests valid tokens, damaged tokens, and other text. */
#include "auth/jwt.h"

#include "auth/jwt_testing.h"
#include "auth/keys/es256.h"
#include "auth/keys/key_testing.h"
#include "text/base64url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <pthread.h>

static void signed_token_is_accepted_until_it_expires(void **state)
{
    struct jwt_testing *fixture = *state;
    struct jwt_policy policy = {.issuer = SLICE("me"), .audience = SLICE("chat")};
    for (int kind = 0; kind < JWT_TESTING_KINDS; kind++) {
        struct identity identity;
        struct buffer token = jwt_testing_token(fixture, kind);
        struct slice text = buffer_slice(&token);
        assert_int_equal(jwt_verify(fixture->keys, &policy, text, JWT_TESTING_NOW_MS, &identity),
                         JWT_OK);
        assert_true(slice_is(identity_user(&identity), "alice"));
        assert_int_equal(identity.scopes, IDENTITY_SCOPE_DELIVER);
        assert_int_equal(identity.expires_at_wall_ms, JWT_TESTING_NOW_MS + 1500);
        assert_int_equal(
            jwt_verify(fixture->keys, &policy, text, JWT_TESTING_NOW_MS + 1500, &identity),
            JWT_EXPIRED);
        buffer_free(&token);
    }
}

static void token_without_kid_is_accepted(void **state)
{
    struct jwt_testing *fixture = *state;
    struct buffer token = jwt_testing_sign(fixture->signer[JWT_TESTING_P256], "{\"alg\":\"ES256\"}",
                                           JWT_TESTING_CLAIMS);
    assert_int_equal(jwt_testing_verify(fixture, &token), JWT_OK);
    /* Two keys fit; the second one made the signature. */
    EVP_PKEY *other = key_testing_p256();
    EVP_PKEY *pkeys[] = {other, fixture->pkey[JWT_TESTING_P256]};
    const char *names[] = {"a", "b"};
    struct key_set *set = jwt_testing_set(pkeys, names, 2);
    token = jwt_testing_sign(fixture->signer[JWT_TESTING_P256], "{\"alg\":\"ES256\"}",
                             JWT_TESTING_CLAIMS);
    assert_int_equal(jwt_testing_verify_with(set, buffer_slice(&token)), JWT_OK);
    buffer_free(&token);
    token = jwt_testing_sign(fixture->signer[JWT_TESTING_P256], "{\"alg\":\"ES256\",\"kid\":\"a\"}",
                             JWT_TESTING_CLAIMS);
    assert_int_equal(jwt_testing_verify_with(set, buffer_slice(&token)), JWT_BAD_SIGNATURE);
    buffer_free(&token);
    key_set_release(&set);
    EVP_PKEY_free(other);
}

/* Changes the characters of a token, one at a time. */
static void changed_token_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    for (int kind = 0; kind < JWT_TESTING_KINDS; kind++) {
        struct buffer token = jwt_testing_token(fixture, kind);
        for (size_t i = 0; i < token.len; i++) {
            char kept = token.data[i];
            token.data[i] = kept == 'A' ? 'B' : 'A';
            assert_int_not_equal(jwt_testing_verify_with(fixture->keys, buffer_slice(&token)),
                                 JWT_OK);
            token.data[i] = kept;
        }
        assert_int_equal(jwt_testing_verify(fixture, &token), JWT_OK);
    }
}

static void truncated_token_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    for (int kind = 0; kind < JWT_TESTING_KINDS; kind++) {
        struct buffer token = jwt_testing_token(fixture, kind);
        for (size_t len = 0; len < token.len; len++) {
            struct slice cut = slice_first(buffer_slice(&token), len);
            assert_int_not_equal(jwt_testing_verify_with(fixture->keys, cut), JWT_OK);
        }
        buffer_free(&token);
    }
}

static void expect_with_suffix(const struct jwt_testing *fixture, enum jwt_testing_kind kind,
                               const char *suffix, enum jwt_result expected)
{
    struct buffer token = jwt_testing_token(fixture, kind);
    buffer_append_text(&token, suffix);
    assert_int_equal(jwt_testing_verify(fixture, &token), expected);
}

static void token_with_extra_text_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    for (int kind = 0; kind < JWT_TESTING_KINDS; kind++) {
        expect_with_suffix(fixture, kind, ".", JWT_MALFORMED);
        expect_with_suffix(fixture, kind, ".AAAA", JWT_MALFORMED);
        expect_with_suffix(fixture, kind, "=", JWT_MALFORMED);
        expect_with_suffix(fixture, kind, "==", JWT_MALFORMED);
        expect_with_suffix(fixture, kind, " ", JWT_MALFORMED);
        expect_with_suffix(fixture, kind, "\n", JWT_MALFORMED);
        expect_with_suffix(fixture, kind, "AAAA", JWT_BAD_SIGNATURE);
    }
}

/* Appends header, claims and the given signature. */
static struct buffer with_signature(const struct jwt_testing *fixture, enum jwt_testing_kind kind,
                                    const unsigned char *signature, size_t len)
{
    struct buffer token = jwt_testing_token(fixture, kind);
    token.len = (size_t)((char *)memrchr(token.data, '.', token.len) - token.data) + 1;
    base64url_encode(&token, signature, len);
    return token;
}

static size_t signature_of(const struct buffer *token, unsigned char *out)
{
    size_t len;
    const char *dot = memrchr(token->data, '.', token->len);
    struct slice text = {dot + 1, (size_t)(token->data + token->len - dot - 1)};
    assert_true(base64url_decode(text, out, &len));
    return len;
}

static void es256_signature_in_der_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    unsigned char raw[ES256_RAW_BYTES + 2];
    unsigned char der[ES256_DER_BYTES_MAX];
    size_t der_len;
    struct buffer token = jwt_testing_token(fixture, JWT_TESTING_P256);
    assert_int_equal(signature_of(&token, raw), ES256_RAW_BYTES);
    assert_true(es256_to_der(raw, der, &der_len));
    size_t head = (size_t)((char *)memrchr(token.data, '.', token.len) - token.data) + 1;
    token.len = head;
    base64url_encode(&token, der, der_len);
    assert_int_equal(jwt_testing_verify_with(fixture->keys, buffer_slice(&token)),
                     JWT_BAD_SIGNATURE);
    token.len = head;
    base64url_encode(&token, raw, ES256_RAW_BYTES);
    assert_int_equal(jwt_testing_verify(fixture, &token), JWT_OK);
}

/* A well-known implementation once accepted r = s = 0 for any message. */
static void degenerate_signature_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    static const size_t lengths[] = {1, 32, 63, 64, 65, 128, 255, 256, 257, 512, 1024, 1025};
    unsigned char bytes[1025];
    for (int kind = 0; kind < JWT_TESTING_KINDS; kind++) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            for (int fill = 0; fill <= 255; fill += 255) {
                memset(bytes, fill, sizeof(bytes));
                struct buffer token = with_signature(fixture, kind, bytes, lengths[i]);
                assert_int_equal(jwt_testing_verify(fixture, &token), JWT_BAD_SIGNATURE);
            }
        }
    }
}

static void text_that_is_not_a_token_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    static const char *const texts[] = {"",   ".",   "..",    "...",    "a",     "a.b",
                                        "a.", ".b.", "a..c",  ".b.c",   "a.b.c", "....",
                                        " ",  "\0",  "ey.ey", "ey.ey.", "?.?.?"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(jwt_testing_verify_with(fixture->keys, slice_of(texts[i])), JWT_MALFORMED);
}

static void token_length_is_bounded(void **state)
{
    struct jwt_testing *fixture = *state;
    struct buffer claims = BUFFER_INIT;
    buffer_append_text(&claims, "{\"sub\":\"alice\",\"exp\":1700000060,\"x\":\"");
    while (claims.len < 5500)
        buffer_append_byte(&claims, 'x');
    size_t fits = claims.len;
    for (size_t len = fits; len <= 6500; len += 1000) {
        while (claims.len < len)
            buffer_append_byte(&claims, 'x');
        struct buffer whole = BUFFER_INIT;
        buffer_append_slice(&whole, buffer_slice(&claims));
        buffer_append(&whole, "\"}", 3);
        struct buffer token = jwt_testing_sign(fixture->signer[JWT_TESTING_RSA_2048],
                                               "{\"alg\":\"RS256\"}", whole.data);
        assert_int_equal(jwt_testing_verify(fixture, &token), len == fits ? JWT_OK : JWT_TOO_LONG);
        buffer_free(&whole);
    }
    buffer_free(&claims);
}

/* A token of the old key is valid until the old key is removed, one of the new key from then on. */
static void rotation_decides_which_tokens_are_accepted(void **state)
{
    struct jwt_testing *fixture = *state;
    EVP_PKEY *next = key_testing_p256();
    struct jwt_signer *next_signer = key_testing_signer(next, "next");
    EVP_PKEY *pkeys[] = {fixture->pkey[JWT_TESTING_P256], next};
    const char *names[] = {"p256", "next"};
    struct key_set *sets[] = {jwt_testing_set(pkeys, names, 1), jwt_testing_set(pkeys, names, 2),
                              jwt_testing_set(pkeys + 1, names + 1, 1)};
    struct buffer old_token = jwt_testing_token(fixture, JWT_TESTING_P256);
    struct buffer new_token =
        jwt_testing_sign(next_signer, "{\"alg\":\"ES256\",\"kid\":\"next\"}", JWT_TESTING_CLAIMS);
    static const enum jwt_result expected_old[] = {JWT_OK, JWT_OK, JWT_UNKNOWN_KEY};
    static const enum jwt_result expected_new[] = {JWT_UNKNOWN_KEY, JWT_OK, JWT_OK};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jwt_testing_verify_with(sets[i], buffer_slice(&old_token)),
                         expected_old[i]);
        assert_int_equal(jwt_testing_verify_with(sets[i], buffer_slice(&new_token)),
                         expected_new[i]);
        key_set_release(&sets[i]);
    }
    buffer_free(&old_token);
    buffer_free(&new_token);
    jwt_signer_free(&next_signer);
    EVP_PKEY_free(next);
}

struct verifying_thread {
    const struct jwt_testing *fixture;
    struct buffer token;
    int good;
};

static void *verify_many(void *argument)
{
    struct verifying_thread *self = argument;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    struct identity identity;
    for (int i = 0; i < 200; i++)
        self->good += jwt_verify(self->fixture->keys, &policy, buffer_slice(&self->token),
                                 JWT_TESTING_NOW_MS, &identity) == JWT_OK;
    return NULL;
}

static void many_threads_can_verify_at_once(void **state)
{
    struct verifying_thread verifying[2 * JWT_TESTING_KINDS];
    pthread_t threads[2 * JWT_TESTING_KINDS];
    for (int i = 0; i < 2 * JWT_TESTING_KINDS; i++) {
        verifying[i] =
            (struct verifying_thread){*state, jwt_testing_token(*state, i % JWT_TESTING_KINDS), 0};
        assert_int_equal(pthread_create(&threads[i], NULL, verify_many, &verifying[i]), 0);
    }
    for (int i = 0; i < 2 * JWT_TESTING_KINDS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(verifying[i].good, 200);
        buffer_free(&verifying[i].token);
    }
}

static void every_result_has_a_label_and_a_text(void **state)
{
    (void)state;
    for (int i = 0; i < JWT_RESULT_COUNT; i++) {
        assert_non_null(jwt_result_label(i));
        assert_non_null(jwt_result_text(i));
    }
    assert_string_equal(jwt_result_label(JWT_EXPIRED), "expired");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signed_token_is_accepted_until_it_expires),
        cmocka_unit_test(token_without_kid_is_accepted),
        cmocka_unit_test(changed_token_is_refused),
        cmocka_unit_test(truncated_token_is_refused),
        cmocka_unit_test(token_with_extra_text_is_refused),
        cmocka_unit_test(es256_signature_in_der_is_refused),
        cmocka_unit_test(degenerate_signature_is_refused),
        cmocka_unit_test(text_that_is_not_a_token_is_refused),
        cmocka_unit_test(token_length_is_bounded),
        cmocka_unit_test(rotation_decides_which_tokens_are_accepted),
        cmocka_unit_test(many_threads_can_verify_at_once),
        cmocka_unit_test(every_result_has_a_label_and_a_text),
    };
    return cmocka_run_group_tests(tests, jwt_testing_set_up, jwt_testing_tear_down);
}

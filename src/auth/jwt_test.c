#include "auth/jwt.h"

#include "auth/es256.h"
#include "auth/jwt_sign.h"
#include "auth/key_testing.h"
#include "base/base64url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdlib.h>

static const int64_t now_ms = INT64_C(1700000000000);

#define CLAIMS "{\"sub\":\"alice\",\"exp\":1700000060,\"scope\":\"admin\"}"

enum kind { RSA_2048, P256, ED25519, KIND_COUNT };

static const char *const kids[KIND_COUNT] = {"rsa", "p256", "ed25519"};
static const char *const algorithms[KIND_COUNT] = {"RS256", "ES256", "EdDSA"};

struct fixture {
    EVP_PKEY *pkey[KIND_COUNT];
    struct jwt_signer *signer[KIND_COUNT];
    struct key_set *keys; /* all three, each by its kid */
};

static struct key_set *make_set(EVP_PKEY *const *pkeys, const char *const *names, size_t count)
{
    struct buffer text = BUFFER_INIT;
    struct auth_error error;
    buffer_append_text(&text, "{\"keys\":[");
    for (size_t i = 0; i < count; i++) {
        buffer_append_text(&text, i ? "," : "");
        key_testing_jwk(pkeys[i], names[i], "", &text);
    }
    buffer_append_text(&text, "]}");
    struct key_set *set = key_testing_parse(buffer_slice(&text), &error);
    buffer_free(&text);
    assert_non_null(set);
    return set;
}

static int make_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->pkey[RSA_2048] = key_testing_rsa(2048);
    fixture->pkey[P256] = key_testing_p256();
    fixture->pkey[ED25519] = key_testing_ed25519();
    for (int i = 0; i < KIND_COUNT; i++)
        fixture->signer[i] = key_testing_signer(fixture->pkey[i], kids[i]);
    fixture->keys = make_set(fixture->pkey, kids, KIND_COUNT);
    *state = fixture;
    return 0;
}

static int free_fixture(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < KIND_COUNT; i++) {
        EVP_PKEY_free(fixture->pkey[i]);
        jwt_signer_free(&fixture->signer[i]);
    }
    key_set_release(&fixture->keys);
    free(fixture);
    return 0;
}

static enum jwt_result verify_with(const struct key_set *keys, struct slice token)
{
    struct identity identity;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    /* An exact copy on the heap, so that reading past the end is found. */
    char *copy = malloc(token.len + !token.len);
    memcpy(copy, token.data, token.len);
    enum jwt_result result =
        jwt_verify(keys, &policy, (struct slice){copy, token.len}, now_ms, &identity);
    free(copy);
    assert_int_equal(ERR_peek_error(), 0);
    if (result == JWT_OK)
        assert_true(slice_is(identity_user(&identity), "alice"));
    return result;
}

/* Verifies and frees. */
static enum jwt_result verify(const struct fixture *fixture, struct buffer *token)
{
    enum jwt_result result = verify_with(fixture->keys, buffer_slice(token));
    buffer_free(token);
    return result;
}

static struct buffer sign(const struct jwt_signer *signer, const char *header, const char *claims)
{
    struct buffer token = BUFFER_INIT;
    assert_true(jwt_sign_raw(signer, slice_of(header), slice_of(claims), &token));
    return token;
}

static struct buffer good_token(const struct fixture *fixture, enum kind kind)
{
    struct jwt_sign_claims claims = {
        .user = SLICE("alice"),
        .scope = SLICE("deliver"),
        .issuer = SLICE("me"),
        .audience = SLICE("chat"),
        .issued_at_wall_ms = now_ms,
        .expires_at_wall_ms = now_ms + 1500,
    };
    struct buffer token = BUFFER_INIT;
    assert_true(jwt_sign(fixture->signer[kind], &claims, &token));
    return token;
}

static void accepts_what_it_signed(void **state)
{
    struct fixture *fixture = *state;
    struct jwt_policy policy = {.issuer = SLICE("me"), .audience = SLICE("chat")};
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct identity identity;
        struct buffer token = good_token(fixture, kind);
        struct slice text = buffer_slice(&token);
        assert_int_equal(jwt_verify(fixture->keys, &policy, text, now_ms, &identity), JWT_OK);
        assert_true(slice_is(identity_user(&identity), "alice"));
        assert_int_equal(identity.scopes, IDENTITY_SCOPE_DELIVER);
        assert_int_equal(identity.expires_at_wall_ms, now_ms + 1500);
        assert_int_equal(jwt_verify(fixture->keys, &policy, text, now_ms + 1500, &identity),
                         JWT_EXPIRED);
        buffer_free(&token);
    }
}

static void accepts_tokens_without_kid(void **state)
{
    struct fixture *fixture = *state;
    struct buffer token = sign(fixture->signer[P256], "{\"alg\":\"ES256\"}", CLAIMS);
    assert_int_equal(verify(fixture, &token), JWT_OK);
    /* Two keys fit; the second one is right. */
    EVP_PKEY *other = key_testing_p256();
    EVP_PKEY *pkeys[] = {other, fixture->pkey[P256]};
    const char *names[] = {"a", "b"};
    struct key_set *set = make_set(pkeys, names, 2);
    token = sign(fixture->signer[P256], "{\"alg\":\"ES256\"}", CLAIMS);
    assert_int_equal(verify_with(set, buffer_slice(&token)), JWT_OK);
    buffer_free(&token);
    token = sign(fixture->signer[P256], "{\"alg\":\"ES256\",\"kid\":\"a\"}", CLAIMS);
    assert_int_equal(verify_with(set, buffer_slice(&token)), JWT_BAD_SIGNATURE);
    buffer_free(&token);
    key_set_release(&set);
    EVP_PKEY_free(other);
}

/* The classic: the RSA public key, which everybody has, as the secret of an HMAC. */
static void refuses_hmac_with_the_public_key(void **state)
{
    struct fixture *fixture = *state;
    static const char *const headers[] = {
        "{\"alg\":\"HS256\",\"kid\":\"rsa\"}",
        "{\"alg\":\"HS256\"}",
        "{\"alg\":\"RS256\",\"kid\":\"rsa\"}",
    };
    struct buffer pem = BUFFER_INIT;
    key_testing_public_pem(fixture->pkey[RSA_2048], &pem);
    for (size_t i = 0; i < 3; i++) {
        struct buffer token = BUFFER_INIT;
        unsigned char mac[32];
        base64url_encode(&token, headers[i], strlen(headers[i]));
        buffer_append_byte(&token, '.');
        base64url_encode(&token, CLAIMS, strlen(CLAIMS));
        assert_non_null(HMAC(EVP_sha256(), pem.data, (int)pem.len, (unsigned char *)token.data,
                             token.len, mac, NULL));
        buffer_append_byte(&token, '.');
        base64url_encode(&token, mac, sizeof(mac));
        assert_int_equal(verify(fixture, &token), i < 2 ? JWT_WRONG_ALGORITHM : JWT_BAD_SIGNATURE);
    }
    buffer_free(&pem);
}

static void refuses_every_other_algorithm(void **state)
{
    struct fixture *fixture = *state;
    static const char *const names[] = {"none",  "None",  "NONE",  "nOnE",  "",       "HS256",
                                        "RS384", "PS256", "ES384", "rs256", "RS256 ", "ES256K"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct buffer header = BUFFER_INIT;
        buffer_printf(&header, "{\"alg\":\"%s\",\"kid\":\"rsa\"}", names[i]);
        buffer_append_byte(&header, '\0');
        struct buffer token = sign(fixture->signer[RSA_2048], header.data, CLAIMS);
        assert_int_equal(verify(fixture, &token), JWT_WRONG_ALGORITHM);
        buffer_free(&header);
    }
}

static void refuses_an_unsigned_token(void **state)
{
    struct fixture *fixture = *state;
    struct buffer token = sign(fixture->signer[RSA_2048], "{\"alg\":\"none\"}", CLAIMS);
    token.len = (size_t)((char *)memrchr(token.data, '.', token.len) - token.data) + 1;
    assert_int_equal(verify_with(fixture->keys, buffer_slice(&token)), JWT_MALFORMED);
    token.len--;
    assert_int_equal(verify(fixture, &token), JWT_MALFORMED);
}

/* Every signer claims every algorithm under every name; only its own may pass. */
static void binds_the_algorithm_to_the_key(void **state)
{
    struct fixture *fixture = *state;
    for (int signer = 0; signer < KIND_COUNT; signer++) {
        for (int algorithm = 0; algorithm < KIND_COUNT; algorithm++) {
            for (int kid = 0; kid < KIND_COUNT; kid++) {
                struct buffer header = BUFFER_INIT;
                buffer_printf(&header, "{\"alg\":\"%s\",\"kid\":\"%s\"}", algorithms[algorithm],
                              kids[kid]);
                buffer_append_byte(&header, '\0');
                struct buffer token = sign(fixture->signer[signer], header.data, CLAIMS);
                enum jwt_result expected = algorithm != kid ? JWT_WRONG_ALGORITHM
                                           : signer != kid  ? JWT_BAD_SIGNATURE
                                                            : JWT_OK;
                assert_int_equal(verify(fixture, &token), expected);
                buffer_free(&header);
            }
        }
    }
}

static void refuses_unknown_and_injected_kids(void **state)
{
    struct fixture *fixture = *state;
    static const char *const headers[] = {
        "{\"alg\":\"RS256\",\"kid\":\"other\"}",
        "{\"alg\":\"RS256\",\"kid\":\"\"}",
        "{\"alg\":\"RS256\",\"kid\":\"rsa\\u0000\"}",
        "{\"alg\":\"RS256\",\"kid\":\"../../../../dev/null\"}",
        "{\"alg\":\"RS256\",\"kid\":\"' OR '1'='1\"}",
        "{\"alg\":\"RS256\",\"kid\":\"rsa|p256\"}",
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct buffer token = sign(fixture->signer[RSA_2048], headers[i], CLAIMS);
        assert_int_equal(verify(fixture, &token), JWT_UNKNOWN_KEY);
    }
}

/* A key the attacker brings along in the header is not looked at. */
static void ignores_keys_in_the_header(void **state)
{
    struct fixture *fixture = *state;
    EVP_PKEY *own = key_testing_p256();
    struct jwt_signer *signer = key_testing_signer(own, "p256");
    struct buffer header = BUFFER_INIT;
    buffer_append_text(&header, "{\"alg\":\"ES256\",\"kid\":\"p256\",\"jwk\":");
    key_testing_jwk(own, "p256", "", &header);
    buffer_append_text(&header, "}");
    buffer_append_byte(&header, '\0');
    struct buffer token = sign(signer, header.data, CLAIMS);
    assert_int_equal(verify(fixture, &token), JWT_BAD_SIGNATURE);
    buffer_free(&header);
    jwt_signer_free(&signer);
    EVP_PKEY_free(own);
}

static void refuses_bad_headers(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *header;
        enum jwt_result expected;
    } cases[] = {
        {"{\"alg\":\"RS256\",\"crit\":[\"exp\"]}", JWT_CRITICAL_EXTENSION},
        {"{\"alg\":\"RS256\",\"b64\":false,\"crit\":[\"b64\"]}", JWT_CRITICAL_EXTENSION},
        {"{\"alg\":\"RS256\",\"crit\":null}", JWT_CRITICAL_EXTENSION},
        {"{\"alg\":\"RS256\",\"alg\":\"RS256\"}", JWT_BAD_HEADER},
        {"{\"alg\":\"none\",\"alg\":\"RS256\"}", JWT_BAD_HEADER},
        {"{\"alg\":\"RS256\",\"kid\":\"x\",\"kid\":\"rsa\"}", JWT_BAD_HEADER},
        {"{\"kid\":\"rsa\"}", JWT_BAD_HEADER},
        {"{\"alg\":[\"RS256\"]}", JWT_BAD_HEADER},
        {"{\"alg\":\"RS256\",\"kid\":7}", JWT_BAD_HEADER},
        {"{\"alg\":\"RS256\"} x", JWT_BAD_HEADER},
        {"{\"alg\":\"RS256\",}", JWT_BAD_HEADER},
        {"[\"RS256\"]", JWT_BAD_HEADER},
        {"RS256", JWT_BAD_HEADER},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer token = sign(fixture->signer[RSA_2048], cases[i].header, CLAIMS);
        assert_int_equal(verify(fixture, &token), cases[i].expected);
    }
}

/* Changes each character of a token in turn. */
static void refuses_any_change(void **state)
{
    struct fixture *fixture = *state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct buffer token = good_token(fixture, kind);
        for (size_t i = 0; i < token.len; i++) {
            char kept = token.data[i];
            token.data[i] = kept == 'A' ? 'B' : 'A';
            assert_int_not_equal(verify_with(fixture->keys, buffer_slice(&token)), JWT_OK);
            token.data[i] = kept;
        }
        assert_int_equal(verify(fixture, &token), JWT_OK);
    }
}

static void refuses_any_truncation(void **state)
{
    struct fixture *fixture = *state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct buffer token = good_token(fixture, kind);
        for (size_t len = 0; len < token.len; len++) {
            struct slice cut = slice_first(buffer_slice(&token), len);
            assert_int_not_equal(verify_with(fixture->keys, cut), JWT_OK);
        }
        buffer_free(&token);
    }
}

static void expect_with_suffix(const struct fixture *fixture, enum kind kind, const char *suffix,
                               enum jwt_result expected)
{
    struct buffer token = good_token(fixture, kind);
    buffer_append_text(&token, suffix);
    assert_int_equal(verify(fixture, &token), expected);
}

static void refuses_extra_text(void **state)
{
    struct fixture *fixture = *state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
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
static struct buffer with_signature(const struct fixture *fixture, enum kind kind,
                                    const unsigned char *signature, size_t len)
{
    struct buffer token = good_token(fixture, kind);
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

static void refuses_an_es256_signature_in_der(void **state)
{
    struct fixture *fixture = *state;
    unsigned char raw[ES256_RAW_BYTES + 2];
    unsigned char der[ES256_DER_BYTES_MAX];
    size_t der_len;
    struct buffer token = good_token(fixture, P256);
    assert_int_equal(signature_of(&token, raw), ES256_RAW_BYTES);
    assert_true(es256_to_der(raw, der, &der_len));
    size_t head = (size_t)((char *)memrchr(token.data, '.', token.len) - token.data) + 1;
    token.len = head;
    base64url_encode(&token, der, der_len);
    assert_int_equal(verify_with(fixture->keys, buffer_slice(&token)), JWT_BAD_SIGNATURE);
    token.len = head;
    base64url_encode(&token, raw, ES256_RAW_BYTES);
    assert_int_equal(verify(fixture, &token), JWT_OK);
}

/* r = s = 0 once passed for any message in a well-known implementation. */
static void refuses_empty_and_degenerate_signatures(void **state)
{
    struct fixture *fixture = *state;
    static const size_t lengths[] = {1, 32, 63, 64, 65, 128, 255, 256, 257, 512, 1024, 1025};
    unsigned char bytes[1025];
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            for (int fill = 0; fill <= 255; fill += 255) {
                memset(bytes, fill, sizeof(bytes));
                struct buffer token = with_signature(fixture, kind, bytes, lengths[i]);
                assert_int_equal(verify(fixture, &token), JWT_BAD_SIGNATURE);
            }
        }
    }
}

static void refuses_what_is_no_token(void **state)
{
    struct fixture *fixture = *state;
    static const char *const texts[] = {"",   ".",   "..",    "...",    "a",     "a.b",
                                        "a.", ".b.", "a..c",  ".b.c",   "a.b.c", "....",
                                        " ",  "\0",  "ey.ey", "ey.ey.", "?.?.?"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(verify_with(fixture->keys, slice_of(texts[i])), JWT_MALFORMED);
}

static void bounds_the_length(void **state)
{
    struct fixture *fixture = *state;
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
        struct buffer token = sign(fixture->signer[RSA_2048], "{\"alg\":\"RS256\"}", whole.data);
        assert_int_equal(verify(fixture, &token), len == fits ? JWT_OK : JWT_TOO_LONG);
        buffer_free(&whole);
    }
    buffer_free(&claims);
}

/* A token of the old key is good until the old key is gone, one of the new key from then on. */
static void rotates(void **state)
{
    struct fixture *fixture = *state;
    EVP_PKEY *next = key_testing_p256();
    struct jwt_signer *next_signer = key_testing_signer(next, "next");
    EVP_PKEY *pkeys[] = {fixture->pkey[P256], next};
    const char *names[] = {"p256", "next"};
    struct key_set *sets[] = {make_set(pkeys, names, 1), make_set(pkeys, names, 2),
                              make_set(pkeys + 1, names + 1, 1)};
    struct buffer old_token = good_token(fixture, P256);
    struct buffer new_token = sign(next_signer, "{\"alg\":\"ES256\",\"kid\":\"next\"}", CLAIMS);
    static const enum jwt_result expected_old[] = {JWT_OK, JWT_OK, JWT_UNKNOWN_KEY};
    static const enum jwt_result expected_new[] = {JWT_UNKNOWN_KEY, JWT_OK, JWT_OK};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(verify_with(sets[i], buffer_slice(&old_token)), expected_old[i]);
        assert_int_equal(verify_with(sets[i], buffer_slice(&new_token)), expected_new[i]);
        key_set_release(&sets[i]);
    }
    buffer_free(&old_token);
    buffer_free(&new_token);
    jwt_signer_free(&next_signer);
    EVP_PKEY_free(next);
}

struct crowd_member {
    const struct fixture *fixture;
    struct buffer token;
    int good;
};

static void *verify_many(void *argument)
{
    struct crowd_member *member = argument;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    struct identity identity;
    for (int i = 0; i < 200; i++)
        member->good += jwt_verify(member->fixture->keys, &policy, buffer_slice(&member->token),
                                   now_ms, &identity) == JWT_OK;
    return NULL;
}

static void verifies_on_many_threads_at_once(void **state)
{
    struct crowd_member members[2 * KIND_COUNT];
    pthread_t threads[2 * KIND_COUNT];
    for (int i = 0; i < 2 * KIND_COUNT; i++) {
        members[i] = (struct crowd_member){*state, good_token(*state, i % KIND_COUNT), 0};
        assert_int_equal(pthread_create(&threads[i], NULL, verify_many, &members[i]), 0);
    }
    for (int i = 0; i < 2 * KIND_COUNT; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(members[i].good, 200);
        buffer_free(&members[i].token);
    }
}

static void has_a_text_for_every_result(void **state)
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
        cmocka_unit_test(accepts_what_it_signed),
        cmocka_unit_test(accepts_tokens_without_kid),
        cmocka_unit_test(refuses_hmac_with_the_public_key),
        cmocka_unit_test(refuses_every_other_algorithm),
        cmocka_unit_test(refuses_an_unsigned_token),
        cmocka_unit_test(binds_the_algorithm_to_the_key),
        cmocka_unit_test(refuses_unknown_and_injected_kids),
        cmocka_unit_test(ignores_keys_in_the_header),
        cmocka_unit_test(refuses_bad_headers),
        cmocka_unit_test(refuses_any_change),
        cmocka_unit_test(refuses_any_truncation),
        cmocka_unit_test(refuses_extra_text),
        cmocka_unit_test(refuses_an_es256_signature_in_der),
        cmocka_unit_test(refuses_empty_and_degenerate_signatures),
        cmocka_unit_test(refuses_what_is_no_token),
        cmocka_unit_test(bounds_the_length),
        cmocka_unit_test(rotates),
        cmocka_unit_test(verifies_on_many_threads_at_once),
        cmocka_unit_test(has_a_text_for_every_result),
    };
    return cmocka_run_group_tests(tests, make_fixture, free_fixture);
}

#include "auth/jwt_testing.h"

#include "auth/keys/key_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

const char *const jwt_testing_kids[JWT_TESTING_KINDS] = {"rsa", "p256", "ed25519"};
const char *const jwt_testing_algorithms[JWT_TESTING_KINDS] = {"RS256", "ES256", "EdDSA"};

struct key_set *jwt_testing_set(EVP_PKEY *const *pkeys, const char *const *names, size_t count)
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

int jwt_testing_set_up(void **state)
{
    struct jwt_testing *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->pkey[JWT_TESTING_RSA_2048] = key_testing_rsa(2048);
    fixture->pkey[JWT_TESTING_P256] = key_testing_p256();
    fixture->pkey[JWT_TESTING_ED25519] = key_testing_ed25519();
    for (int i = 0; i < JWT_TESTING_KINDS; i++)
        fixture->signer[i] = key_testing_signer(fixture->pkey[i], jwt_testing_kids[i]);
    fixture->keys = jwt_testing_set(fixture->pkey, jwt_testing_kids, JWT_TESTING_KINDS);
    *state = fixture;
    return 0;
}

int jwt_testing_tear_down(void **state)
{
    struct jwt_testing *fixture = *state;
    for (int i = 0; i < JWT_TESTING_KINDS; i++) {
        EVP_PKEY_free(fixture->pkey[i]);
        jwt_signer_free(&fixture->signer[i]);
    }
    key_set_release(&fixture->keys);
    free(fixture);
    return 0;
}

enum jwt_result jwt_testing_verify_with(const struct key_set *keys, struct slice token)
{
    struct identity identity;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    /* An exact copy on the heap, so that the sanitizer detects an over-read. */
    char *copy = malloc(token.len + !token.len);
    memcpy(copy, token.data, token.len);
    enum jwt_result result =
        jwt_verify(keys, &policy, (struct slice){copy, token.len}, JWT_TESTING_NOW_MS, &identity);
    free(copy);
    assert_int_equal(ERR_peek_error(), 0);
    if (result == JWT_OK)
        assert_true(slice_is(identity_user(&identity), "alice"));
    return result;
}

enum jwt_result jwt_testing_verify(const struct jwt_testing *fixture, struct buffer *token)
{
    enum jwt_result result = jwt_testing_verify_with(fixture->keys, buffer_slice(token));
    buffer_free(token);
    return result;
}

struct buffer jwt_testing_sign(const struct jwt_signer *signer, const char *header,
                               const char *claims)
{
    struct buffer token = BUFFER_INIT;
    assert_true(jwt_sign_raw(signer, slice_of(header), slice_of(claims), &token));
    return token;
}

struct buffer jwt_testing_token(const struct jwt_testing *fixture, enum jwt_testing_kind kind)
{
    struct jwt_sign_claims claims = {
        .user = SLICE("alice"),
        .scope = SLICE("deliver"),
        .issuer = SLICE("me"),
        .audience = SLICE("chat"),
        .issued_at_wall_ms = JWT_TESTING_NOW_MS,
        .expires_at_wall_ms = JWT_TESTING_NOW_MS + 1500,
    };
    struct buffer token = BUFFER_INIT;
    assert_true(jwt_sign(fixture->signer[kind], &claims, &token));
    return token;
}

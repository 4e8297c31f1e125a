/* Tests forged tokens: other algorithms, other keys, malicious headers. */
#include "auth/jwt.h"

#include "auth/jwt_testing.h"
#include "auth/keys/key_testing.h"
#include "text/base64url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <unistd.h>

/* The classic attack: the RSA public key, which is public, as the secret of an HMAC. */
static void hmac_with_the_public_key_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    static const char *const headers[] = {
        "{\"alg\":\"HS256\",\"kid\":\"rsa\"}",
        "{\"alg\":\"HS256\"}",
        "{\"alg\":\"RS256\",\"kid\":\"rsa\"}",
    };
    struct buffer pem = BUFFER_INIT;
    key_testing_public_pem(fixture->pkey[JWT_TESTING_RSA_2048], &pem);
    for (size_t i = 0; i < 3; i++) {
        struct buffer token = BUFFER_INIT;
        unsigned char mac[32];
        base64url_encode(&token, headers[i], strlen(headers[i]));
        buffer_append_byte(&token, '.');
        base64url_encode(&token, JWT_TESTING_CLAIMS, strlen(JWT_TESTING_CLAIMS));
        assert_non_null(HMAC(EVP_sha256(), pem.data, (int)pem.len, (unsigned char *)token.data,
                             token.len, mac, NULL));
        buffer_append_byte(&token, '.');
        base64url_encode(&token, mac, sizeof(mac));
        assert_int_equal(jwt_testing_verify(fixture, &token),
                         i < 2 ? JWT_WRONG_ALGORITHM : JWT_BAD_SIGNATURE);
    }
    buffer_free(&pem);
}

static void unknown_algorithm_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    static const char *const names[] = {"none",  "None",  "NONE",  "nOnE",  "",       "HS256",
                                        "RS384", "PS256", "ES384", "rs256", "RS256 ", "ES256K"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct buffer header = BUFFER_INIT;
        buffer_printf(&header, "{\"alg\":\"%s\",\"kid\":\"rsa\"}", names[i]);
        buffer_append_byte(&header, '\0');
        struct buffer token = jwt_testing_sign(fixture->signer[JWT_TESTING_RSA_2048], header.data,
                                               JWT_TESTING_CLAIMS);
        assert_int_equal(jwt_testing_verify(fixture, &token), JWT_WRONG_ALGORITHM);
        buffer_free(&header);
    }
}

static void unsigned_token_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    struct buffer token = jwt_testing_sign(fixture->signer[JWT_TESTING_RSA_2048],
                                           "{\"alg\":\"none\"}", JWT_TESTING_CLAIMS);
    token.len = (size_t)((char *)memrchr(token.data, '.', token.len) - token.data) + 1;
    assert_int_equal(jwt_testing_verify_with(fixture->keys, buffer_slice(&token)), JWT_MALFORMED);
    token.len--;
    assert_int_equal(jwt_testing_verify(fixture, &token), JWT_MALFORMED);
}

/* Every signer claims every algorithm and every name; only its own are accepted. */
static void algorithm_is_bound_to_the_key(void **state)
{
    struct jwt_testing *fixture = *state;
    for (int signer = 0; signer < JWT_TESTING_KINDS; signer++) {
        for (int algorithm = 0; algorithm < JWT_TESTING_KINDS; algorithm++) {
            for (int kid = 0; kid < JWT_TESTING_KINDS; kid++) {
                struct buffer header = BUFFER_INIT;
                buffer_printf(&header, "{\"alg\":\"%s\",\"kid\":\"%s\"}",
                              jwt_testing_algorithms[algorithm], jwt_testing_kids[kid]);
                buffer_append_byte(&header, '\0');
                struct buffer token =
                    jwt_testing_sign(fixture->signer[signer], header.data, JWT_TESTING_CLAIMS);
                enum jwt_result expected = algorithm != kid ? JWT_WRONG_ALGORITHM
                                           : signer != kid  ? JWT_BAD_SIGNATURE
                                                            : JWT_OK;
                assert_int_equal(jwt_testing_verify(fixture, &token), expected);
                buffer_free(&header);
            }
        }
    }
}

static void unknown_or_injected_kid_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
    static const char *const headers[] = {
        "{\"alg\":\"RS256\",\"kid\":\"other\"}",
        "{\"alg\":\"RS256\",\"kid\":\"\"}",
        "{\"alg\":\"RS256\",\"kid\":\"rsa\\u0000\"}",
        "{\"alg\":\"RS256\",\"kid\":\"../../../../dev/null\"}",
        "{\"alg\":\"RS256\",\"kid\":\"' OR '1'='1\"}",
        "{\"alg\":\"RS256\",\"kid\":\"rsa|p256\"}",
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct buffer token =
            jwt_testing_sign(fixture->signer[JWT_TESTING_RSA_2048], headers[i], JWT_TESTING_CLAIMS);
        assert_int_equal(jwt_testing_verify(fixture, &token), JWT_UNKNOWN_KEY);
    }
}

/* A key in the attacker's header is ignored. */
static void key_in_the_header_is_ignored(void **state)
{
    struct jwt_testing *fixture = *state;
    EVP_PKEY *own = key_testing_p256();
    struct jwt_signer *signer = key_testing_signer(own, "p256");
    struct buffer header = BUFFER_INIT;
    buffer_append_text(&header, "{\"alg\":\"ES256\",\"kid\":\"p256\",\"jwk\":");
    key_testing_jwk(own, "p256", "", &header);
    buffer_append_text(&header, "}");
    buffer_append_byte(&header, '\0');
    struct buffer token = jwt_testing_sign(signer, header.data, JWT_TESTING_CLAIMS);
    assert_int_equal(jwt_testing_verify(fixture, &token), JWT_BAD_SIGNATURE);
    buffer_free(&header);
    jwt_signer_free(&signer);
    EVP_PKEY_free(own);
}

static void bad_header_is_refused(void **state)
{
    struct jwt_testing *fixture = *state;
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
        struct buffer token = jwt_testing_sign(fixture->signer[JWT_TESTING_RSA_2048],
                                               cases[i].header, JWT_TESTING_CLAIMS);
        assert_int_equal(jwt_testing_verify(fixture, &token), cases[i].expected);
    }
}

static struct buffer hmac_token(const char *header, struct slice secret)
{
    struct buffer token = BUFFER_INIT;
    unsigned char mac[32];
    base64url_encode(&token, header, strlen(header));
    buffer_append_byte(&token, '.');
    base64url_encode(&token, JWT_TESTING_CLAIMS, strlen(JWT_TESTING_CLAIMS));
    HMAC(EVP_sha256(), secret.data, (int)secret.len, (const unsigned char *)token.data, token.len,
         mac, NULL);
    buffer_append_byte(&token, '.');
    base64url_encode(&token, mac, sizeof(mac));
    return token;
}

/* A shared secret verifies HS256 only, and no other key does, also if both are in one set. */
static void shared_secret_is_for_hs256_only(void **state)
{
    struct jwt_testing *fixture = *state;
    static const struct slice secret = SLICE("0123456789abcdef0123456789abcdef");
    char path[] = "/tmp/rollcall-secret-XXXXXX";
    struct auth_error error;
    struct buffer pem = BUFFER_INIT;
    int fd = mkstemp(path);
    assert_int_equal(write(fd, secret.data, secret.len), secret.len);
    struct key_set *shared = key_set_load_secret(path, &error);
    assert_non_null(shared);
    const struct key_set *sets[] = {fixture->keys, NULL, shared};
    struct key_set *united = key_set_unite(sets, 3);
    assert_non_null(united);
    key_testing_public_pem(fixture->pkey[JWT_TESTING_RSA_2048], &pem);
    const struct {
        const char *header;
        struct slice secret;
        enum jwt_result expected;
    } cases[] = {
        {"{\"alg\":\"HS256\"}", secret, JWT_OK},
        {"{\"alg\":\"HS256\",\"kid\":\"unknown\"}", secret, JWT_OK},
        {"{\"alg\":\"HS256\",\"kid\":\"rsa\"}", secret, JWT_WRONG_ALGORITHM},
        {"{\"alg\":\"RS256\",\"kid\":\"rsa\"}", secret, JWT_BAD_SIGNATURE},
        {"{\"alg\":\"HS384\"}", secret, JWT_WRONG_ALGORITHM},
        {"{\"alg\":\"HS256\"}", SLICE("0123456789abcdef0123456789abcdeX"), JWT_BAD_SIGNATURE},
        {"{\"alg\":\"HS256\"}", SLICE(""), JWT_BAD_SIGNATURE},
        {"{\"alg\":\"HS256\"}", buffer_slice(&pem), JWT_BAD_SIGNATURE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer token = hmac_token(cases[i].header, cases[i].secret);
        assert_int_equal(jwt_testing_verify_with(united, buffer_slice(&token)), cases[i].expected);
        assert_int_not_equal(jwt_testing_verify_with(fixture->keys, buffer_slice(&token)), JWT_OK);
        buffer_free(&token);
    }
    assert_true(key_set_is_within(shared, united));
    assert_true(key_set_is_within(fixture->keys, united));
    assert_false(key_set_is_within(united, fixture->keys));
    assert_int_equal(ftruncate(fd, 31), 0);
    assert_null(key_set_load_secret(path, &error));
    assert_non_null(strstr(error.text, "31 bytes"));
    close(fd);
    unlink(path);
    buffer_free(&pem);
    key_set_release(&united);
    key_set_release(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hmac_with_the_public_key_is_refused),
        cmocka_unit_test(unknown_algorithm_is_refused),
        cmocka_unit_test(unsigned_token_is_refused),
        cmocka_unit_test(algorithm_is_bound_to_the_key),
        cmocka_unit_test(unknown_or_injected_kid_is_refused),
        cmocka_unit_test(key_in_the_header_is_ignored),
        cmocka_unit_test(bad_header_is_refused),
        cmocka_unit_test(shared_secret_is_for_hs256_only),
    };
    return cmocka_run_group_tests(tests, jwt_testing_set_up, jwt_testing_tear_down);
}

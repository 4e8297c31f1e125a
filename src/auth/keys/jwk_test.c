#include "auth/keys/jwk.h"

#include "auth/keys/key_testing.h"
#include "text/base64url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>

/* The example keys of RFC 7638 §3.1, RFC 7515 §A.3 and RFC 8037 §A.2. */
static const char rsa_example[] =
    "{\"kty\":\"RSA\",\"n\":\"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1R"
    "K7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4Qy"
    "Q5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-"
    "bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw\","
    "\"e\":\"AQAB\",\"alg\":\"RS256\",\"kid\":\"2011-04-29\"}";
static const char p256_example[] =
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}";
static const char ed25519_example[] =
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}";

static EVP_PKEY *read_example(const char *text)
{
    struct buffer copy = BUFFER_INIT;
    struct json json;
    struct jwk jwk;
    buffer_append_text(&copy, text);
    json_init(&json, copy.data, copy.len);
    assert_int_equal(jwk_read(&json, &jwk), JWK_OK);
    assert_true(json_done(&json));
    buffer_free(&copy);
    return jwk.pkey;
}

static void expect_thumbprint(const char *example, const char *expected)
{
    char thumbprint[KEY_THUMBPRINT_LEN];
    EVP_PKEY *pkey = read_example(example);
    assert_true(jwk_thumbprint(pkey, thumbprint));
    assert_true(slice_is((struct slice){thumbprint, sizeof(thumbprint)}, expected));
    EVP_PKEY_free(pkey);
}

static void thumbprints_match_the_rfcs(void **state)
{
    (void)state;
    expect_thumbprint(rsa_example, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    expect_thumbprint(ed25519_example, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

/* Verifies text.signature of an example token. */
static bool verify_example(const char *example, const char *signed_text, const char *signature)
{
    struct key key;
    struct auth_error error;
    unsigned char bytes[256];
    size_t len;
    assert_true(base64url_decode(slice_of(signature), bytes, &len));
    assert_true(key_init(&key, read_example(example), SLICE_NONE, &error));
    bool good = key_verify(&key, slice_of(signed_text), bytes, len);
    bytes[len - 1] ^= 1;
    assert_false(key_verify(&key, slice_of(signed_text), bytes, len));
    key_release(&key);
    return good;
}

static void signatures_of_the_rfcs_are_verified(void **state)
{
    (void)state;
    assert_true(verify_example(
        p256_example,
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl"
        "LmNvbS9pc19yb290Ijp0cnVlfQ",
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"));
    assert_true(verify_example(
        ed25519_example, "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"));
}

static void expect_round_trip(EVP_PKEY *pkey)
{
    struct buffer text = BUFFER_INIT;
    assert_true(jwk_write(&text, pkey));
    buffer_append_byte(&text, '\0');
    EVP_PKEY *again = read_example(text.data);
    assert_int_equal(EVP_PKEY_eq(pkey, again), 1);
    EVP_PKEY_free(again);
    EVP_PKEY_free(pkey);
    buffer_free(&text);
}

static void written_key_reads_back(void **state)
{
    (void)state;
    expect_round_trip(key_testing_rsa(2048));
    for (int i = 0; i < 300; i++) /* some have coordinates with leading zeros */
        expect_round_trip(key_testing_p256());
    expect_round_trip(key_testing_ed25519());
}

/* The output never contains bytes of the private key. */
static void only_the_public_half_is_written(void **state)
{
    (void)state;
    struct buffer text = BUFFER_INIT;
    EVP_PKEY *pkey = key_testing_rsa(2048);
    assert_true(jwk_write(&text, pkey));
    assert_null(memmem(text.data, text.len, "\"d\"", 3));
    assert_null(memmem(text.data, text.len, "\"p\"", 3));
    buffer_free(&text);
    EVP_PKEY_free(pkey);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thumbprints_match_the_rfcs),
        cmocka_unit_test(signatures_of_the_rfcs_are_verified),
        cmocka_unit_test(written_key_reads_back),
        cmocka_unit_test(only_the_public_half_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

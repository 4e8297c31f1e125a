#include "auth/keys/key_set.h"

#include "auth/keys/jwk.h"
#include "auth/keys/key_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fixture {
    EVP_PKEY *rsa;
    EVP_PKEY *p256;
    EVP_PKEY *ed25519;
};

static int make_keys(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){key_testing_rsa(2048), key_testing_p256(), key_testing_ed25519()};
    *state = &fixture;
    return 0;
}

static int free_keys(void **state)
{
    struct fixture *fixture = *state;
    EVP_PKEY_free(fixture->rsa);
    EVP_PKEY_free(fixture->p256);
    EVP_PKEY_free(fixture->ed25519);
    return 0;
}

/* Expects the text to load as `count` keys. Frees the text. */
static struct key_set *expect_keys(struct buffer *text, size_t count)
{
    struct auth_error error = {""};
    struct key_set *set = key_testing_parse(buffer_slice(text), &error);
    buffer_free(text);
    assert_string_equal(error.text, "");
    assert_non_null(set);
    assert_int_equal(key_set_count(set), count);
    return set;
}

/* Expects a refusal whose error names the source and contains `expected`. Frees the text. */
static void expect_refusal(struct buffer *text, const char *expected)
{
    struct auth_error error = {""};
    assert_null(key_testing_parse(buffer_slice(text), &error));
    buffer_free(text);
    assert_true(slice_starts_with(slice_of(error.text), SLICE("keys: ")));
    if (!strstr(error.text, expected))
        fail_msg("\"%s\" does not say \"%s\"", error.text, expected);
}

static void refuse_text(const char *text, const char *expected)
{
    struct buffer copy = BUFFER_INIT;
    buffer_append_text(&copy, text);
    expect_refusal(&copy, expected);
}

/* Writes a JWK set around the output of key_testing_jwk(). */
static struct buffer jwks(const EVP_PKEY *pkey, const char *kid, const char *extra)
{
    struct buffer text = BUFFER_INIT;
    buffer_append_text(&text, " {\"keys\":[");
    key_testing_jwk(pkey, kid, extra, &text);
    buffer_append_text(&text, "]}\n");
    return text;
}

static void concatenated_pem_keys_are_read(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = BUFFER_INIT;
    buffer_append_text(&text, "# keys of the issuer\n");
    key_testing_public_pem(keys->rsa, &text);
    buffer_append_text(&text, "\nthe next one\n");
    key_testing_public_pem(keys->p256, &text);
    key_testing_public_pem(keys->ed25519, &text);
    struct key_set *set = expect_keys(&text, 3);
    struct key_set_candidates found;
    assert_int_equal(key_set_choose(set, SLICE_NONE, KEY_ES256, &found), KEY_SET_CHOSEN);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.keys[0]->algorithm, KEY_ES256);
    key_set_release(&set);
    assert_null(set);
}

static void append_certificate(EVP_PKEY *pkey, struct buffer *out)
{
    X509 *certificate = X509_new();
    X509_set_pubkey(certificate, pkey);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
    X509_gmtime_adj(X509_getm_notAfter(certificate), -3600);
    assert_true(X509_sign(certificate, pkey, EVP_sha256()) > 0);
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate);
    char *text;
    long len = BIO_get_mem_data(bio, &text);
    buffer_append(out, text, (size_t)len);
    BIO_free(bio);
    X509_free(certificate);
}

static void key_of_a_certificate_is_read(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = BUFFER_INIT;
    append_certificate(keys->rsa, &text);
    struct key_set *set = expect_keys(&text, 1);
    key_set_release(&set);
}

static void file_with_a_private_key_is_refused(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = BUFFER_INIT;
    key_testing_public_pem(keys->p256, &text);
    key_testing_private_pem(keys->rsa, &text);
    expect_refusal(&text, "PEM block 2 is a private key, expected public keys only");
    text = jwks(keys->rsa, "a", ",\"d\":\"AQAB\"");
    expect_refusal(&text, "key 1 is a private key");
    text = jwks(keys->ed25519, "a", ",\"d\":\"AQAB\"");
    expect_refusal(&text, "key 1 is a private key");
    /* A private key is refused even in an entry that would be skipped. */
    text = jwks(keys->rsa, "a", ",\"use\":\"enc\",\"qi\":\"AQAB\"");
    expect_refusal(&text, "key 1 is a private key");
}

static void file_with_a_symmetric_key_is_refused(void **state)
{
    (void)state;
    refuse_text("{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"}]}", "key 1 is a symmetric key");
    refuse_text("{\"keys\":[{\"kty\":\"oct\"}]}", "key 1 is a symmetric key");
}

static void weak_or_unknown_key_is_refused(void **state)
{
    (void)state;
    EVP_PKEY *weak = key_testing_rsa(1024);
    struct buffer text = BUFFER_INIT;
    key_testing_public_pem(weak, &text);
    expect_refusal(&text, "RSA key of 1024 bits, expected 2048 to 8192");
    EVP_PKEY_free(weak);
    EVP_PKEY *other_curve = EVP_EC_gen("P-384");
    key_testing_public_pem(other_curve, &text);
    expect_refusal(&text, "expected P-256");
    EVP_PKEY_free(other_curve);
    EVP_PKEY *x25519 = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    key_testing_public_pem(x25519, &text);
    expect_refusal(&text, "unknown type");
    EVP_PKEY_free(x25519);
}

/* Overwrites the bytes after the first `marker` with `text`. */
static void overwrite_after(struct buffer *buffer, struct slice marker, struct slice text)
{
    char *at = memmem(buffer->data, buffer->len, marker.data, marker.len);
    assert_non_null(at);
    memcpy(at + marker.len, text.data, text.len);
}

/* With an exponent of 1 every number is a signature of itself. */
static void invalid_rsa_exponent_is_refused(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = jwks(keys->rsa, "a", "");
    overwrite_after(&text, SLICE("\"e\":\""), SLICE("AAAB"));
    expect_refusal(&text, "exponent");
    text = jwks(keys->rsa, "a", "");
    overwrite_after(&text, SLICE("\"e\":\""), SLICE("AQAA"));
    expect_refusal(&text, "exponent");
}

static void point_off_the_curve_is_refused(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = jwks(keys->p256, "a", "");
    overwrite_after(&text, SLICE("\"x\":\""), SLICE("AAAAAAAAAAAA"));
    expect_refusal(&text, "do not form a key");
}

static void damaged_file_is_refused(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = BUFFER_INIT;
    key_testing_public_pem(keys->rsa, &text);
    text.len -= 40;
    expect_refusal(&text, "PEM block 1 is damaged or truncated");
    key_testing_public_pem(keys->rsa, &text);
    overwrite_after(&text, SLICE("-----\n"), SLICE("AAA"));
    expect_refusal(&text, "PEM block 1 (PUBLIC KEY) is damaged");
    refuse_text("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
                "neither PUBLIC KEY nor CERTIFICATE");
    refuse_text("nothing here", "no usable key");
    refuse_text("", "no usable key");
    refuse_text("{}", "expected a JWK set");
    refuse_text("{\"keys\":[]}", "no usable key");
    refuse_text("{\"keys\":{}}", "is not valid JSON at byte 8");
    refuse_text("{\"keys\":[7]}", "key 1 is not a JSON object");
    refuse_text("{\"keys\":[{}]}", "key 1 has no `kty`");
    refuse_text("{\"keys\":[{\"kty\":\"RSA\"}]}", "key 1 has numbers that are missing");
    refuse_text("{\"keys\":[],\"keys\":[]}", "duplicate");
    text = jwks(keys->rsa, "a", ",\"kty\":\"RSA\"");
    expect_refusal(&text, "key 1 has a duplicate JSON member");
    text = jwks(keys->rsa, "a", "");
    text.len -= 3;
    expect_refusal(&text, "not valid JSON");
}

static void keys_for_other_purposes_are_skipped(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = BUFFER_INIT;
    buffer_append_text(&text, "{\"keys\":[");
    key_testing_jwk(keys->rsa, "a", ",\"use\":\"enc\"", &text);
    buffer_append_text(&text, ",");
    key_testing_jwk(keys->rsa, "b", ",\"alg\":\"RS512\"", &text);
    buffer_append_text(&text, ",");
    key_testing_jwk(keys->rsa, "c", ",\"alg\":\"ES256\"", &text);
    buffer_append_text(&text, ",");
    key_testing_jwk(keys->rsa, "d", ",\"key_ops\":[\"encrypt\"]", &text);
    buffer_append_text(&text, ",{\"kty\":\"AKP\",\"pub\":\"x\"},"
                              "{\"kty\":\"EC\",\"crv\":\"P-521\",\"x\":\"\",\"y\":\"\"},");
    key_testing_jwk(keys->rsa, "e",
                    ",\"alg\":\"RS256\",\"use\":\"sig\",\"key_ops\":[\"verify\"],\"x5c\":[\"y\"]",
                    &text);
    buffer_append_text(&text, "],\"more\":{}}");
    struct key_set *set = expect_keys(&text, 1);
    struct key_set_candidates found;
    assert_int_equal(key_set_choose(set, SLICE("e"), KEY_RS256, &found), KEY_SET_CHOSEN);
    assert_int_equal(key_set_choose(set, SLICE("a"), KEY_RS256, &found), KEY_SET_UNKNOWN_NAME);
    key_set_release(&set);
}

static void key_is_chosen_by_name_then_by_algorithm(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = BUFFER_INIT;
    char thumbprint[KEY_THUMBPRINT_LEN];
    buffer_append_text(&text, "{\"keys\":[");
    key_testing_jwk(keys->rsa, "one", "", &text);
    buffer_append_text(&text, ",");
    key_testing_jwk(keys->p256, "two", "", &text);
    buffer_append_text(&text, "]}");
    struct key_set *set = expect_keys(&text, 2);
    struct key_set_candidates found;
    assert_true(jwk_thumbprint(keys->rsa, thumbprint));
    struct slice by_thumbprint = {thumbprint, sizeof(thumbprint)};
    assert_int_equal(key_set_choose(set, SLICE("one"), KEY_RS256, &found), KEY_SET_CHOSEN);
    assert_int_equal(key_set_choose(set, by_thumbprint, KEY_RS256, &found), KEY_SET_CHOSEN);
    assert_int_equal(key_set_choose(set, SLICE("one"), KEY_ES256, &found), KEY_SET_WRONG_ALGORITHM);
    assert_int_equal(key_set_choose(set, SLICE("on"), KEY_RS256, &found), KEY_SET_UNKNOWN_NAME);
    assert_int_equal(key_set_choose(set, SLICE("one\0"), KEY_RS256, &found), KEY_SET_UNKNOWN_NAME);
    assert_int_equal(key_set_choose(set, SLICE_NONE, KEY_RS256, &found), KEY_SET_CHOSEN);
    assert_int_equal(key_set_choose(set, SLICE_NONE, KEY_EDDSA, &found), KEY_SET_WRONG_ALGORITHM);
    key_set_release(&set);
}

/* A PEM file does not contain the issuer's name of the key. */
static void keys_without_kid_are_tried_for_unknown_names(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = BUFFER_INIT;
    key_testing_public_pem(keys->rsa, &text);
    struct key_set *set = expect_keys(&text, 1);
    struct key_set_candidates found;
    assert_int_equal(key_set_choose(set, SLICE("issuer's"), KEY_RS256, &found), KEY_SET_CHOSEN);
    assert_int_equal(key_set_choose(set, SLICE("issuer's"), KEY_ES256, &found),
                     KEY_SET_WRONG_ALGORITHM);
    key_set_release(&set);
}

static struct key_set *set_of_p256(size_t count)
{
    struct buffer text = BUFFER_INIT;
    for (size_t i = 0; i < count; i++) {
        EVP_PKEY *pkey = key_testing_p256();
        key_testing_public_pem(pkey, &text);
        EVP_PKEY_free(pkey);
    }
    return expect_keys(&text, count);
}

static void number_of_tried_keys_is_bounded(void **state)
{
    (void)state;
    struct key_set_candidates found;
    struct key_set *set = set_of_p256(KEY_SET_CANDIDATES_MAX);
    assert_int_equal(key_set_choose(set, SLICE_NONE, KEY_ES256, &found), KEY_SET_CHOSEN);
    assert_int_equal(found.count, KEY_SET_CANDIDATES_MAX);
    key_set_release(&set);
    set = set_of_p256(KEY_SET_CANDIDATES_MAX + 1);
    assert_int_equal(key_set_choose(set, SLICE_NONE, KEY_ES256, &found), KEY_SET_AMBIGUOUS);
    key_set_release(&set);
}

static void number_of_keys_is_bounded(void **state)
{
    struct fixture *keys = *state;
    struct buffer text = BUFFER_INIT;
    char kid[KEY_ID_BYTES_MAX + 2];
    struct key_set *set = set_of_p256(KEY_SET_KEYS_MAX);
    key_set_release(&set);
    for (int i = 0; i <= KEY_SET_KEYS_MAX; i++)
        key_testing_public_pem(keys->p256, &text);
    expect_refusal(&text, "more than 64 keys");
    snprintf(kid, sizeof(kid), "%0*d", KEY_ID_BYTES_MAX + 1, 0);
    text = jwks(keys->p256, kid, "");
    expect_refusal(&text, "`kid` of 129 bytes");
}

static void unreadable_file_is_named_in_the_error(void **state)
{
    struct fixture *keys = *state;
    struct auth_error error;
    struct buffer text = jwks(keys->rsa, "a", "");
    char path[] = P_tmpdir "/rollcall-key-set-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_null(key_set_load(path, &error));
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, "is empty"));
    assert_int_equal(write(fd, text.data, text.len), text.len);
    struct key_set *set = key_set_load(path, &error);
    assert_non_null(set);
    key_set_release(&set);
    assert_int_equal(ftruncate(fd, 1024 * 1024), 0);
    assert_null(key_set_load(path, &error));
    assert_non_null(strstr(error.text, "longer than"));
    unlink(path);
    close(fd);
    assert_null(key_set_load(path, &error));
    assert_non_null(strstr(error.text, "No such file"));
    assert_null(key_set_load(".", &error));
    assert_non_null(strstr(error.text, "directory"));
    buffer_free(&text);
}

static void *share_and_release(void *argument)
{
    for (int i = 0; i < 10000; i++) {
        struct key_set *mine = key_set_share(argument);
        key_set_release(&mine);
    }
    return NULL;
}

static void set_is_freed_with_the_last_reference(void **state)
{
    (void)state;
    struct key_set *first = set_of_p256(1);
    struct key_set *second = key_set_share(first);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, share_and_release, first), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    key_set_release(&first);
    assert_int_equal(key_set_count(second), 1);
    key_set_release(&second);
    key_set_release(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concatenated_pem_keys_are_read),
        cmocka_unit_test(key_of_a_certificate_is_read),
        cmocka_unit_test(file_with_a_private_key_is_refused),
        cmocka_unit_test(file_with_a_symmetric_key_is_refused),
        cmocka_unit_test(weak_or_unknown_key_is_refused),
        cmocka_unit_test(invalid_rsa_exponent_is_refused),
        cmocka_unit_test(point_off_the_curve_is_refused),
        cmocka_unit_test(damaged_file_is_refused),
        cmocka_unit_test(keys_for_other_purposes_are_skipped),
        cmocka_unit_test(key_is_chosen_by_name_then_by_algorithm),
        cmocka_unit_test(keys_without_kid_are_tried_for_unknown_names),
        cmocka_unit_test(number_of_tried_keys_is_bounded),
        cmocka_unit_test(number_of_keys_is_bounded),
        cmocka_unit_test(unreadable_file_is_named_in_the_error),
        cmocka_unit_test(set_is_freed_with_the_last_reference),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}

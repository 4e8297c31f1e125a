#include "auth/keys/jwk.h"

#include "text/base64url.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>

enum { FIELD_BYTES = 32, SHA256_BYTES = 32 };

static void write_jwk_bytes(struct buffer *out, struct slice name, const unsigned char *bytes,
                            size_t len)
{
    json_write_key(out, name);
    buffer_append_byte(out, '"');
    base64url_encode(out, bytes, len);
    buffer_append_byte(out, '"');
}

/* Writes a number of the key with at least `len_min` bytes, as JWK requires for coordinates. */
static bool write_jwk_number(struct buffer *out, const EVP_PKEY *pkey, const char *parameter,
                             struct slice name, int len_min)
{
    unsigned char bytes[KEY_SIGNATURE_BYTES_MAX];
    BIGNUM *number = NULL;
    if (EVP_PKEY_get_bn_param(pkey, parameter, &number) != 1)
        return false;
    int len = BN_num_bytes(number) > len_min ? BN_num_bytes(number) : len_min;
    bool ok = len <= (int)sizeof(bytes) && BN_bn2binpad(number, bytes, len) == len;
    BN_free(number);
    if (ok)
        write_jwk_bytes(out, name, bytes, (size_t)len);
    return ok;
}

static bool write_rsa_jwk(struct buffer *out, const EVP_PKEY *pkey)
{
    bool ok = write_jwk_number(out, pkey, OSSL_PKEY_PARAM_RSA_E, SLICE("e"), 1);
    json_write_key_string(out, SLICE("kty"), SLICE("RSA"));
    return ok && write_jwk_number(out, pkey, OSSL_PKEY_PARAM_RSA_N, SLICE("n"), 1);
}

static bool write_p256_jwk(struct buffer *out, const EVP_PKEY *pkey)
{
    json_write_key_string(out, SLICE("crv"), SLICE("P-256"));
    json_write_key_string(out, SLICE("kty"), SLICE("EC"));
    return write_jwk_number(out, pkey, OSSL_PKEY_PARAM_EC_PUB_X, SLICE("x"), FIELD_BYTES) &&
           write_jwk_number(out, pkey, OSSL_PKEY_PARAM_EC_PUB_Y, SLICE("y"), FIELD_BYTES);
}

static bool write_ed25519_jwk(struct buffer *out, const EVP_PKEY *pkey)
{
    unsigned char raw[FIELD_BYTES];
    size_t len = sizeof(raw);
    if (EVP_PKEY_get_raw_public_key(pkey, raw, &len) != 1)
        return false;
    json_write_key_string(out, SLICE("crv"), SLICE("Ed25519"));
    json_write_key_string(out, SLICE("kty"), SLICE("OKP"));
    write_jwk_bytes(out, SLICE("x"), raw, len);
    return true;
}

/* Writes the required JSON members, ordered by name and without white space. A thumbprint is computed
 * over these bytes and the closing brace. */
static bool write_required_jwk_json_members(struct buffer *out, const EVP_PKEY *pkey,
                                            enum key_algorithm algorithm)
{
    static bool (*const write[])(struct buffer *, const EVP_PKEY *) = {
        [KEY_RS256] = write_rsa_jwk,
        [KEY_ES256] = write_p256_jwk,
        [KEY_EDDSA] = write_ed25519_jwk,
    };
    json_write_object(out);
    return write[algorithm](out, pkey);
}

bool jwk_thumbprint(const EVP_PKEY *pkey, char out[KEY_THUMBPRINT_LEN])
{
    struct auth_error ignored;
    enum key_algorithm algorithm;
    if (!key_algorithm_of(pkey, &algorithm, &ignored))
        return false;
    unsigned char digest[SHA256_BYTES];
    struct buffer text = BUFFER_INIT;
    struct buffer encoded = BUFFER_INIT;
    bool ok = write_required_jwk_json_members(&text, pkey, algorithm);
    json_write_object_end(&text);
    if (ok && !text.failed &&
        EVP_Digest(text.data, text.len, digest, NULL, EVP_sha256(), NULL) == 1)
        base64url_encode(&encoded, digest, sizeof(digest));
    ok = encoded.len == KEY_THUMBPRINT_LEN;
    if (ok)
        memcpy(out, encoded.data, KEY_THUMBPRINT_LEN);
    buffer_free(&encoded);
    buffer_free(&text);
    return ok;
}

bool jwk_write(struct buffer *out, const EVP_PKEY *pkey)
{
    struct auth_error ignored;
    enum key_algorithm algorithm;
    char thumbprint[KEY_THUMBPRINT_LEN];
    if (!key_algorithm_of(pkey, &algorithm, &ignored) || !jwk_thumbprint(pkey, thumbprint) ||
        !write_required_jwk_json_members(out, pkey, algorithm))
        return false;
    json_write_key_string(out, SLICE("kid"), (struct slice){thumbprint, sizeof(thumbprint)});
    json_write_key_string(out, SLICE("alg"), slice_of(key_algorithm_name(algorithm)));
    json_write_key_string(out, SLICE("use"), SLICE("sig"));
    json_write_object_end(out);
    return !out->failed;
}

#include "auth/keys/key.h"

#include "auth/keys/es256.h"
#include "auth/keys/jwk.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

enum { SHA256_BYTES = 32, ED25519_SIGNATURE_BYTES = 64 };

static bool check_rsa_key(const EVP_PKEY *pkey, struct auth_error *error)
{
    int bits = EVP_PKEY_get_bits(pkey);
    if (bits < KEY_RSA_BITS_MIN || bits > KEY_RSA_BITS_MAX)
        return auth_error_set(error, "RSA key of %d bits, expected %d to %d", bits,
                              KEY_RSA_BITS_MIN, KEY_RSA_BITS_MAX);
    /* With an exponent of 1 every message is its own signature; an even exponent is not a valid RSA
     * key. */
    BIGNUM *exponent = NULL;
    bool is_valid = EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_RSA_E, &exponent) == 1 &&
                    BN_is_odd(exponent) && !BN_is_one(exponent);
    BN_free(exponent);
    return is_valid || auth_error_set(error, "RSA key whose exponent is not an odd number above 1");
}

static bool is_p256_key(const EVP_PKEY *pkey)
{
    char group[32];
    size_t len;
    return EVP_PKEY_get_group_name(pkey, group, sizeof(group), &len) == 1 &&
           slice_is((struct slice){group, len}, "prime256v1");
}

bool key_algorithm_of(const EVP_PKEY *pkey, enum key_algorithm *out, struct auth_error *error)
{
    switch (EVP_PKEY_get_base_id(pkey)) {
    case EVP_PKEY_RSA:
        *out = KEY_RS256;
        return check_rsa_key(pkey, error);
    case EVP_PKEY_EC:
        *out = KEY_ES256;
        return is_p256_key(pkey) || auth_error_set(error, "elliptic curve key, expected P-256");
    case EVP_PKEY_ED25519:
        *out = KEY_EDDSA;
        return true;
    default:
        return auth_error_set(error, "key of an unknown type, expected RSA, P-256 or Ed25519");
    }
}

static bool prepare_key_verifier(struct key *key)
{
    key->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!key->sha256)
        return false;
    if (key->algorithm == KEY_EDDSA) {
        key->message_verifier = EVP_MD_CTX_new();
        return key->message_verifier &&
               EVP_DigestVerifyInit(key->message_verifier, NULL, NULL, NULL, key->pkey) == 1;
    }
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key->pkey, NULL);
    key->digest_verifier = context;
    if (!context || EVP_PKEY_verify_init(context) != 1)
        return false;
    if (key->algorithm == KEY_RS256 &&
        EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) != 1)
        return false;
    return EVP_PKEY_CTX_set_signature_md(context, key->sha256) == 1;
}

bool key_init(struct key *key, EVP_PKEY *pkey, struct slice id, struct auth_error *error)
{
    *key = (struct key){.pkey = pkey};
    bool ok = key_algorithm_of(pkey, &key->algorithm, error);
    if (ok && id.len > KEY_ID_BYTES_MAX)
        ok = auth_error_set(error, "`kid` of %zu bytes, expected at most %d", id.len,
                            KEY_ID_BYTES_MAX);
    if (ok && !(jwk_thumbprint(pkey, key->thumbprint) && prepare_key_verifier(key)))
        ok = auth_error_set(error, "key that cannot be used for verification");
    if (!ok) {
        key_release(key);
        return false;
    }
    key->id_len = id.len;
    if (id.len > 0)
        memcpy(key->id, id.data, id.len);
    for (size_t i = 0; i < KEY_THUMBPRINT_LEN; i++)
        key->tag = key->tag * 31 + (unsigned char)key->thumbprint[i];
    return true;
}

static bool compute_key_mac(const struct key *key, struct slice message,
                            unsigned char mac[SHA256_BYTES])
{
    unsigned len = 0;
    return HMAC(key->sha256, key->secret, (int)key->secret_len, (const unsigned char *)message.data,
                message.len, mac, &len) &&
           len == SHA256_BYTES;
}

/* The tag is a MAC of a constant, so that it tells nothing about the secret. */
bool key_init_secret(struct key *key, struct slice secret, struct auth_error *error)
{
    unsigned char mac[SHA256_BYTES];
    *key = (struct key){.algorithm = KEY_HS256};
    if (secret.len < KEY_SECRET_BYTES_MIN || secret.len > KEY_SECRET_BYTES_MAX)
        return auth_error_set(error, "secret of %zu bytes, expected %d to %d", secret.len,
                              KEY_SECRET_BYTES_MIN, KEY_SECRET_BYTES_MAX);
    key->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    key->secret = OPENSSL_memdup(secret.data, secret.len);
    key->secret_len = secret.len;
    if (!key->sha256 || !key->secret || !compute_key_mac(key, SLICE("rollcall key tag"), mac)) {
        key_release(key);
        return auth_error_set(error, "out of memory");
    }
    memcpy(&key->tag, mac, sizeof(key->tag));
    return true;
}

bool key_copy(struct key *key, const struct key *from)
{
    struct auth_error unused;
    if (from->secret)
        return key_init_secret(key, (struct slice){(const char *)from->secret, from->secret_len},
                               &unused);
    return EVP_PKEY_up_ref(from->pkey) == 1 &&
           key_init(key, from->pkey, (struct slice){from->id, from->id_len}, &unused);
}

void key_release(struct key *key)
{
    EVP_PKEY_CTX_free(key->digest_verifier);
    EVP_MD_CTX_free(key->message_verifier);
    EVP_MD_free(key->sha256);
    EVP_PKEY_free(key->pkey);
    OPENSSL_clear_free(key->secret, key->secret_len);
    *key = (struct key){0};
}

bool key_is_named(const struct key *key, struct slice name)
{
    struct slice id = {key->id, key->id_len};
    struct slice thumbprint = {key->thumbprint, key->pkey ? KEY_THUMBPRINT_LEN : 0};
    return name.len > 0 && (slice_equal(name, id) || slice_equal(name, thumbprint));
}

static bool verify_digest_signature(const struct key *key, struct slice message,
                                    const unsigned char *signature, size_t signature_len)
{
    unsigned char digest[SHA256_BYTES];
    if (EVP_Digest(message.data, message.len, digest, NULL, key->sha256, NULL) != 1)
        return false;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_dup(key->digest_verifier);
    bool good =
        context && EVP_PKEY_verify(context, signature, signature_len, digest, sizeof(digest)) == 1;
    EVP_PKEY_CTX_free(context);
    return good;
}

static bool verify_es256_signature(const struct key *key, struct slice message,
                                   const unsigned char *signature, size_t signature_len)
{
    unsigned char der[ES256_DER_BYTES_MAX];
    size_t der_len;
    return signature_len == ES256_RAW_BYTES && es256_to_der(signature, der, &der_len) &&
           verify_digest_signature(key, message, der, der_len);
}

static bool verify_eddsa_signature(const struct key *key, struct slice message,
                                   const unsigned char *signature, size_t signature_len)
{
    if (signature_len != ED25519_SIGNATURE_BYTES)
        return false;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_MD_CTX_copy_ex(context, key->message_verifier) == 1 &&
                EVP_DigestVerify(context, signature, signature_len,
                                 (const unsigned char *)message.data, message.len) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

/* Compares in constant time, so that the time does not tell how much of a forged signature is right. */
static bool verify_hs256_signature(const struct key *key, struct slice message,
                                   const unsigned char *signature, size_t signature_len)
{
    unsigned char mac[SHA256_BYTES];
    return signature_len == SHA256_BYTES && compute_key_mac(key, message, mac) &&
           CRYPTO_memcmp(mac, signature, SHA256_BYTES) == 0;
}

bool key_verify(const struct key *key, struct slice message, const unsigned char *signature,
                size_t signature_len)
{
    static bool (*const verify[])(const struct key *, struct slice, const unsigned char *,
                                  size_t) = {
        [KEY_RS256] = verify_digest_signature,
        [KEY_ES256] = verify_es256_signature,
        [KEY_EDDSA] = verify_eddsa_signature,
        [KEY_HS256] = verify_hs256_signature,
    };
    /* A failed verification queues errors, which a TLS stream on this thread would read as its
     * own. */
    ERR_set_mark();
    bool good = verify[key->algorithm](key, message, signature, signature_len);
    ERR_pop_to_mark();
    return good;
}

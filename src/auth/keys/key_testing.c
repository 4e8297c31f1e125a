#include "auth/keys/key_testing.h"

#include "auth/keys/jwk.h"
#include "text/json.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>

static EVP_PKEY *require_pkey(EVP_PKEY *pkey)
{
    if (!pkey)
        abort();
    return pkey;
}

EVP_PKEY *key_testing_rsa(unsigned bits)
{
    return require_pkey(EVP_RSA_gen(bits));
}

EVP_PKEY *key_testing_p256(void)
{
    return require_pkey(EVP_EC_gen("P-256"));
}

EVP_PKEY *key_testing_ed25519(void)
{
    return require_pkey(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"));
}

static void append_bio(BIO *bio, struct buffer *out)
{
    char *text;
    long len = BIO_get_mem_data(bio, &text);
    buffer_append(out, text, (size_t)len);
    BIO_free(bio);
}

void key_testing_private_pem(const EVP_PKEY *pkey, struct buffer *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL);
    append_bio(bio, out);
}

void key_testing_public_pem(const EVP_PKEY *pkey, struct buffer *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PUBKEY(bio, pkey);
    append_bio(bio, out);
}

void key_testing_jwk(const EVP_PKEY *pkey, const char *kid, const char *extra, struct buffer *out)
{
    struct buffer text = BUFFER_INIT;
    if (!jwk_write(&text, pkey))
        abort();
    /* Everything before `kid` is the key itself. */
    text.len = (size_t)((char *)memmem(text.data, text.len, ",\"kid\"", 6) - text.data);
    if (kid)
        json_write_key_string(&text, SLICE("kid"), slice_of(kid));
    buffer_append_text(&text, extra);
    json_write_object_end(&text);
    buffer_append_slice(out, buffer_slice(&text));
    buffer_free(&text);
}

struct jwt_signer *key_testing_signer(const EVP_PKEY *pkey, const char *kid)
{
    struct buffer pem = BUFFER_INIT;
    struct auth_error error;
    key_testing_private_pem(pkey, &pem);
    struct jwt_signer *signer = jwt_signer_parse(buffer_slice(&pem), slice_of(kid), &error);
    buffer_free(&pem);
    if (!signer)
        abort();
    return signer;
}

struct key_set *key_testing_parse(struct slice text, struct auth_error *error)
{
    struct buffer copy = BUFFER_INIT;
    buffer_append_slice(&copy, text);
    struct key_set *set = key_set_parse("keys", copy.data, copy.len, error);
    buffer_free(&copy);
    return set;
}

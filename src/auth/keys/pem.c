#include "auth/keys/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

bool pem_init(struct pem *pem, const char *data, size_t len)
{
    *pem = (struct pem){.bio = BIO_new_mem_buf(data ? data : "", (int)len)};
    return pem->bio != NULL;
}

void pem_release(struct pem *pem)
{
    BIO_free(pem->bio);
    pem->bio = NULL;
}

static EVP_PKEY *decode_pem_certificate(const unsigned char **at, long len)
{
    X509 *certificate = d2i_X509(NULL, at, len);
    EVP_PKEY *pkey = certificate ? X509_get_pubkey(certificate) : NULL;
    X509_free(certificate);
    return pkey;
}

static EVP_PKEY *decode_pem_public_key(const unsigned char **at, long len)
{
    return d2i_PUBKEY(NULL, at, len);
}

static EVP_PKEY *decode_pem_rsa_public_key(const unsigned char **at, long len)
{
    return d2i_PublicKey(EVP_PKEY_RSA, NULL, at, len);
}

static const struct block {
    const char *label;
    EVP_PKEY *(*decode)(const unsigned char **at, long len);
} blocks[] = {
    {PEM_STRING_PUBLIC, decode_pem_public_key},
    {PEM_STRING_RSA_PUBLIC, decode_pem_rsa_public_key},
    {PEM_STRING_X509, decode_pem_certificate},
    {PEM_STRING_X509_OLD, decode_pem_certificate},
};

static EVP_PKEY *decode_pem_block(const char *label, const unsigned char *data, long len,
                                  size_t index, struct auth_error *error)
{
    if (strstr(label, "PRIVATE KEY")) {
        auth_error_set(error, "PEM block %zu is a private key, expected public keys only", index);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        if (strcmp(label, blocks[i].label) != 0)
            continue;
        const unsigned char *at = data;
        EVP_PKEY *pkey = blocks[i].decode(&at, len);
        if (pkey && at == data + len)
            return pkey;
        EVP_PKEY_free(pkey);
        auth_error_set(error, "PEM block %zu (%s) is damaged or of an unknown kind", index,
                       blocks[i].label);
        return NULL;
    }
    auth_error_set(error, "PEM block %zu is neither PUBLIC KEY nor CERTIFICATE", index);
    return NULL;
}

enum pem_result pem_next_public(struct pem *pem, EVP_PKEY **out, struct auth_error *error)
{
    char *label = NULL;
    char *header = NULL;
    unsigned char *data = NULL;
    long len = 0;
    *out = NULL;
    pem->index++;
    ERR_set_mark();
    if (PEM_read_bio(pem->bio, &label, &header, &data, &len) != 1) {
        bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
        ERR_pop_to_mark();
        if (!end)
            auth_error_set(error, "PEM block %zu is damaged or truncated", pem->index);
        return end ? PEM_END : PEM_BAD;
    }
    *out = decode_pem_block(label, data, len, pem->index, error);
    ERR_pop_to_mark();
    OPENSSL_free(label);
    OPENSSL_free(header);
    OPENSSL_clear_free(data, (size_t)len);
    return *out ? PEM_KEY : PEM_BAD;
}

/* Replaces OpenSSL's prompt on the terminal. */
static int refuse_pem_pass_phrase(char *out, int size, int writing, void *context)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

EVP_PKEY *pem_read_private(struct slice text, struct auth_error *error)
{
    BIO *bio = BIO_new_mem_buf(text.data ? text.data : "", (int)text.len);
    ERR_set_mark();
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, refuse_pem_pass_phrase, NULL) : NULL;
    ERR_pop_to_mark();
    BIO_free(bio);
    if (!pkey)
        auth_error_set(error, "expected a private key in PEM, not encrypted");
    return pkey;
}

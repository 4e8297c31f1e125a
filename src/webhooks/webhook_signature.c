#include "webhooks/webhook_signature.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char secret_prefix[] = "whsec_";

enum { SHA256_BYTES = 32, SECRET_TEXT_BYTES_MAX = (WEBHOOK_SECRET_BYTES_MAX + 2) / 3 * 4 };

static struct slice trim_secret_end(struct slice text)
{
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1]))
        text.len--;
    return text;
}

/* Decodes base64 of which there is one spelling. OpenSSL skips white space and ignores unused bits, so the key is encoded
 * again and compared. */
static bool decode_secret(struct webhook_secret *secret, struct slice text)
{
    unsigned char key[SECRET_TEXT_BYTES_MAX], again[SECRET_TEXT_BYTES_MAX + 1];
    if (text.len == 0 || text.len % 4 || text.len > SECRET_TEXT_BYTES_MAX)
        return false;
    int padding = (text.data[text.len - 1] == '=') + (text.data[text.len - 2] == '=');
    int len = EVP_DecodeBlock(key, (const unsigned char *)text.data, (int)text.len) - padding;
    bool decoded = len >= 0 && len <= WEBHOOK_SECRET_BYTES_MAX &&
                   EVP_EncodeBlock(again, key, len) == (int)text.len &&
                   CRYPTO_memcmp(again, text.data, text.len) == 0;
    if (decoded) {
        memcpy(secret->key, key, (size_t)len);
        secret->len = (size_t)len;
    }
    OPENSSL_cleanse(key, sizeof(key));
    OPENSSL_cleanse(again, sizeof(again));
    return decoded;
}

const char *webhook_secret_parse(struct webhook_secret *secret, struct slice text)
{
    *secret = (struct webhook_secret){.len = 0};
    text = trim_secret_end(text);
    if (!slice_starts_with(text, SLICE(secret_prefix)))
        return "expected whsec_ and base64";
    if (!decode_secret(secret, slice_after(text, sizeof(secret_prefix) - 1)))
        return "expected base64 of at most 128 bytes, with padding, after whsec_";
    if (secret->len >= WEBHOOK_SECRET_BYTES_MIN)
        return NULL;
    webhook_secret_clear(secret);
    return "expected a key of 16 bytes or more";
}

const char *webhook_secret_read(struct webhook_secret *secret, const char *path)
{
    char text[WEBHOOK_SECRET_FILE_BYTES_MAX + 1];
    size_t len = 0;
    ssize_t got = -1;
    *secret = (struct webhook_secret){.len = 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return "cannot open the file";
    while (len < sizeof(text) && (got = read(fd, text + len, sizeof(text) - len)) > 0)
        len += (size_t)got;
    close(fd);
    const char *error = got < 0                               ? "cannot read the file"
                        : len > WEBHOOK_SECRET_FILE_BYTES_MAX ? "expected one short line"
                                                              : NULL;
    if (!error)
        error = webhook_secret_parse(secret, (struct slice){text, len});
    OPENSSL_cleanse(text, sizeof(text));
    return error;
}

void webhook_secret_clear(struct webhook_secret *secret)
{
    OPENSSL_cleanse(secret, sizeof(*secret));
}

/* Begins a MAC with the signer's key. */
static bool begin_webhook_mac(struct webhook_signer *signer)
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_utf8_string("digest", digest, sizeof(digest) - 1),
                                 OSSL_PARAM_END};
    if (signer->mac)
        return EVP_MAC_init(signer->mac, NULL, 0, NULL);
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    signer->mac = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
    EVP_MAC_free(hmac);
    if (signer->mac && EVP_MAC_init(signer->mac, signer->secret->key, signer->secret->len, params))
        return true;
    webhook_signer_free(signer);
    return false;
}

/* Computes the MAC piece by piece, so that a large body is not copied. */
static bool compute_webhook_mac(struct webhook_signer *signer, const struct slice *pieces,
                                size_t count, unsigned char mac[SHA256_BYTES])
{
    size_t len = 0;
    bool whole = begin_webhook_mac(signer);
    for (size_t i = 0; whole && i < count; i++)
        whole = EVP_MAC_update(signer->mac, (const unsigned char *)pieces[i].data, pieces[i].len);
    return whole && EVP_MAC_final(signer->mac, mac, &len, SHA256_BYTES) && len == SHA256_BYTES;
}

void webhook_signer_free(struct webhook_signer *signer)
{
    EVP_MAC_CTX_free(signer->mac);
    signer->mac = NULL;
}

bool webhook_signer_sign(struct webhook_signer *signer, struct webhook_headers *headers,
                         struct slice id, int64_t time_seconds, struct slice body)
{
    assert(id.len > 0 && id.len <= WEBHOOK_ID_BYTES_MAX && !memchr(id.data, '.', id.len));
    static const char time_name[] = "webhook-timestamp: ", mac_name[] = "webhook-signature: v1,";
    unsigned char mac[SHA256_BYTES];
    snprintf(headers->id, sizeof(headers->id), "webhook-id: %.*s", SLICE_FORMAT(id));
    snprintf(headers->timestamp, sizeof(headers->timestamp), "%s%" PRId64, time_name, time_seconds);
    headers->signature[0] = '\0';
    if (signer->secret->len == 0)
        return true;
    struct slice time = slice_of(headers->timestamp + sizeof(time_name) - 1);
    const struct slice pieces[] = {id, SLICE("."), time, SLICE("."), body};
    if (!compute_webhook_mac(signer, pieces, sizeof(pieces) / sizeof(pieces[0]), mac))
        return false;
    memcpy(headers->signature, mac_name, sizeof(mac_name));
    EVP_EncodeBlock((unsigned char *)headers->signature + sizeof(mac_name) - 1, mac, sizeof(mac));
    return true;
}

bool webhook_sign(struct webhook_headers *headers, const struct webhook_secret *secret,
                  struct slice id, int64_t time_seconds, struct slice body)
{
    struct webhook_signer signer = {.secret = secret};
    bool is_signed = webhook_signer_sign(&signer, headers, id, time_seconds, body);
    webhook_signer_free(&signer);
    return is_signed;
}

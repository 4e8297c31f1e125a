#include "auth/api_key.h"

#include "text/base64url.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

bool api_key_make(struct random *random, char text[API_KEY_TEXT_LEN])
{
    unsigned char bytes[API_KEY_RANDOM_BYTES];
    struct buffer out = BUFFER_INIT;
    random_bytes(random, bytes, sizeof(bytes));
    buffer_append_slice(&out, API_KEY_PREFIX);
    base64url_encode(&out, bytes, sizeof(bytes));
    OPENSSL_cleanse(bytes, sizeof(bytes));
    bool made = !out.failed && out.len == API_KEY_TEXT_LEN;
    if (made)
        memcpy(text, out.data, API_KEY_TEXT_LEN);
    if (out.data)
        OPENSSL_cleanse(out.data, out.len);
    buffer_free(&out);
    return made;
}

bool api_key_hash(struct slice text, char hash[API_KEY_HASH_LEN])
{
    static const char DIGITS[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (text.len != API_KEY_TEXT_LEN || !slice_starts_with(text, API_KEY_PREFIX) ||
        EVP_Digest(text.data, text.len, digest, &len, EVP_sha256(), NULL) != 1)
        return false;
    for (unsigned i = 0; i < API_KEY_HASH_LEN / 2; i++) {
        hash[2 * i] = DIGITS[digest[i] >> 4];
        hash[2 * i + 1] = DIGITS[digest[i] & 15];
    }
    return true;
}

bool api_key_hash_equal(const char a[API_KEY_HASH_LEN], struct slice b)
{
    return b.len == API_KEY_HASH_LEN && CRYPTO_memcmp(a, b.data, API_KEY_HASH_LEN) == 0;
}

bool api_key_name_valid(struct slice name)
{
    static const char OTHERS[] = "._-";
    bool valid = name.len >= 1 && name.len <= API_KEY_NAME_BYTES_MAX;
    for (size_t i = 0; i < name.len && valid; i++) {
        char at = name.data[i];
        valid = (at >= 'a' && at <= 'z') || (at >= 'A' && at <= 'Z') || (at >= '0' && at <= '9') ||
                memchr(OTHERS, at, sizeof(OTHERS) - 1);
    }
    return valid;
}

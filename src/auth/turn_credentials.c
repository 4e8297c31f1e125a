#include "auth/turn_credentials.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

/* Appends the id to the name, which has space for every byte escaped. */
static void turn_write_user(char *out, struct slice user)
{
    static const char HEX[] = "0123456789ABCDEF";
    static const char REFUSED[] = " \"'\\%";
    for (size_t i = 0; i < user.len; i++) {
        unsigned char byte = (unsigned char)user.data[i];
        if (memchr(REFUSED, byte, sizeof(REFUSED) - 1)) {
            *out++ = '%';
            *out++ = HEX[byte >> 4];
            *out++ = HEX[byte & 15];
        } else {
            *out++ = (char)byte;
        }
    }
    *out = '\0';
}

bool turn_credentials_make(struct turn_credentials *out, struct slice secret, struct slice user,
                           int64_t expires_at_seconds)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_len = 0;
    int time_len =
        snprintf(out->username, sizeof(out->username), "%" PRId64 ":", expires_at_seconds);
    turn_write_user(out->username + time_len, user);
    if (!HMAC(EVP_sha1(), secret.data, (int)secret.len, (const unsigned char *)out->username,
              strlen(out->username), digest, &digest_len))
        return false;
    EVP_EncodeBlock((unsigned char *)out->credential, digest, (int)digest_len);
    return true;
}

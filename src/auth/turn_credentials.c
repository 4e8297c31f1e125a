#include "auth/turn_credentials.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

bool turn_credentials_make(struct turn_credentials *out, struct slice secret, struct slice user,
                           int64_t expires_at_seconds)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_len = 0;
    snprintf(out->username, sizeof(out->username), "%" PRId64 ":%.*s", expires_at_seconds,
             SLICE_FORMAT(user));
    if (!HMAC(EVP_sha1(), secret.data, (int)secret.len, (const unsigned char *)out->username,
              strlen(out->username), digest, &digest_len))
        return false;
    EVP_EncodeBlock((unsigned char *)out->credential, digest, (int)digest_len);
    return true;
}

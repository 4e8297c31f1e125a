/*
 * Time-limited credentials for a TURN server that shares a secret with us, as coturn's `use-auth-secret` and the draft
 * "A REST API for Access to TURN Services" define them:
 *
 *     username     1769860800:alice     seconds since 1970 at which they expire, and the user
 *     credential   BASE64               HMAC-SHA1 of the username with the secret
 *
 * coturn refuses names with blanks, quotes or backslashes, so these characters of an id, and the percent sign, are written
 * as in URLs: "%20".
 *
 * The TURN server verifies them without asking anybody. Threading: none. Nothing is allocated.
 */
#ifndef ROLLCALL_AUTH_TURN_CREDENTIALS_H
#define ROLLCALL_AUTH_TURN_CREDENTIALS_H

#include "auth/user_id.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TURN_USERNAME_BYTES_MAX = sizeof("-9223372036854775808:") - 1 + 3 * USER_ID_BYTES_MAX,
    TURN_CREDENTIAL_BYTES = 28, /* 20 bytes in base64 */
};

struct turn_credentials {
    char username[TURN_USERNAME_BYTES_MAX + 1];
    char credential[TURN_CREDENTIAL_BYTES + 1];
};

/* Writes the credentials of a valid user id. Returns false when out of memory. */
bool turn_credentials_make(struct turn_credentials *out, struct slice secret, struct slice user,
                           int64_t expires_at_seconds);

#endif

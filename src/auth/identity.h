/* The identity that a verified token gives its bearer. A plain value; copy it freely. */
#ifndef ROLLCALL_AUTH_IDENTITY_H
#define ROLLCALL_AUTH_IDENTITY_H

#include "auth/user_id.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* Bits of identity.scopes. An unknown scope is not an error and sets no bit. */
enum identity_scope {
    IDENTITY_SCOPE_ADMIN = 1 << 0,   /* the admin interface */
    IDENTITY_SCOPE_DELIVER = 1 << 1, /* delivering to devices of other users */
    IDENTITY_SCOPE_SERVICE = 1 << 2, /* acting for the application: /v1/service */
};

struct identity {
    char user[USER_ID_BYTES_MAX]; /* not terminated */
    uint8_t user_len;
    uint32_t scopes;
    uint32_t key_tag;           /* of the key that verified the token (auth/keys/key.h) */
    int64_t issued_at_s;        /* the token's `iat`; 0: it has none */
    int64_t expires_at_wall_ms; /* the token's `exp`, without leeway */
};

/* Borrows from `identity`. */
static inline struct slice identity_user(const struct identity *identity)
{
    return (struct slice){identity->user, identity->user_len};
}

static inline bool identity_has_scope(const struct identity *identity, enum identity_scope scope)
{
    return (identity->scopes & scope) != 0;
}

#endif

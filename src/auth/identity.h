/* Who a token says the bearer is: what is left of a token once it was verified. A plain value; copy
 * it freely. */
#ifndef ROLLCALL_AUTH_IDENTITY_H
#define ROLLCALL_AUTH_IDENTITY_H

#include "auth/user_id.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* Bits of identity.scopes. A scope that Rollcall does not know is no error and sets nothing. */
enum identity_scope {
    IDENTITY_SCOPE_ADMIN = 1 << 0,   /* the admin interface */
    IDENTITY_SCOPE_DELIVER = 1 << 1, /* pushing to other users' devices */
};

struct identity {
    char user[USER_ID_BYTES_MAX]; /* not terminated */
    uint8_t user_len;
    uint32_t scopes;
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

/*
 * The key pair for development: made in the data directory on first use and reused afterwards.
 *
 *     DIR/dev-key.pem     private, RSA 2048, readable by its owner only
 *     DIR/dev-jwks.json   its public half, for `--jwt-keys`
 *
 * Several processes may start in the same directory at once. Each makes a key under a temporary
 * name and tries to link it into place; the first one wins and the others use its key. So a file
 * never holds half a key, and all processes have the same pair. The public half is derived from the
 * private one, and written again if it does not match.
 */
#ifndef ROLLCALL_AUTH_KEYS_DEV_KEYS_H
#define ROLLCALL_AUTH_KEYS_DEV_KEYS_H

#include "auth/auth_error.h"

#include <limits.h>
#include <stdbool.h>

#define DEV_KEYS_PRIVATE_NAME "dev-key.pem"
#define DEV_KEYS_PUBLIC_NAME "dev-jwks.json"

struct dev_keys {
    char private_path[PATH_MAX]; /* for jwt_signer_load() */
    char public_path[PATH_MAX];  /* for key_set_load() */
};

/* Makes what is missing (the directory too, but not its parents) and returns the paths of the
 * pair. */
bool dev_keys_ensure(const char *data_dir, struct dev_keys *out, struct auth_error *error);

#endif

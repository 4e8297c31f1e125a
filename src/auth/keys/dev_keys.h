/*
 * The key pair of a laptop: made on first use in the data directory, reused ever after.
 *
 *     DIR/dev-key.pem     private, RSA 2048, readable by its owner alone
 *     DIR/dev-jwks.json   its public half, for `--jwt-keys`
 *
 * Several processes may start in the same directory at once. Each makes a key of its own under
 * another name and tries to link it into place; the first one wins and the others take the
 * winner's, so a name never holds half a key and everybody ends up with the same pair. The public
 * half is always derived from the private one, and written anew when it does not fit it.
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

/* Makes what is missing (the directory too, but not its parents) and says where the pair is. */
bool dev_keys_ensure(const char *data_dir, struct dev_keys *out, struct auth_error *error);

#endif

/*
 * The keys of a process, from up to three sources: the keys file (in development, the generated pair), the file of a
 * shared secret, and the issuer. All gateways get one set with all of them.
 *
 * The main thread loads and reloads the files; the issuer's thread puts its keys. A mutex guards all of it, and the
 * caller of server_keys_unite() holds it until the gateways have the set, so that no older set follows a newer one.
 */
#ifndef ROLLCALL_APP_SERVER_KEYS_H
#define ROLLCALL_APP_SERVER_KEYS_H

#include "auth/auth_error.h"
#include "auth/keys/key_set.h"
#include "config/config.h"
#include "issuer/issuer.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

struct server_keys {
    pthread_mutex_t mutex;
    char keys_file[PATH_MAX]; /* empty: none */
    const char *secret_file;  /* empty: none */
    char kept_file[PATH_MAX]; /* the issuer's last good keys */
    struct key_set *from_file;
    struct key_set *from_secret;
    struct key_set *from_issuer;
    struct issuer *issuer; /* NULL: none */
    struct metrics issuer_metrics;
};

/* Loads the files. `dev_keys_file` is used if the configuration names no file. Explains a failure in `error`. */
bool server_keys_load(struct server_keys *keys, const struct config *config,
                      const char *dev_keys_file, struct auth_error *error);

/* Makes the issuer, if the configuration has one, and takes the keys it has kept. Returns false when out of memory or
 * descriptors. */
bool server_keys_make_issuer(struct server_keys *keys, const struct config *config,
                             issuer_keys_hook on_keys, void *arg);

/* Reads the files again. Returns false, and changes nothing, if one cannot be used. */
bool server_keys_reload(struct server_keys *keys, struct auth_error *error);

/* Takes the issuer's keys; NULL: none yet. The caller holds the mutex. */
void server_keys_put_issued(struct server_keys *keys, struct key_set *issued);

/* Returns a set of all keys, with one reference; NULL: there are none yet, or out of memory. The caller holds the
 * mutex. */
struct key_set *server_keys_unite(const struct server_keys *keys);

/* How many keys there are. Takes the mutex. */
size_t server_keys_count(struct server_keys *keys);

/* Stops the issuer and frees. */
void server_keys_free(struct server_keys *keys);

#endif

#include "app/server_keys.h"

#include <stdio.h>

/* Reads both files; a missing name is a missing source. */
static bool load_key_files(const struct server_keys *keys, struct key_set **from_file,
                           struct key_set **from_secret, struct auth_error *error)
{
    *from_file = *from_secret = NULL;
    if (keys->keys_file[0] && !(*from_file = key_set_load(keys->keys_file, error)))
        return false;
    if (keys->secret_file[0] && !(*from_secret = key_set_load_secret(keys->secret_file, error))) {
        key_set_release(from_file);
        return false;
    }
    return true;
}

bool server_keys_load(struct server_keys *keys, const struct config *config,
                      const char *dev_keys_file, struct auth_error *error)
{
    const char *file = config->auth.keys_file[0] ? config->auth.keys_file : dev_keys_file;
    pthread_mutex_init(&keys->mutex, NULL);
    snprintf(keys->keys_file, sizeof(keys->keys_file), "%s", file);
    snprintf(keys->kept_file, sizeof(keys->kept_file), "%s/jwks.json", config->data_dir);
    keys->secret_file = config->auth.hmac_secret_file;
    return load_key_files(keys, &keys->from_file, &keys->from_secret, error);
}

bool server_keys_make_issuer(struct server_keys *keys, const struct config *config,
                             issuer_keys_hook on_keys, void *arg)
{
    if (!config->auth.jwks_url[0])
        return true;
    keys->issuer = issuer_make(&(struct issuer_options){
        .url = config->auth.jwks_url,
        .ca_file = config->auth.jwks_ca_file[0] ? config->auth.jwks_ca_file : NULL,
        .kept_file = keys->kept_file,
        .refresh_ms = config->auth.jwks_refresh_ms,
        .metrics = &keys->issuer_metrics,
        .on_keys = on_keys,
        .arg = arg,
    });
    if (keys->issuer)
        keys->from_issuer = issuer_kept_keys(keys->issuer);
    return keys->issuer != NULL;
}

bool server_keys_reload(struct server_keys *keys, struct auth_error *error)
{
    struct key_set *from_file, *from_secret;
    if (!load_key_files(keys, &from_file, &from_secret, error))
        return false;
    pthread_mutex_lock(&keys->mutex);
    key_set_release(&keys->from_file);
    key_set_release(&keys->from_secret);
    keys->from_file = from_file;
    keys->from_secret = from_secret;
    pthread_mutex_unlock(&keys->mutex);
    return true;
}

void server_keys_put_issued(struct server_keys *keys, struct key_set *issued)
{
    key_set_release(&keys->from_issuer);
    keys->from_issuer = issued;
}

struct key_set *server_keys_unite(const struct server_keys *keys)
{
    const struct key_set *sets[] = {keys->from_file, keys->from_secret, keys->from_issuer};
    if (!keys->from_file && !keys->from_secret && !keys->from_issuer)
        return NULL;
    return key_set_unite(sets, sizeof(sets) / sizeof(sets[0]));
}

size_t server_keys_count(struct server_keys *keys)
{
    pthread_mutex_lock(&keys->mutex);
    size_t count = (keys->from_file ? key_set_count(keys->from_file) : 0) +
                   (keys->from_secret ? key_set_count(keys->from_secret) : 0) +
                   (keys->from_issuer ? key_set_count(keys->from_issuer) : 0);
    pthread_mutex_unlock(&keys->mutex);
    return count;
}

void server_keys_free(struct server_keys *keys)
{
    issuer_free(&keys->issuer);
    key_set_release(&keys->from_file);
    key_set_release(&keys->from_secret);
    key_set_release(&keys->from_issuer);
    pthread_mutex_destroy(&keys->mutex);
}

#include "auth/keys/key_set.h"

#include "auth/keys/jwk.h"
#include "auth/keys/key.h"
#include "auth/keys/key_file.h"
#include "auth/keys/pem.h"
#include "log/log.h"
#include "text/json.h"

#include <stdatomic.h>
#include <stdlib.h>

struct key_set {
    atomic_uint references;
    size_t count;
    struct key keys[]; /* `count` in use */
};

/* The set being loaded, and the name for its errors. */
struct key_source {
    const char *name;
    struct key_set *set;
    struct auth_error *error;
};

/* Takes `pkey`, also if it fails. */
static bool add_key_to_set(struct key_source *source, EVP_PKEY *pkey, struct slice id, size_t index)
{
    struct key_set *set = source->set;
    if (set->count == KEY_SET_KEYS_MAX) {
        EVP_PKEY_free(pkey);
        return auth_error_set(source->error, "%s: more than %d keys", source->name,
                              KEY_SET_KEYS_MAX);
    }
    struct auth_error reason;
    if (!key_init(&set->keys[set->count], pkey, id, &reason))
        return auth_error_set(source->error, "%s: key %zu: %s", source->name, index + 1,
                              reason.text);
    set->count++;
    return true;
}

static bool add_jwk_to_set(struct key_source *source, struct json *json, size_t index)
{
    struct jwk jwk;
    switch (jwk_read(json, &jwk)) {
    case JWK_OK:
        return add_key_to_set(source, jwk.pkey, jwk.id, index);
    case JWK_SKIPPED:
        log_warn("auth_key_skipped", "file=%s key=%zu reason=\"%s\"",
                 log_quote(slice_of(source->name)), index + 1, jwk.reason);
        return true;
    case JWK_REFUSED:
        break;
    }
    return auth_error_set(source->error, "%s: key %zu %s", source->name, index + 1, jwk.reason);
}

static bool read_jwks_source(struct key_source *source, char *data, size_t len)
{
    struct json json;
    struct slice name;
    bool found = false;
    json_init(&json, data, len);
    json_object(&json);
    while (json_member(&json, &name)) {
        if (!slice_is(name, "keys")) {
            json_skip(&json);
            continue;
        }
        if (found)
            return auth_error_set(source->error, "%s: has a duplicate `keys`", source->name);
        found = true;
        json_array(&json);
        for (size_t index = 0; json_element(&json); index++) {
            if (!add_jwk_to_set(source, &json, index))
                return false;
        }
    }
    if (!json_done(&json))
        return auth_error_set(source->error, "%s: is not valid JSON at byte %zu: expected %s",
                              source->name, json.error_at,
                              json.error ? json.error : "nothing more");
    return found ||
           auth_error_set(source->error, "%s: expected a JWK set, {\"keys\":[…]}", source->name);
}

static bool read_pem_source(struct key_source *source, const char *data, size_t len)
{
    struct pem pem;
    struct auth_error reason = {"out of memory"};
    bool ok = pem_init(&pem, data, len);
    for (size_t index = 0; ok; index++) {
        EVP_PKEY *pkey;
        enum pem_result result = pem_next_public(&pem, &pkey, &reason);
        if (result == PEM_END)
            break;
        if (result == PEM_KEY && !add_key_to_set(source, pkey, SLICE_NONE, index)) {
            pem_release(&pem);
            return false;
        }
        ok = result == PEM_KEY;
    }
    pem_release(&pem);
    return ok || auth_error_set(source->error, "%s: %s", source->name, reason.text);
}

static bool is_jwks_source(const char *data, size_t len)
{
    size_t blank = 0;
    while (blank < len && (data[blank] == ' ' || data[blank] == '\t' || data[blank] == '\r' ||
                           data[blank] == '\n'))
        blank++;
    return blank < len && data[blank] == '{';
}

static struct key_set *make_key_set(size_t capacity)
{
    struct key_set *set = calloc(1, sizeof(*set) + capacity * sizeof(set->keys[0]));
    if (set)
        atomic_init(&set->references, 1);
    return set;
}

struct key_set *key_set_parse(const char *name, char *data, size_t len, struct auth_error *error)
{
    struct key_set *set = make_key_set(KEY_SET_KEYS_MAX);
    if (!set) {
        auth_error_set(error, "%s: out of memory", name);
        return NULL;
    }
    struct key_source source = {name, set, error};
    bool ok = is_jwks_source(data, len) ? read_jwks_source(&source, data, len)
                                        : read_pem_source(&source, data, len);
    if (ok && set->count == 0)
        ok = auth_error_set(error,
                            "%s: no usable key, expected PEM public keys or a JWK set with RSA "
                            "(%d bits or more), P-256 or Ed25519 keys",
                            name, KEY_RSA_BITS_MIN);
    if (!ok)
        key_set_release(&set);
    return set;
}

struct key_set *key_set_load(const char *path, struct auth_error *error)
{
    struct key_file file;
    if (!key_file_read(path, &file, error))
        return NULL;
    struct key_set *set = key_set_parse(path, file.data, file.len, error);
    key_file_free(&file);
    return set;
}

struct key_set *key_set_load_secret(const char *path, struct auth_error *error)
{
    struct key_file file;
    struct auth_error reason = {"out of memory"};
    if (!key_file_read(path, &file, error))
        return NULL;
    size_t len = file.len;
    if (len > 0 && file.data[len - 1] == '\n')
        len--;
    if (len > 0 && file.data[len - 1] == '\r')
        len--;
    struct key_set *set = make_key_set(1);
    if (set && key_init_secret(&set->keys[0], (struct slice){file.data, len}, &reason)) {
        set->count = 1;
    } else {
        auth_error_set(error, "%s: %s", path, reason.text);
        key_set_release(&set);
    }
    key_file_free(&file);
    return set;
}

struct key_set *key_set_unite(const struct key_set *const *sets, size_t count)
{
    size_t capacity = 0;
    for (size_t i = 0; i < count; i++)
        capacity += sets[i] ? sets[i]->count : 0;
    struct key_set *united = make_key_set(capacity);
    for (size_t i = 0; united && i < count; i++)
        for (size_t k = 0; united && sets[i] && k < sets[i]->count; k++) {
            if (key_copy(&united->keys[united->count], &sets[i]->keys[k]))
                united->count++;
            else
                key_set_release(&united);
        }
    return united;
}

struct key_set *key_set_share(struct key_set *set)
{
    atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
    return set;
}

void key_set_release(struct key_set **held)
{
    struct key_set *set = *held;
    *held = NULL;
    if (!set || atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < set->count; i++)
        key_release(&set->keys[i]);
    free(set);
}

size_t key_set_count(const struct key_set *set)
{
    return set->count;
}

bool key_set_has_tag(const struct key_set *set, uint32_t tag)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->keys[i].tag == tag)
            return true;
    return false;
}

bool key_set_is_within(const struct key_set *set, const struct key_set *other)
{
    for (size_t i = 0; i < set->count; i++)
        if (!key_set_has_tag(other, set->keys[i].tag))
            return false;
    return true;
}

bool key_set_has_name(const struct key_set *set, struct slice name)
{
    for (size_t i = 0; i < set->count; i++)
        if (key_is_named(&set->keys[i], name))
            return true;
    return false;
}

static bool is_key_without_id(const struct key *key, struct slice name)
{
    (void)name;
    return key->id_len == 0;
}

static bool is_any_key(const struct key *key, struct slice name)
{
    (void)key;
    (void)name;
    return true;
}

/* Chooses among the keys that `fits` accepts those with `algorithm`. */
static enum key_set_choice choose_fitting_keys(const struct key_set *set, struct slice name,
                                               bool (*fits)(const struct key *, struct slice),
                                               enum key_algorithm algorithm,
                                               struct key_set_candidates *out)
{
    enum key_set_choice choice = KEY_SET_UNKNOWN_NAME;
    out->count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct key *key = &set->keys[i];
        if (!fits(key, name))
            continue;
        if (choice == KEY_SET_UNKNOWN_NAME)
            choice = KEY_SET_WRONG_ALGORITHM;
        if (key->algorithm != algorithm)
            continue;
        if (out->count == KEY_SET_CANDIDATES_MAX)
            return KEY_SET_AMBIGUOUS;
        choice = KEY_SET_CHOSEN;
        out->keys[out->count++] = key;
    }
    return choice;
}

enum key_set_choice key_set_choose(const struct key_set *set, struct slice name,
                                   enum key_algorithm algorithm, struct key_set_candidates *out)
{
    if (name.len == 0)
        return choose_fitting_keys(set, name, is_any_key, algorithm, out);
    enum key_set_choice choice = choose_fitting_keys(set, name, key_is_named, algorithm, out);
    if (choice == KEY_SET_UNKNOWN_NAME)
        choice = choose_fitting_keys(set, name, is_key_without_id, algorithm, out);
    return choice;
}

#include "api/api_keys.h"

#include "auth/jwt_claims.h"
#include "base/container.h"
#include "log/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_USER_PREFIX "key:"

/* A request that waits for the list. */
struct key_check {
    struct list of_keys;
    char hash[API_KEY_HASH_LEN];
    api_keys_done done;
    void *arg;
};

void api_keys_init(struct api_keys *keys, struct ledger_client *ledger, const struct clock *clock)
{
    *keys = (struct api_keys){.ledger = ledger, .clock = clock, .read_at_ms = INT64_MIN / 2};
    list_init(&keys->waiting);
}

void api_keys_free(struct api_keys *keys)
{
    free(keys->entries);
    keys->entries = NULL;
}

/* ---- deciding ---- */

static void on_key_use_noted(void *arg, const struct ledger_change_outcome *outcome)
{
    (void)arg, (void)outcome; /* the next use tries again after a step */
}

static void note_key_use(struct api_keys *keys, struct api_key_entry *entry)
{
    struct slice user = identity_user(&entry->identity);
    if (keys->clock->wall_ms - entry->last_used_ms < API_KEYS_USED_STEP_MS)
        return;
    entry->last_used_ms = keys->clock->wall_ms;
    ledger_key_used(keys->ledger, slice_after(user, sizeof(KEY_USER_PREFIX) - 1), on_key_use_noted,
                    NULL);
}

/* Compares with every key, so that the time tells nothing about where one is in the list. */
static struct api_key_entry *find_key_entry(const struct api_keys *keys,
                                            const char hash[API_KEY_HASH_LEN])
{
    struct api_key_entry *found = NULL;
    for (size_t i = 0; i < keys->count; i++)
        if (api_key_hash_equal(hash, (struct slice){keys->entries[i].hash, API_KEY_HASH_LEN}))
            found = &keys->entries[i];
    return found;
}

static void answer_key_check(struct api_keys *keys, const char hash[API_KEY_HASH_LEN],
                             api_keys_done done, void *arg)
{
    struct api_key_entry *found = find_key_entry(keys, hash);
    if (found)
        note_key_use(keys, found);
    done(arg, found ? API_KEYS_OK : API_KEYS_UNKNOWN, found ? &found->identity : NULL);
}

/* ---- reading ---- */

static bool make_key_entry(struct api_key_entry *entry, const struct ledger_key *key)
{
    struct identity *identity = &entry->identity;
    *entry = (struct api_key_entry){.last_used_ms = key->last_used_ms};
    if (!api_key_name_valid(key->name) || key->hash.len != API_KEY_HASH_LEN)
        return false;
    memcpy(entry->hash, key->hash.data, API_KEY_HASH_LEN);
    int len = snprintf(identity->user, sizeof(identity->user), KEY_USER_PREFIX "%.*s",
                       SLICE_FORMAT(key->name));
    identity->user_len = (uint8_t)len;
    identity->scopes = jwt_claims_scopes(key->scope);
    return true;
}

/* What this gateway has noted lately may be on its way to the ledger. */
static void keep_newer_uses(const struct api_keys *keys, struct api_key_entry *entry)
{
    for (size_t i = 0; i < keys->count; i++)
        if (memcmp(keys->entries[i].hash, entry->hash, API_KEY_HASH_LEN) == 0 &&
            keys->entries[i].last_used_ms > entry->last_used_ms)
            entry->last_used_ms = keys->entries[i].last_used_ms;
}

/* Returns false when out of memory: the old list stays and is too old. */
static bool take_key_list(struct api_keys *keys, const struct ledger_keys_outcome *outcome)
{
    struct api_key_entry *entries = calloc(outcome->count + 1, sizeof(*entries));
    size_t count = 0;
    if (!entries)
        return false;
    for (size_t i = 0; i < outcome->count; i++) {
        if (!make_key_entry(&entries[count], &outcome->keys[i]))
            continue;
        keep_newer_uses(keys, &entries[count]);
        count++;
    }
    free(keys->entries);
    keys->entries = entries;
    keys->count = count;
    keys->read_at_ms = keys->reading_since_ms;
    return true;
}

static void on_keys_listed(void *arg, const struct ledger_keys_outcome *outcome)
{
    struct api_keys *keys = arg;
    bool is_known = outcome->status == LEDGER_OK && take_key_list(keys, outcome);
    keys->reading = false;
    while (!list_empty(&keys->waiting)) {
        struct key_check *check = CONTAINER_OF(keys->waiting.next, struct key_check, of_keys);
        list_remove(&check->of_keys);
        keys->waiting_count--;
        if (is_known)
            answer_key_check(keys, check->hash, check->done, check->arg);
        else
            check->done(check->arg, API_KEYS_UNAVAILABLE, NULL);
        free(check);
    }
}

static void wait_for_keys(struct api_keys *keys, const char hash[API_KEY_HASH_LEN],
                          api_keys_done done, void *arg)
{
    struct key_check *check =
        keys->waiting_count < API_KEYS_WAITING_MAX ? malloc(sizeof(*check)) : NULL;
    if (!check) {
        done(arg, API_KEYS_BUSY, NULL);
        return;
    }
    *check = (struct key_check){.done = done, .arg = arg};
    memcpy(check->hash, hash, API_KEY_HASH_LEN);
    list_append(&keys->waiting, &check->of_keys);
    keys->waiting_count++;
    if (keys->reading)
        return;
    keys->reading = true;
    keys->reading_since_ms = keys->clock->now_ms;
    ledger_keys_list(keys->ledger, on_keys_listed, keys);
}

void api_keys_verify(struct api_keys *keys, struct slice text, api_keys_done done, void *arg)
{
    char hash[API_KEY_HASH_LEN];
    int64_t age_ms = keys->clock->now_ms - keys->read_at_ms;
    if (!api_key_hash(text, hash))
        done(arg, API_KEYS_UNKNOWN, NULL);
    else if (age_ms <=
             (find_key_entry(keys, hash) ? API_KEYS_AGE_MAX_MS : API_KEYS_UNKNOWN_AGE_MAX_MS))
        answer_key_check(keys, hash, done, arg);
    else
        wait_for_keys(keys, hash, done, arg);
}

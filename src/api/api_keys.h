/*
 * The API keys of one gateway: whose key a request carries, and what it may do.
 *
 * The ledger has the keys (ledger/ledger_keys.h). A gateway reads their list when a request brings a key and the list is
 * older than API_KEYS_AGE_MAX_MS; the request waits for it. So a key that is revoked is refused on every gateway after
 * that time, and an installation without keys reads nothing. If the list cannot be read, nobody is admitted (503).
 * Wrong keys cost one read in API_KEYS_UNKNOWN_AGE_MAX_MS, however many they are.
 *
 * The time of the last use is coarse: a gateway writes it when the one it knows is older than API_KEYS_USED_STEP_MS.
 *
 * A key has the identity "key:NAME", which is no user: routes for users refuse it. One thread.
 */
#ifndef ROLLCALL_API_API_KEYS_H
#define ROLLCALL_API_API_KEYS_H

#include "auth/api_key.h"
#include "auth/identity.h"
#include "base/list.h"
#include "ledger/ledger_keys.h"

enum {
    API_KEYS_AGE_MAX_MS = 1000,
    API_KEYS_UNKNOWN_AGE_MAX_MS = 100, /* for a key that the list does not have: it may be new */
    API_KEYS_USED_STEP_MS = 60000,
    API_KEYS_WAITING_MAX = 1024,
};

enum api_keys_result {
    API_KEYS_OK,
    API_KEYS_UNKNOWN,     /* no such key, or revoked */
    API_KEYS_BUSY,        /* too many requests wait */
    API_KEYS_UNAVAILABLE, /* the list cannot be read */
};

/* `identity` is NULL unless the result is OK. */
typedef void (*api_keys_done)(void *arg, enum api_keys_result result,
                              const struct identity *identity);

struct api_key_entry {
    struct identity identity;
    char hash[API_KEY_HASH_LEN];
    int64_t last_used_ms; /* wall clock */
};

struct api_keys {
    struct ledger_client *ledger;
    const struct clock *clock;
    struct api_key_entry *entries;
    size_t count;
    int64_t read_at_ms; /* monotonic: when the read of the list began */
    int64_t reading_since_ms;
    bool reading;
    struct list waiting;
    size_t waiting_count;
};

void api_keys_init(struct api_keys *keys, struct ledger_client *ledger, const struct clock *clock);

/* Every read must be complete. */
void api_keys_free(struct api_keys *keys);

/* Whether a token is meant as an API key. */
static inline bool api_keys_is_key(struct slice token)
{
    return slice_starts_with(token, API_KEY_PREFIX);
}

/* Verifies a key. `done` runs exactly once, possibly before this returns. */
void api_keys_verify(struct api_keys *keys, struct slice text, api_keys_done done, void *arg);

#endif

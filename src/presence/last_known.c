#include "presence/last_known.h"

#include "base/hash_key.h"

#include <stdlib.h>

enum { SETS = LAST_KNOWN_USERS / LAST_KNOWN_WAYS };

struct known_presence {
    uint64_t hash; /* 0: free */
    int64_t last_seen_ms;
    int64_t version;
    uint32_t noted; /* the count of notes when this entry was noted */
    uint8_t status;
    bool in_call;
    bool is_claimed;
};

struct last_known {
    struct hash_key key;
    uint32_t notes;
    struct known_presence sets[SETS][LAST_KNOWN_WAYS];
};

struct last_known *last_known_make(uint64_t hash_seed)
{
    struct last_known *known = calloc(1, sizeof(*known));
    if (known)
        hash_key_init(&known->key, hash_seed);
    return known;
}

void last_known_free(struct last_known **known)
{
    free(*known);
    *known = NULL;
}

static uint64_t last_known_hash(const struct last_known *known, struct slice user_id)
{
    return hash_key_hash(&known->key, user_id) | 1;
}

void last_known_note(struct last_known *known, const struct presence *presence)
{
    if (!known || presence->status == PRESENCE_UNKNOWN)
        return;
    uint64_t hash = last_known_hash(known, presence->user_id);
    struct known_presence *set = known->sets[(hash >> 1) % SETS];
    struct known_presence *entry = &set[0]; /* the user's own, a free one, or the oldest */
    for (size_t i = 0; i < LAST_KNOWN_WAYS; i++) {
        if (set[i].hash == hash || set[i].hash == 0) {
            entry = &set[i];
            break;
        }
        if (known->notes - set[i].noted > known->notes - entry->noted)
            entry = &set[i];
    }
    if (entry->hash == hash && entry->version > presence->version)
        return;
    *entry = (struct known_presence){
        .hash = hash,
        .last_seen_ms = presence->last_seen_ms,
        .version = presence->version,
        .noted = known->notes++,
        .status = (uint8_t)presence->status,
        .in_call = presence->in_call,
    };
}

static struct known_presence *find_known_presence(struct last_known *known, struct slice user_id)
{
    if (!known)
        return NULL;
    uint64_t hash = last_known_hash(known, user_id);
    struct known_presence *set = known->sets[(hash >> 1) % SETS];
    for (size_t i = 0; i < LAST_KNOWN_WAYS; i++)
        if (set[i].hash == hash)
            return &set[i];
    return NULL;
}

bool last_known_find(struct last_known *known, struct slice user_id, struct presence *out)
{
    const struct known_presence *entry = find_known_presence(known, user_id);
    if (!entry)
        return false;
    *out = (struct presence){
        .user_id = user_id,
        .status = (enum presence_status)entry->status,
        .in_call = entry->in_call,
        .last_seen_ms = entry->last_seen_ms,
        .version = entry->version,
    };
    return true;
}

bool last_known_collides(const struct presence *told, const struct presence *stored)
{
    return !stored->unrecorded && told->version == stored->version &&
           (told->status != stored->status || told->in_call != stored->in_call);
}

bool last_known_is_ahead(const struct presence *told, const struct presence *stored)
{
    if (told->status == PRESENCE_OFFLINE && stored->status == PRESENCE_OFFLINE)
        return false;
    int64_t seen_ms = stored->last_seen_ms == TIME_NONE ? 0 : stored->last_seen_ms;
    if (last_known_collides(told, stored))
        return true;
    return told->version > (stored->unrecorded ? seen_ms : stored->version);
}

bool last_known_begin_claim(struct last_known *known, struct slice user_id)
{
    struct known_presence *entry = find_known_presence(known, user_id);
    if (!entry || entry->is_claimed)
        return false;
    entry->is_claimed = true;
    return true;
}

void last_known_end_claim(struct last_known *known, struct slice user_id)
{
    struct known_presence *entry = find_known_presence(known, user_id);
    if (entry)
        entry->is_claimed = false;
}

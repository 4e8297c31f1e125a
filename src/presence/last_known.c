#include "presence/last_known.h"

#include <stdlib.h>
#include <xxhash.h>

enum { SETS = LAST_KNOWN_USERS / LAST_KNOWN_WAYS };

struct place {
    uint64_t hash; /* 0: free */
    int64_t last_seen_ms;
    int64_t version;
    uint32_t noted; /* when, counted in notes */
    uint8_t status;
    bool in_call;
};

struct last_known {
    uint64_t hash_seed;
    uint32_t notes;
    struct place sets[SETS][LAST_KNOWN_WAYS];
};

struct last_known *last_known_make(uint64_t hash_seed)
{
    struct last_known *known = calloc(1, sizeof(*known));
    if (known)
        known->hash_seed = hash_seed;
    return known;
}

void last_known_free(struct last_known **known)
{
    free(*known);
    *known = NULL;
}

static uint64_t hash_of(const struct last_known *known, struct slice user_id)
{
    return XXH3_64bits_withSeed(user_id.data, user_id.len, known->hash_seed) | 1;
}

static const struct place *find(const struct last_known *known, uint64_t hash)
{
    const struct place *set = known->sets[(hash >> 1) % SETS];
    for (size_t i = 0; i < LAST_KNOWN_WAYS; i++)
        if (set[i].hash == hash)
            return &set[i];
    return NULL;
}

/* The user's own place, a free one, or the one noted longest ago. */
static struct place *take_place(struct last_known *known, uint64_t hash)
{
    struct place *set = known->sets[(hash >> 1) % SETS];
    struct place *oldest = &set[0];
    for (size_t i = 0; i < LAST_KNOWN_WAYS; i++) {
        if (set[i].hash == hash || set[i].hash == 0)
            return &set[i];
        if (known->notes - set[i].noted > known->notes - oldest->noted)
            oldest = &set[i];
    }
    return oldest;
}

void last_known_note(struct last_known *known, const struct presence *presence)
{
    if (!known || presence->status == PRESENCE_UNKNOWN)
        return;
    uint64_t hash = hash_of(known, presence->user_id);
    struct place *place = take_place(known, hash);
    if (place->hash == hash && place->version > presence->version)
        return;
    *place = (struct place){
        .hash = hash,
        .last_seen_ms = presence->last_seen_ms,
        .version = presence->version,
        .noted = known->notes++,
        .status = (uint8_t)presence->status,
        .in_call = presence->in_call,
    };
}

bool last_known_find(const struct last_known *known, struct slice user_id, struct presence *out)
{
    const struct place *place = known ? find(known, hash_of(known, user_id)) : NULL;
    if (!place)
        return false;
    *out = (struct presence){
        .user_id = user_id,
        .status = (enum presence_status)place->status,
        .in_call = place->in_call,
        .last_seen_ms = place->last_seen_ms,
        .version = place->version,
    };
    return true;
}

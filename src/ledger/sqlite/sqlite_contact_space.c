#include "ledger/sqlite/sqlite_contact_space.h"

#include <stdlib.h>
#include <string.h>

struct space_slot {
    uint64_t hash;
    uint32_t left; /* 0: the slot is free */
};

struct sqlite_contact_space {
    struct hash_key key;
    struct space_slot slots[SQLITE_CONTACT_SPACE_SLOTS];
};

struct sqlite_contact_space *sqlite_contact_space_make(uint64_t seed)
{
    struct sqlite_contact_space *space = calloc(1, sizeof(*space));
    if (space)
        hash_key_init(&space->key, seed);
    return space;
}

void sqlite_contact_space_free(struct sqlite_contact_space **space)
{
    free(*space);
    *space = NULL;
}

static struct space_slot *get_space_slot(struct sqlite_contact_space *space, uint64_t hash)
{
    return &space->slots[hash & (SQLITE_CONTACT_SPACE_SLOTS - 1)];
}

uint32_t sqlite_contact_space_get(struct sqlite_contact_space *space, struct slice user)
{
    if (!space)
        return 0;
    uint64_t hash = hash_key_hash(&space->key, user);
    const struct space_slot *slot = get_space_slot(space, hash);
    return slot->hash == hash ? slot->left : 0;
}

void sqlite_contact_space_put(struct sqlite_contact_space *space, struct slice user, uint32_t left)
{
    if (!space)
        return;
    uint64_t hash = hash_key_hash(&space->key, user);
    *get_space_slot(space, hash) = (struct space_slot){hash, left};
}

void sqlite_contact_space_use(struct sqlite_contact_space *space, struct slice user)
{
    uint32_t left = sqlite_contact_space_get(space, user);
    if (left)
        sqlite_contact_space_put(space, user, left - 1);
}

void sqlite_contact_space_forget(struct sqlite_contact_space *space)
{
    if (space)
        memset(space->slots, 0, sizeof(space->slots));
}

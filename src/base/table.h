/*
 * An intrusive hash table: the node is embedded in the stored struct; the table owns only its
 * buckets.
 *
 * Keys are bytes. The table hashes them with a secret key (base/hash_key.h), so that clients cannot aim at one
 * bucket, and compares them with `match`. Growth is incremental: an insert moves a few buckets
 * from the old array, so that no insert pays for the whole table. If an allocation fails during
 * growth, chains get longer until a later insert succeeds; this is not an error.
 *
 * The table does not check for duplicate keys. One thread at a time.
 */
#ifndef ROLLCALL_BASE_TABLE_H
#define ROLLCALL_BASE_TABLE_H

#include "base/hash_key.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_node {
    struct table_node *next;
    uint32_t hash;
};

/* Returns whether the node has this key. */
typedef bool (*table_match)(const struct table_node *node, struct slice key);

/* Receives one node of table_each(); may remove and free that node, but no other. */
typedef void (*table_visit)(struct table_node *node, void *arg);

struct table_buckets {
    struct table_node **heads;
    size_t count; /* a power of two, or 0 */
};

struct table {
    struct table_buckets current;
    struct table_buckets old; /* being moved to current; count 0 if there is none */
    size_t old_next;          /* the first bucket of old that is not moved yet */
    size_t size;
    struct hash_key key; /* made from the seed */
    table_match match;
};

/* Returns false when out of memory. */
bool table_init(struct table *table, uint64_t seed, table_match match);

/* Frees the buckets; the nodes belong to the caller. */
void table_free(struct table *table);

struct table_node *table_find(const struct table *table, struct slice key);
void table_insert(struct table *table, struct table_node *node, struct slice key);

/* The node must be in the table. */
void table_remove(struct table *table, struct table_node *node);

/* Visits a few nodes and moves the cursor, which begins at 0. Returns false when all were visited. A node that is in the
 * table from the first call to the last is visited exactly once, however the table grows in between. `visit` as above. */
bool table_scan(struct table *table, uint64_t *cursor, table_visit visit, void *arg);

/* Returns the cursor from which a scan visits the nodes with this key's hash, and all that come after them. */
uint64_t table_cursor_of(const struct table *table, struct slice key);

/* Calls `visit` for every node. */
void table_each(struct table *table, table_visit visit, void *arg);

#endif

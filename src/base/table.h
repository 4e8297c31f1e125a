/*
 * An intrusive hash table: the node is embedded in what is stored, the table owns only its buckets.
 *
 * Keys are bytes; the table hashes them with a seed of its own (so that peers cannot aim at one
 * bucket) and asks the caller's `match` whether a node has the key. Growth is incremental: an
 * insert moves a few buckets from the old array, so that no call pays for the whole table. An
 * allocation that fails while growing is not an error; chains merely get longer until the next try.
 *
 * Duplicate keys are the caller's business. One thread at a time.
 */
#ifndef ROLLCALL_BASE_TABLE_H
#define ROLLCALL_BASE_TABLE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_node {
    struct table_node *next;
    uint32_t hash;
};

struct table_buckets {
    struct table_node **heads;
    size_t count; /* a power of two, or 0 */
};

struct table {
    struct table_buckets current;
    struct table_buckets old; /* being emptied into current; count 0 when there is none */
    size_t old_next;          /* the first bucket of old not moved yet */
    size_t size;
    uint64_t seed;
    bool (*match)(const struct table_node *node, struct slice key);
};

/* False when the first buckets cannot be allocated. */
bool table_init(struct table *table, uint64_t seed,
                bool (*match)(const struct table_node *node, struct slice key));

/* Frees the buckets; the nodes are the caller's. */
void table_free(struct table *table);

struct table_node *table_find(const struct table *table, struct slice key);
void table_insert(struct table *table, struct table_node *node, struct slice key);

/* The node must be in the table. */
void table_remove(struct table *table, struct table_node *node);

/* Calls `visit` for every node; it may remove and free the node it is given, and nothing else. */
void table_each(struct table *table, void (*visit)(struct table_node *node, void *arg), void *arg);

#endif

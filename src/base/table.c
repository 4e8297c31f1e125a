#include "base/table.h"

#include <assert.h>
#include <stdlib.h>

enum { TABLE_BUCKETS_MIN = 64, TABLE_MOVES_PER_INSERT = 4 };

static bool alloc_table_buckets(struct table_buckets *buckets, size_t count)
{
    buckets->heads = calloc(count, sizeof(struct table_node *));
    buckets->count = buckets->heads ? count : 0;
    return buckets->heads != NULL;
}

static struct table_node **table_bucket_of(const struct table_buckets *buckets, uint32_t hash)
{
    return &buckets->heads[hash & (buckets->count - 1)];
}

static void push_table_node(struct table_buckets *buckets, struct table_node *node)
{
    struct table_node **head = table_bucket_of(buckets, node->hash);
    node->next = *head;
    *head = node;
}

bool table_init(struct table *table, uint64_t seed, table_match match)
{
    *table = (struct table){.match = match};
    hash_key_init(&table->key, seed);
    return alloc_table_buckets(&table->current, TABLE_BUCKETS_MIN);
}

void table_free(struct table *table)
{
    free(table->current.heads);
    free(table->old.heads);
    *table = (struct table){0};
}

static uint32_t table_hash_of(const struct table *table, struct slice key)
{
    return (uint32_t)hash_key_hash(&table->key, key);
}

static struct table_node *find_table_node(const struct table *table,
                                          const struct table_buckets *buckets, uint32_t hash,
                                          struct slice key)
{
    if (buckets->count == 0)
        return NULL;
    for (struct table_node *node = *table_bucket_of(buckets, hash); node; node = node->next)
        if (node->hash == hash && table->match(node, key))
            return node;
    return NULL;
}

struct table_node *table_find(const struct table *table, struct slice key)
{
    uint32_t hash = table_hash_of(table, key);
    struct table_node *node = find_table_node(table, &table->current, hash, key);
    return node ? node : find_table_node(table, &table->old, hash, key);
}

static void move_old_table_buckets(struct table *table, size_t moves)
{
    for (; moves && table->old_next < table->old.count; moves--) {
        struct table_node *node = table->old.heads[table->old_next];
        table->old.heads[table->old_next++] = NULL; /* table_find() still reads it */
        while (node) {
            struct table_node *next = node->next;
            push_table_node(&table->current, node);
            node = next;
        }
    }
    if (table->old.count && table->old_next == table->old.count) {
        free(table->old.heads);
        table->old = (struct table_buckets){0};
    }
}

void table_insert(struct table *table, struct table_node *node, struct slice key)
{
    struct table_buckets bigger;
    bool is_full = table->old.count == 0 && table->size >= table->current.count;
    if (is_full && alloc_table_buckets(&bigger, table->current.count * 2)) {
        table->old = table->current;
        table->old_next = 0;
        table->current = bigger;
    }
    node->hash = table_hash_of(table, key);
    push_table_node(&table->current, node);
    table->size++;
    move_old_table_buckets(table, TABLE_MOVES_PER_INSERT);
}

static bool unlink_table_node(struct table_buckets *buckets, struct table_node *node)
{
    if (buckets->count == 0)
        return false;
    struct table_node **at = table_bucket_of(buckets, node->hash);
    while (*at && *at != node)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = node->next;
    return true;
}

void table_remove(struct table *table, struct table_node *node)
{
    bool found = unlink_table_node(&table->current, node) || unlink_table_node(&table->old, node);
    assert(found);
    (void)found;
    node->next = NULL;
    table->size--;
}

void table_each(struct table *table, table_visit visit, void *arg)
{
    move_old_table_buckets(table, SIZE_MAX);
    for (size_t i = 0; i < table->current.count; i++) {
        struct table_node *node = table->current.heads[i];
        while (node) {
            struct table_node *next = node->next;
            visit(node, arg);
            node = next;
        }
    }
}

/* ---- scanning ---- */

/* A scan goes through the nodes in the order of their hashes read from the last bit to the first. A bucket holds the
 * hashes with the same last bits, so it is a range in that order, and so is each half of it after the table has grown. */
static uint32_t reverse_table_bits(uint32_t bits)
{
    bits = (bits & 0x55555555) << 1 | (bits >> 1 & 0x55555555);
    bits = (bits & 0x33333333) << 2 | (bits >> 2 & 0x33333333);
    bits = (bits & 0x0f0f0f0f) << 4 | (bits >> 4 & 0x0f0f0f0f);
    return __builtin_bswap32(bits);
}

static void scan_table_bucket(const struct table_buckets *buckets, uint64_t from, uint64_t to,
                              table_visit visit, void *arg)
{
    if (buckets->count == 0)
        return;
    struct table_node *node = *table_bucket_of(buckets, reverse_table_bits((uint32_t)from));
    while (node) {
        struct table_node *next = node->next;
        uint32_t place = reverse_table_bits(node->hash);
        if (place >= from && place < to)
            visit(node, arg);
        node = next;
    }
}

bool table_scan(struct table *table, uint64_t *cursor, table_visit visit, void *arg)
{
    const uint64_t end = (uint64_t)UINT32_MAX + 1;
    uint64_t width = end / table->current.count;
    uint64_t from = *cursor;
    if (from >= end)
        return false;
    *cursor = (from / width + 1) * width;
    scan_table_bucket(&table->current, from, *cursor, visit, arg);
    scan_table_bucket(&table->old, from, *cursor, visit, arg);
    return *cursor < end;
}

uint64_t table_cursor_of(const struct table *table, struct slice key)
{
    return reverse_table_bits(table_hash_of(table, key));
}

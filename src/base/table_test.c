#include "base/table.h"

#include "base/container.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct entry {
    struct table_node node;
    uint32_t key;
    uint32_t visits;
};

static struct slice key_of(const uint32_t *key)
{
    return (struct slice){(const char *)key, sizeof(*key)};
}

static bool matches(const struct table_node *node, struct slice key)
{
    return slice_equal(key_of(&CONTAINER_OF(node, struct entry, node)->key), key);
}

static struct entry *find(const struct table *table, uint32_t key)
{
    struct table_node *node = table_find(table, key_of(&key));
    return node ? CONTAINER_OF(node, struct entry, node) : NULL;
}

static void insert(struct table *table, uint32_t key)
{
    struct entry *entry = calloc(1, sizeof(*entry));
    entry->key = key;
    table_insert(table, &entry->node, key_of(&entry->key));
}

static void remove_and_free(struct table *table, struct entry *entry)
{
    table_remove(table, &entry->node);
    free(entry);
}

static void free_entry(struct table_node *node, void *arg)
{
    remove_and_free(arg, CONTAINER_OF(node, struct entry, node));
}

static int set_up(void **state)
{
    struct table *table = malloc(sizeof(*table));
    *state = table;
    return table_init(table, 7, matches) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct table *table = *state;
    table_each(table, free_entry, table);
    assert_int_equal(table->size, 0);
    table_free(table);
    free(table);
    return 0;
}

static void find_works_while_the_table_grows(void **state)
{
    enum { KEYS = 5000 };
    struct table *table = *state;
    for (uint32_t key = 0; key < KEYS; key++) {
        assert_null(find(table, key));
        insert(table, key);
        assert_int_equal(table->size, key + 1);
        /* Check all keys while buckets move, else a sample. */
        for (uint32_t known = 0; known <= key; known += table->old.count ? 1 : 97)
            assert_int_equal(find(table, known)->key, known);
    }
    assert_true(table->current.count >= KEYS);
}

/* A node that moved to the new buckets and was freed must not be reachable from the old ones. */
static void node_removed_during_growth_is_not_found(void **state)
{
    struct table *table = *state;
    uint32_t next = 0;
    while (table->old.count == 0)
        insert(table, next++);
    assert_true(table->old_next > 0);
    for (uint32_t key = 0; key < next; key++) {
        remove_and_free(table, find(table, key));
        for (uint32_t other = 0; other < next; other++)
            assert_int_equal(find(table, other) != NULL, other > key);
    }
    assert_int_equal(table->size, 0);
}

static void table_agrees_with_a_model(void **state)
{
    enum { KEYS = 600, STEPS = 60000 };
    struct table *table = *state;
    struct random random;
    bool held[KEYS] = {false};
    size_t count = 0;
    random_init_seeded(&random, 1);
    for (int step = 0; step < STEPS; step++) {
        uint32_t key = (uint32_t)random_below(&random, KEYS);
        struct entry *entry = find(table, key);
        assert_int_equal(entry != NULL, held[key]);
        if (entry)
            remove_and_free(table, entry);
        else
            insert(table, key);
        held[key] = !held[key];
        count += held[key] ? 1 : (size_t)-1;
        assert_int_equal(table->size, count);
    }
}

static void visit_and_drop_odd(struct table_node *node, void *arg)
{
    struct entry *entry = CONTAINER_OF(node, struct entry, node);
    entry->visits++;
    if (entry->key % 2)
        remove_and_free(arg, entry);
}

static void each_may_remove_the_visited_node(void **state)
{
    struct table *table = *state;
    uint32_t keys = 0;
    while (keys < 300 || table->old.count == 0) /* until growth is in progress */
        insert(table, keys++);
    table_each(table, visit_and_drop_odd, table);
    assert_int_equal(table->size, (keys + 1) / 2);
    for (uint32_t key = 0; key < keys; key++) {
        struct entry *entry = find(table, key);
        assert_int_equal(entry != NULL, key % 2 == 0);
        if (entry)
            assert_int_equal(entry->visits, 1);
    }
}

static void count_visit(struct table_node *node, void *arg)
{
    (void)arg;
    CONTAINER_OF(node, struct entry, node)->visits++;
}

static void scan_visits_each_lasting_node_once_while_the_table_grows(void **state)
{
    enum { LASTING = 1000, COMING = 50000 };
    struct table *table = *state;
    uint32_t next = LASTING;
    uint64_t cursor = 0;
    for (uint32_t key = 0; key < LASTING; key++)
        insert(table, key);
    while (table_scan(table, &cursor, count_visit, NULL))
        for (int i = 0; i < 40 && next < COMING; i++)
            insert(table, next++);
    assert_true(next > 10 * LASTING);
    for (uint32_t key = 0; key < LASTING; key++)
        assert_int_equal(find(table, key)->visits, 1);
    assert_false(table_scan(table, &cursor, count_visit, NULL));
}

static void scan_from_a_key_visits_what_comes_after_it(void **state)
{
    enum { KEYS = 300 };
    struct table *table = *state;
    for (uint32_t key = 0; key < KEYS; key++)
        insert(table, key);
    for (uint32_t from = 0; from < KEYS; from++) {
        uint64_t place = table_cursor_of(table, key_of(&from)), cursor = place;
        while (table_scan(table, &cursor, count_visit, NULL))
            continue;
        for (uint32_t key = 0; key < KEYS; key++) {
            struct entry *entry = find(table, key);
            assert_int_equal(entry->visits, table_cursor_of(table, key_of(&key)) >= place);
            entry->visits = 0;
        }
    }
}

static void empty_key_can_be_looked_up(void **state)
{
    struct table *table = *state;
    assert_null(table_find(table, SLICE_NONE));
}

#define with_table(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_table(find_works_while_the_table_grows),
        with_table(node_removed_during_growth_is_not_found),
        with_table(table_agrees_with_a_model),
        with_table(each_may_remove_the_visited_node),
        with_table(scan_visits_each_lasting_node_once_while_the_table_grows),
        with_table(scan_from_a_key_visits_what_comes_after_it),
        with_table(empty_key_can_be_looked_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

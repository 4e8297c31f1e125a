/* Buffers, blobs, id lists and tables survive running out of memory. */
#include "base/blob.h"
#include "base/buffer.h"
#include "base/container.h"
#include "base/id_list.h"
#include "base/table.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { KEYS = 1000 };

static void write_long_text(struct buffer *buffer)
{
    for (int i = 0; i < 50; i++) {
        buffer_append_text(buffer, "some text, ");
        buffer_append_int(buffer, i);
        buffer_printf(buffer, " and %d", i * i);
        buffer_append_byte(buffer, '\n');
    }
}

static void buffer_failure_is_sticky(void **state)
{
    (void)state;
    struct buffer whole = BUFFER_INIT;
    write_long_text(&whole);
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct buffer buffer = BUFFER_INIT;
        alloc_fault_after(n);
        write_long_text(&buffer);
        failed = alloc_fault_off();
        assert_int_equal(buffer.failed, failed > 0);
        assert_true(buffer.len <= whole.len);
        assert_int_equal(buffer.len == whole.len, failed == 0);
        assert_true(slice_starts_with(buffer_slice(&whole), buffer_slice(&buffer)));
        buffer_clear(&buffer);
        buffer_append_text(&buffer, "works again");
        assert_true(slice_is(buffer_slice(&buffer), "works again"));
        buffer_free(&buffer);
    }
    buffer_free(&whole);
}

static void blob_make_without_memory_returns_null(void **state)
{
    (void)state;
    alloc_fault_after(1);
    assert_null(blob_make(SLICE("h"), SLICE("p")));
    assert_int_equal(alloc_fault_off(), 1);
}

static void id_list_copy_fails_and_leaves_the_list_empty(void **state)
{
    (void)state;
    struct slice id = SLICE("alice");
    struct id_list list = {&id, 1};
    alloc_fault_after(1);
    assert_false(id_list_copy(&list, &id, 1));
    assert_int_equal(alloc_fault_off(), 1);
    assert_null(list.ids);
    assert_int_equal(list.count, 0);
}

struct entry {
    struct table_node node;
    int key;
};

static bool matches(const struct table_node *node, struct slice key)
{
    return memcmp(&CONTAINER_OF(node, struct entry, node)->key, key.data, sizeof(int)) == 0;
}

static struct slice key_of(const int *key)
{
    return (struct slice){(const char *)key, sizeof(*key)};
}

static void table_that_cannot_grow_still_works(void **state)
{
    (void)state;
    static struct entry entries[KEYS];
    struct table table;
    alloc_fault_after(1);
    assert_false(table_init(&table, 3, matches));
    alloc_fault_off();
    table_free(&table);

    assert_true(table_init(&table, 3, matches));
    alloc_fault_from(1);
    for (int key = 0; key < KEYS; key++) {
        entries[key].key = key;
        table_insert(&table, &entries[key].node, key_of(&entries[key].key));
    }
    assert_true(alloc_fault_off() > 0);
    for (int key = 0; key < KEYS; key++)
        assert_ptr_equal(table_find(&table, key_of(&key)), &entries[key].node);
    assert_int_equal(table.size, KEYS);
    table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_failure_is_sticky),
        cmocka_unit_test(blob_make_without_memory_returns_null),
        cmocka_unit_test(id_list_copy_fails_and_leaves_the_list_empty),
        cmocka_unit_test(table_that_cannot_grow_still_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

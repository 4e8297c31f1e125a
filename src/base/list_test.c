#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ITEMS = 4 };

/* Checks that both directions hold the items with these numbers, in this order. */
static void assert_order(struct list *head, struct list *items, const int *order, size_t count)
{
    struct list *at = head;
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(at->next, &items[order[i]]);
        assert_ptr_equal(at->next->prev, at);
        at = at->next;
    }
    assert_ptr_equal(at->next, head);
    assert_ptr_equal(head->prev, at);
    assert_int_equal(list_empty(head), count == 0);
}

static void fill(struct list *head, struct list items[ITEMS])
{
    list_init(head);
    for (int i = 0; i < ITEMS; i++) {
        list_init(&items[i]);
        list_append(head, &items[i]);
    }
}

static void items_keep_the_order_of_appending(void **state)
{
    (void)state;
    struct list head, items[ITEMS];
    list_init(&head);
    assert_order(&head, items, NULL, 0);
    fill(&head, items);
    assert_order(&head, items, (int[]){0, 1, 2, 3}, 4);
}

static void item_can_be_removed_twice(void **state)
{
    (void)state;
    struct list head, items[ITEMS];
    fill(&head, items);
    for (int again = 0; again < 2; again++) {
        list_remove(&items[2]);
        assert_order(&head, items, (int[]){0, 1, 3}, 3);
        assert_true(list_empty(&items[2]));
    }
    list_remove(&items[0]);
    list_remove(&items[3]);
    assert_order(&head, items, (int[]){1}, 1);
    list_remove(&items[1]);
    assert_order(&head, items, NULL, 0);
}

static void appending_a_removed_item_moves_it_to_the_end(void **state)
{
    (void)state;
    struct list head, items[ITEMS];
    fill(&head, items);
    list_remove(&items[1]);
    list_append(&head, &items[1]);
    assert_order(&head, items, (int[]){0, 2, 3, 1}, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_keep_the_order_of_appending),
        cmocka_unit_test(item_can_be_removed_twice),
        cmocka_unit_test(appending_a_removed_item_moves_it_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* An intrusive doubly linked list. A `struct list` is the head as well as an item. An unlinked
 * item points to itself, so list_remove() may be called twice. */
#ifndef ROLLCALL_BASE_LIST_H
#define ROLLCALL_BASE_LIST_H

#include <stdbool.h>

struct list {
    struct list *next;
    struct list *prev;
};

static inline void list_init(struct list *list)
{
    list->next = list;
    list->prev = list;
}

static inline bool list_empty(const struct list *list)
{
    return list->next == list;
}

static inline void list_append(struct list *head, struct list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

static inline void list_remove(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

#endif

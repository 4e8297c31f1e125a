/*
 * A list of ids (users, chats): borrowed, or an owned copy in one allocation.
 *
 * A borrowed list points to memory that another object owns and is valid as long as that memory. An
 * owned list comes from id_list_copy(): the slices first, then the bytes of all ids; id_list_free()
 * releases it. The struct looks the same in both cases, so the holder documents which of the two it
 * holds. All zero is the empty list.
 *
 * A struct that already has an allocation of its own reserves id_list_bytes() in it and fills it
 * with id_list_pack().
 */
#ifndef ROLLCALL_BASE_ID_LIST_H
#define ROLLCALL_BASE_ID_LIST_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

enum { ID_LIST_COUNT_MAX = 1 << 20 }; /* ids in an owned list; a longer copy is refused */

struct id_list {
    const struct slice *ids;
    size_t count;
};

/* Copies the ids into a new owned list. Returns false, and leaves *out empty, when out of memory or
 * beyond ID_LIST_COUNT_MAX. */
bool id_list_copy(struct id_list *out, const struct slice *ids, size_t count);

/* Frees an owned list and leaves it empty. */
void id_list_free(struct id_list *list);

/* Returns the number of bytes that all ids have together. */
size_t id_list_bytes(const struct slice *ids, size_t count);

/* Copies the bytes of `ids` to `bytes`, which has id_list_bytes() of space, and makes `slices`
 * point to them. `slices` may be the same array as `ids`. Returns the end of what was written. */
char *id_list_pack(struct slice *slices, const struct slice *ids, size_t count, char *bytes);

/* Orders ids by their bytes; a prefix comes first. Negative, 0 or positive, as memcmp(3). */
int id_list_compare(struct slice a, struct slice b);

/* Sorts a list, whose array must be writable, by id_list_compare(). */
void id_list_sort(struct id_list *list);

bool id_list_contains(const struct id_list *list, struct slice id);

/* The same for a sorted list, in logarithmic time. */
bool id_list_sorted_contains(const struct id_list *list, struct slice id);

/* Returns the place of the id in a sorted list, NULL if it is not there. */
const struct slice *id_list_sorted_find(const struct id_list *list, struct slice id);

/* Sorts ids and keeps each once. Returns how many are left. */
size_t id_list_sort_unique(struct slice *ids, size_t count);

/* Returns whether both lists hold the same ids in the same order. */
bool id_list_equal(const struct id_list *a, const struct id_list *b);

#endif

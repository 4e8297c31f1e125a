#include "base/id_list.h"

#include <stdlib.h>

size_t id_list_bytes(const struct slice *ids, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += ids[i].len;
    return bytes;
}

char *id_list_pack(struct slice *slices, const struct slice *ids, size_t count, char *bytes)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = ids[i].len;
        if (len)
            memcpy(bytes, ids[i].data, len);
        slices[i] = (struct slice){bytes, len};
        bytes += len;
    }
    return bytes;
}

bool id_list_copy(struct id_list *out, const struct slice *ids, size_t count)
{
    *out = (struct id_list){0};
    if (count == 0)
        return true;
    if (count > ID_LIST_COUNT_MAX)
        return false;
    struct slice *slices = malloc(count * sizeof(*slices) + id_list_bytes(ids, count));
    if (!slices)
        return false;
    id_list_pack(slices, ids, count, (char *)(slices + count));
    *out = (struct id_list){slices, count};
    return true;
}

void id_list_free(struct id_list *list)
{
    free((void *)list->ids);
    *list = (struct id_list){0};
}

int id_list_compare(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_id_pointers(const void *left, const void *right)
{
    return id_list_compare(*(const struct slice *)left, *(const struct slice *)right);
}

void id_list_sort(struct id_list *list)
{
    if (list->count)
        qsort((void *)list->ids, list->count, sizeof(*list->ids), compare_id_pointers);
}

bool id_list_contains(const struct id_list *list, struct slice id)
{
    for (size_t i = 0; i < list->count; i++)
        if (slice_equal(list->ids[i], id))
            return true;
    return false;
}

const struct slice *id_list_sorted_find(const struct id_list *list, struct slice id)
{
    return list->count ? bsearch(&id, list->ids, list->count, sizeof(id), compare_id_pointers)
                       : NULL;
}

bool id_list_sorted_contains(const struct id_list *list, struct slice id)
{
    return id_list_sorted_find(list, id) != NULL;
}

size_t id_list_sort_unique(struct slice *ids, size_t count)
{
    size_t kept = 0;
    id_list_sort(&(struct id_list){ids, count});
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !slice_equal(ids[i], ids[kept - 1]))
            ids[kept++] = ids[i];
    return kept;
}

bool id_list_equal(const struct id_list *a, const struct id_list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!slice_equal(a->ids[i], b->ids[i]))
            return false;
    return true;
}

#include "redis_model/model_value.h"

#include <stdlib.h>

static void *allocate(void *old, size_t bytes)
{
    void *memory = realloc(old, bytes);
    if (!memory)
        abort();
    return memory;
}

static struct slice copy_text(struct slice text)
{
    char *copy = allocate(NULL, text.len + 1);
    if (text.len)
        memcpy(copy, text.data, text.len);
    return (struct slice){copy, text.len};
}

static void free_text(struct slice *text)
{
    free((char *)text->data);
    *text = SLICE_NONE;
}

static int compare_texts(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

const char *model_type_name(enum model_type type)
{
    static const char *const names[] = {"string", "hash", "set", "zset", "list"};
    return names[type];
}

struct model_value *model_value_make(enum model_type type)
{
    struct model_value *value = allocate(NULL, sizeof(*value));
    *value = (struct model_value){.type = type};
    return value;
}

static void free_member(struct model_member *member)
{
    free_text(&member->name);
    free_text(&member->text);
    free(member);
}

void model_value_free(struct model_value *value)
{
    for (size_t i = 0; i < value->count; i++)
        free_member(value->members[i]);
    free(value->members);
    free(value->by_score);
    free_text(&value->text);
    free(value);
}

void model_string_set(struct model_value *value, struct slice text)
{
    struct slice copy = copy_text(text);
    free_text(&value->text);
    value->text = copy;
}

/* ---- members by name ---- */

/* Returns where the name is, or where it would be. */
static size_t find_place(const struct model_value *value, struct slice name, bool *found)
{
    size_t low = 0, high = value->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare_texts(value->members[middle]->name, name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = false;
    return low;
}

static void insert_at(struct model_member **array, size_t count, size_t at,
                      struct model_member *member)
{
    memmove(&array[at + 1], &array[at], (count - at) * sizeof(*array));
    array[at] = member;
}

static void remove_at(struct model_member **array, size_t count, size_t at, size_t removed)
{
    memmove(&array[at], &array[at + removed], (count - at - removed) * sizeof(*array));
}

static void reserve_member(struct model_value *value)
{
    if (value->count < value->capacity)
        return;
    value->capacity = value->capacity ? 2 * value->capacity : 4;
    value->members = allocate(value->members, value->capacity * sizeof(*value->members));
    if (value->type == MODEL_SORTED_SET)
        value->by_score = allocate(value->by_score, value->capacity * sizeof(*value->by_score));
}

static struct model_member *make_member(struct slice name)
{
    struct model_member *member = allocate(NULL, sizeof(*member));
    *member = (struct model_member){.name = copy_text(name)};
    return member;
}

struct model_member *model_member_find(const struct model_value *value, struct slice name)
{
    bool found;
    size_t at = find_place(value, name, &found);
    return found ? value->members[at] : NULL;
}

/* ---- members by score ---- */

static int compare_scores(const struct model_member *a, const struct model_member *b)
{
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return compare_texts(a->name, b->name);
}

/* Returns where the member is among `count` members, or where it would be. */
static size_t find_score_place(const struct model_value *value, size_t count,
                               const struct model_member *member)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_scores(value->by_score[middle], member) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t model_score_index(const struct model_value *value, double score, bool exclusive)
{
    size_t low = 0, high = value->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        double other = value->by_score[middle]->score;
        if (exclusive ? other <= score : other < score)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct model_member *model_member_add(struct model_value *value, struct slice name, bool *added)
{
    bool found;
    size_t at = find_place(value, name, &found);
    *added = !found;
    if (found)
        return value->members[at];
    struct model_member *member = make_member(name);
    reserve_member(value);
    insert_at(value->members, value->count, at, member);
    if (value->type == MODEL_SORTED_SET)
        insert_at(value->by_score, value->count, find_score_place(value, value->count, member),
                  member);
    value->count++;
    return member;
}

void model_member_set_text(struct model_member *member, struct slice text)
{
    struct slice copy = copy_text(text);
    free_text(&member->text);
    member->text = copy;
}

void model_member_set_score(struct model_value *value, struct model_member *member, double score)
{
    if (member->score == score)
        return;
    remove_at(value->by_score, value->count, find_score_place(value, value->count, member), 1);
    member->score = score;
    insert_at(value->by_score, value->count - 1, find_score_place(value, value->count - 1, member),
              member);
}

void model_member_remove(struct model_value *value, struct model_member *member)
{
    bool found;
    if (value->type == MODEL_SORTED_SET)
        remove_at(value->by_score, value->count, find_score_place(value, value->count, member), 1);
    remove_at(value->members, value->count, find_place(value, member->name, &found), 1);
    value->count--;
    free_member(member);
}

/* ---- lists ---- */

void model_list_insert(struct model_value *value, size_t at, struct slice text)
{
    reserve_member(value);
    insert_at(value->members, value->count, at, make_member(text));
    value->count++;
}

void model_list_remove(struct model_value *value, size_t at, size_t count)
{
    for (size_t i = at; i < at + count; i++)
        free_member(value->members[i]);
    remove_at(value->members, value->count, at, count);
    value->count -= count;
}

/* ---- copies ---- */

static void copy_member(struct model_value *value, const struct model_member *from)
{
    bool added;
    if (value->type == MODEL_LIST) {
        model_list_insert(value, value->count, from->name);
        return;
    }
    struct model_member *member = model_member_add(value, from->name, &added);
    if (from->text.data)
        model_member_set_text(member, from->text);
    if (value->type == MODEL_SORTED_SET)
        model_member_set_score(value, member, from->score);
}

void model_value_copy(struct model_value *value, const struct model_value *from)
{
    if (from->text.data)
        model_string_set(value, from->text);
    for (size_t i = 0; i < from->count; i++)
        copy_member(value, from->members[i]);
}

/*
 * A value of the model of Redis: a string, hash, set, sorted set or list.
 *
 * Members are kept in arrays ordered by their bytes (those of a sorted set also by score), so that every order in which the
 * model answers is the same in every run. Redis promises no order where the model's is by bytes.
 *
 * Memory: a value owns its bytes. Running out of memory ends the process: the model serves simulations and tests.
 */
#ifndef ROLLCALL_SIM_REDIS_MODEL_VALUE_H
#define ROLLCALL_SIM_REDIS_MODEL_VALUE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum model_type { MODEL_STRING, MODEL_HASH, MODEL_SET, MODEL_SORTED_SET, MODEL_LIST };

/* A member with what belongs to it: a hash's field and value, a sorted set's member and score. */
struct model_member {
    struct slice name;
    struct slice text;
    double score;
};

struct model_value {
    enum model_type type;
    struct slice text;              /* of a string */
    struct model_member **members;  /* by name; of a list: in its order */
    struct model_member **by_score; /* of a sorted set: by score, then by name */
    size_t count;
    size_t capacity;
};

struct model_value *model_value_make(enum model_type type);
void model_value_free(struct model_value *value);

/* Fills an empty value of the same type with copies. */
void model_value_copy(struct model_value *value, const struct model_value *from);

/* Returns the name that TYPE answers. */
const char *model_type_name(enum model_type type);

void model_string_set(struct model_value *value, struct slice text);

/* Returns the member of this name; NULL without one. */
struct model_member *model_member_find(const struct model_value *value, struct slice name);

/* Returns the member, made if it does not exist. */
struct model_member *model_member_add(struct model_value *value, struct slice name, bool *added);
void model_member_set_text(struct model_member *member, struct slice text);
void model_member_set_score(struct model_value *value, struct model_member *member, double score);
void model_member_remove(struct model_value *value, struct model_member *member);

/* Returns the index in `by_score` of the first member whose score is at least `score` (above it: `exclusive`). */
size_t model_score_index(const struct model_value *value, double score, bool exclusive);

void model_list_insert(struct model_value *value, size_t at, struct slice text);
void model_list_remove(struct model_value *value, size_t at, size_t count);

#endif

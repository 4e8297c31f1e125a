/* Reads a JSON array of user ids, which several resources take. */
#ifndef ROLLCALL_API_USER_IDS_JSON_H
#define ROLLCALL_API_USER_IDS_JSON_H

#include "base/slice.h"

#include <stddef.h>

/* What is wrong with a list; a resource says it by the list's name. */
struct user_ids_problems {
    const char *not_a_list;
    const char *invalid;
    const char *too_many;
};

/* Reads at most `count_max` ids, which point into `raw` (SLICE_NONE: there is no list); the caller frees the array.
 * Returns NULL when the list is wrong (*problem says how) or when out of memory (*problem is NULL). */
struct slice *user_ids_json_read(struct slice raw, size_t count_max,
                                 const struct user_ids_problems *problems, size_t *count,
                                 const char **problem);

#endif

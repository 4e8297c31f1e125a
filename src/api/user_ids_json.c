#include "api/user_ids_json.h"

#include "auth/user_id.h"
#include "text/json.h"

#include <stdlib.h>

static size_t count_elements(struct json json)
{
    size_t count = 0;
    json_array(&json);
    while (json_element(&json) && json_skip(&json))
        count++;
    return count;
}

struct slice *user_ids_json_read(struct slice raw, size_t count_max,
                                 const struct user_ids_problems *problems, size_t *count,
                                 const char **problem)
{
    struct json json;
    *problem = problems->not_a_list;
    json_init(&json, (char *)raw.data, raw.len);
    if (!raw.len || json_peek(&json) != JSON_ARRAY)
        return NULL;
    size_t named = count_elements(json);
    *problem = problems->too_many;
    if (named > count_max)
        return NULL;
    struct slice *ids = malloc((named + 1) * sizeof(*ids));
    *problem = NULL;
    if (!ids)
        return NULL;
    json_array(&json);
    for (*count = 0; json_element(&json); (*count)++)
        if (!json_string(&json, &ids[*count]) || !user_id_valid(ids[*count])) {
            free(ids);
            *problem = problems->invalid;
            return NULL;
        }
    return ids;
}

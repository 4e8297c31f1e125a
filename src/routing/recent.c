#include "routing/recent.h"

#include <stdlib.h>

bool recent_note(struct recent **recent, uint64_t key)
{
    if (!*recent)
        *recent = calloc(1, sizeof(**recent));
    struct recent *known = *recent;
    if (!known)
        return true;
    for (uint32_t i = 0; i < RECENT_MAX; i++)
        if (known->keys[i] == key)
            return false;
    known->keys[known->next++ % RECENT_MAX] = key;
    return true;
}

void recent_free(struct recent **recent)
{
    free(*recent);
    *recent = NULL;
}

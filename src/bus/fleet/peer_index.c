#include "bus/fleet/peer_index.h"

#include <stdlib.h>
#include <xxhash.h>

bool peer_index_init(struct peer_index *index, size_t count)
{
    index->place_count = 2;
    while (index->place_count < 2 * count)
        index->place_count *= 2;
    index->places = calloc(index->place_count, sizeof(*index->places));
    return index->places != NULL;
}

void peer_index_free(struct peer_index *index)
{
    free(index->places);
    index->places = NULL;
}

/* Returns the text's place, or the free one where it belongs. */
static struct peer_index_place *find_index_place(const struct peer_index *index, struct slice text)
{
    size_t at = XXH3_64bits(text.data, text.len) & (index->place_count - 1);
    while (index->places[at].text.data && !slice_equal(index->places[at].text, text))
        at = (at + 1) & (index->place_count - 1);
    return &index->places[at];
}

void peer_index_add(struct peer_index *index, struct slice text, void *value)
{
    struct peer_index_place *place = find_index_place(index, text);
    if (!place->text.data)
        *place = (struct peer_index_place){text, value};
}

const struct peer_index_place *peer_index_find(const struct peer_index *index, struct slice text)
{
    const struct peer_index_place *place = find_index_place(index, text);
    return place->text.data ? place : NULL;
}

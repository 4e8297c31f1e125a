#include "presence/visibility/visibility.h"

#include "base/id_list.h"
#include "presence/visibility/privacy.h"

#include <stdlib.h>
#include <string.h>

struct visibility {
    enum ledger_visibility presence;
    struct id_list blocks; /* owned, sorted: users who blocked the user, or whom the user blocked */
};

struct visibility_reading {
    struct visibility_reading **place; /* NULL: cancelled */
    visibility_done done;
    void *arg;
    uint8_t user_id_len;
    char user_id[USER_ID_BYTES_MAX];
};

static bool visibility_copy_blocks(struct visibility *visibility, const struct social_graph *graph)
{
    size_t count = graph->blocked.count + graph->blocked_by.count;
    struct slice *both = malloc((count + 1) * sizeof(*both));
    if (!both)
        return false;
    if (graph->blocked.count)
        memcpy(both, graph->blocked.ids, graph->blocked.count * sizeof(*both));
    if (graph->blocked_by.count)
        memcpy(both + graph->blocked.count, graph->blocked_by.ids,
               graph->blocked_by.count * sizeof(*both));
    bool copied = id_list_copy(&visibility->blocks, both, count);
    free(both);
    return copied;
}

static struct visibility *visibility_make(const struct social_graph *graph)
{
    struct visibility *visibility = malloc(sizeof(*visibility));
    if (!visibility || !visibility_copy_blocks(visibility, graph)) {
        free(visibility);
        return NULL;
    }
    visibility->presence = (enum ledger_visibility)graph->presence_visibility;
    id_list_sort(&visibility->blocks);
    return visibility;
}

static void on_visibility_graph_read(void *arg, const struct social_graph *graph)
{
    struct visibility_reading *reading = arg;
    if (reading->place) {
        *reading->place = NULL;
        reading->done(reading->arg, graph ? visibility_make(graph) : NULL);
    }
    free(reading);
}

void visibility_read(struct presence_plane *plane, struct slice user_id,
                     struct visibility_reading **reading, visibility_done done, void *arg)
{
    struct visibility_reading *made = malloc(sizeof(*made));
    if (!made) {
        done(arg, NULL);
        return;
    }
    *made = (struct visibility_reading){
        .place = reading, .done = done, .arg = arg, .user_id_len = (uint8_t)user_id.len};
    memcpy(made->user_id, user_id.data, user_id.len);
    *reading = made;
    graph_reader_read(&plane->graphs, (struct slice){made->user_id, made->user_id_len},
                      on_visibility_graph_read, made);
}

void visibility_cancel(struct visibility_reading **reading)
{
    if (*reading)
        (*reading)->place = NULL;
    *reading = NULL;
}

bool visibility_allows(const struct visibility *visibility, struct slice viewer)
{
    bool is_blocked = id_list_sorted_contains(&visibility->blocks, viewer);
    struct ledger_profile profile = {.settings.presence = visibility->presence,
                                     .blocked_by_target = is_blocked};
    return privacy_decide(viewer, &profile).shows_typing;
}

bool visibility_equal(const struct visibility *a, const struct visibility *b)
{
    return a->presence == b->presence && id_list_equal(&a->blocks, &b->blocks);
}

void visibility_free(struct visibility **visibility)
{
    if (*visibility)
        id_list_free(&(*visibility)->blocks);
    free(*visibility);
    *visibility = NULL;
}

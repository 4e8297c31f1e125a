#include "presence/visibility/visibility.h"

#include "base/id_list.h"
#include "presence/visibility/privacy.h"

#include <stdlib.h>
#include <string.h>

/* Those whom the visibility makes a difference for: of one who shows contacts, the contacts; of one
 * who shows everybody, the blocked (blocking ends a contact, so the two sets never meet). */
struct visibility {
    struct ledger_settings settings;
    uint8_t user_id_len;
    char user_id[USER_ID_BYTES_MAX];
    struct id_list ids; /* owned, sorted */
};

struct visibility_reading {
    struct visibility_reading **place; /* NULL: nobody waits any more */
    void (*done)(void *arg, struct visibility *sight);
    void *arg;
    uint8_t user_id_len;
    char user_id[USER_ID_BYTES_MAX];
};

static struct id_list deciding(const struct social_graph *graph)
{
    if (graph->presence_visibility == LEDGER_VISIBLE_EVERYONE)
        return graph->blocked;
    if (graph->presence_visibility == LEDGER_VISIBLE_CONTACTS_ONLY)
        return graph->contacts;
    return (struct id_list){0};
}

static struct visibility *make_sight(const struct visibility_reading *reading,
                                     const struct social_graph *graph)
{
    struct id_list list = deciding(graph);
    struct visibility *sight = malloc(sizeof(*sight));
    if (!sight || !id_list_copy(&sight->ids, list.ids, list.count)) {
        free(sight);
        return NULL;
    }
    id_list_sort(&sight->ids);
    sight->settings = (struct ledger_settings){
        (enum ledger_visibility)graph->presence_visibility,
        (enum ledger_visibility)graph->last_seen_visibility,
    };
    sight->user_id_len = reading->user_id_len;
    memcpy(sight->user_id, reading->user_id, reading->user_id_len);
    return sight;
}

static void answered(void *arg, const struct social_graph *graph)
{
    struct visibility_reading *reading = arg;
    if (reading->place) {
        *reading->place = NULL;
        reading->done(reading->arg, graph ? make_sight(reading, graph) : NULL);
    }
    free(reading);
}

void visibility_read(struct presence_plane *plane, struct slice user_id,
                     struct visibility_reading **reading,
                     void (*done)(void *arg, struct visibility *sight), void *arg)
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
    graph_reader_read(&plane->graphs, (struct slice){made->user_id, made->user_id_len}, answered,
                      made);
}

void visibility_forget(struct visibility_reading **reading)
{
    if (*reading)
        (*reading)->place = NULL;
    *reading = NULL;
}

bool visibility_allows(const struct visibility *sight, struct slice viewer)
{
    bool named = id_list_sorted_contains(&sight->ids, viewer);
    bool shows_everybody = sight->settings.presence == LEDGER_VISIBLE_EVERYONE;
    struct ledger_profile profile = {
        .user = {sight->user_id, sight->user_id_len},
        .settings = sight->settings,
        .are_contacts = named && !shows_everybody,
        .blocked_by_target = named && shows_everybody,
    };
    return privacy_decide(viewer, &profile).view != PRIVACY_HIDDEN;
}

bool visibility_equal(const struct visibility *a, const struct visibility *b)
{
    return a->settings.presence == b->settings.presence && id_list_equal(&a->ids, &b->ids);
}

void visibility_free(struct visibility **sight)
{
    if (*sight)
        id_list_free(&(*sight)->ids);
    free(*sight);
    *sight = NULL;
}

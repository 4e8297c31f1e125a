#include "presence/visibility/visibility.h"

#include "base/id_list.h"
#include "presence/visibility/privacy.h"

#include <stdlib.h>
#include <string.h>

/* `ids` are the users whom the setting treats differently: the contacts if only contacts may see, the
 * blocked users if everybody may. Blocking ends a contact, so no user is both. */
struct visibility {
    struct ledger_settings settings;
    uint8_t user_id_len;
    char user_id[USER_ID_BYTES_MAX];
    struct id_list ids; /* owned, sorted */
};

struct visibility_reading {
    struct visibility_reading **place; /* NULL: cancelled */
    visibility_done done;
    void *arg;
    uint8_t user_id_len;
    char user_id[USER_ID_BYTES_MAX];
};

static struct visibility *visibility_make(const struct visibility_reading *reading,
                                          const struct social_graph *graph)
{
    struct id_list list = {0};
    if (graph->presence_visibility == LEDGER_VISIBLE_EVERYONE)
        list = graph->blocked;
    else if (graph->presence_visibility == LEDGER_VISIBLE_CONTACTS_ONLY)
        list = graph->contacts;
    struct visibility *visibility = malloc(sizeof(*visibility));
    if (!visibility || !id_list_copy(&visibility->ids, list.ids, list.count)) {
        free(visibility);
        return NULL;
    }
    id_list_sort(&visibility->ids);
    visibility->settings = (struct ledger_settings){
        (enum ledger_visibility)graph->presence_visibility,
        (enum ledger_visibility)graph->last_seen_visibility,
    };
    visibility->user_id_len = reading->user_id_len;
    memcpy(visibility->user_id, reading->user_id, reading->user_id_len);
    return visibility;
}

static void on_visibility_graph_read(void *arg, const struct social_graph *graph)
{
    struct visibility_reading *reading = arg;
    if (reading->place) {
        *reading->place = NULL;
        reading->done(reading->arg, graph ? visibility_make(reading, graph) : NULL);
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
    bool is_listed = id_list_sorted_contains(&visibility->ids, viewer);
    bool shows_everybody = visibility->settings.presence == LEDGER_VISIBLE_EVERYONE;
    struct ledger_profile profile = {
        .user = {visibility->user_id, visibility->user_id_len},
        .settings = visibility->settings,
        .are_contacts = is_listed && !shows_everybody,
        .blocked_by_target = is_listed && shows_everybody,
    };
    return privacy_decide(viewer, &profile).view != PRIVACY_HIDDEN;
}

bool visibility_equal(const struct visibility *a, const struct visibility *b)
{
    return a->settings.presence == b->settings.presence && id_list_equal(&a->ids, &b->ids);
}

void visibility_free(struct visibility **visibility)
{
    if (*visibility)
        id_list_free(&(*visibility)->ids);
    free(*visibility);
    *visibility = NULL;
}

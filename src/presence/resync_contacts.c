#include "presence/resync_contacts.h"

#include "base/container.h"
#include "base/id_list.h"
#include "presence/presence_query.h"

#include <stdlib.h>
#include <string.h>

/* One user's contacts, read a batch at a time. */
struct graph_look {
    struct presence_plane *plane;
    struct id_list contacts; /* owned */
    size_t next;
    size_t user_len;
    char user[USER_ID_BYTES_MAX];
};

/* ---- who is in line ---- */

static void put_in_line(struct table_node *node, void *arg)
{
    const struct route *route = CONTAINER_OF(node, struct route, node);
    buffer_append_byte(arg, (char)route->user_id_len);
    buffer_append_slice(arg, route_user(route));
}

/* A second gap on the way begins anew, with the older of the two beginnings. */
void resync_graphs_begin(struct presence_plane *plane)
{
    struct resync *resync = &plane->resync;
    bool fresh = resync->graphs_at >= resync->graphs.len;
    int64_t well_at_ms = resync->well_at_ms ? resync->well_at_ms : plane->clock->wall_ms;
    if (fresh)
        resync->since_ms = well_at_ms - RESYNC_DOUBT_MS;
    buffer_free(&resync->graphs);
    resync->graphs = (struct buffer)BUFFER_INIT;
    resync->graphs_at = 0;
    table_each(&plane->router->routes, put_in_line, &resync->graphs);
    if (resync->graphs.failed)
        buffer_free(&resync->graphs);
}

/* ---- one user ---- */

static void look_on(struct graph_look *look);

static void end_look(struct graph_look *look)
{
    look->plane->resync.graphs_under_way--;
    id_list_free(&look->contacts);
    free(look);
}

static void looked(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct graph_look *look = arg;
    struct presence_plane *plane = look->plane;
    struct presence changed[RESYNC_USERS_MAX];
    size_t changed_count = 0;
    for (size_t i = 0; ok && i < count; i++)
        if (presences[i].status != PRESENCE_UNKNOWN && !presences[i].stale &&
            presences[i].version >= plane->resync.since_ms)
            changed[changed_count++] = presences[i];
    struct message snapshot = {.type = MESSAGE_PRESENCE_SNAPSHOT,
                               .snapshot = {changed, changed_count}};
    if (changed_count)
        router_send_to_user(plane->router, (struct slice){look->user, look->user_len}, &snapshot,
                            NULL);
    metrics_add(plane->metrics, METRIC_RESYNC_USERS, (int64_t)count);
    metrics_add(plane->metrics, METRIC_RESYNC_TOLD, (int64_t)changed_count);
    if (ok)
        look_on(look);
    else
        end_look(look);
}

static void look_on(struct graph_look *look)
{
    size_t left = look->contacts.count - look->next;
    size_t count = left < RESYNC_USERS_MAX ? left : RESYNC_USERS_MAX;
    const struct slice *batch = look->contacts.ids + look->next;
    struct slice user = {look->user, look->user_len};
    if (count == 0 || !router_find(look->plane->router, user)) {
        end_look(look);
        return;
    }
    look->next += count;
    presence_query(look->plane, user, batch, count,
                   &(struct presence_query_handler){.done = looked, .arg = look});
}

/* Without an answer from the ledger this user's contacts are left as they are known. */
static void listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct graph_look *look = arg;
    if (outcome->status == LEDGER_OK && id_list_copy(&look->contacts, outcome->ids, outcome->count))
        look_on(look);
    else
        end_look(look);
}

static void begin_user(struct presence_plane *plane, struct slice user)
{
    if (!router_find(plane->router, user))
        return;
    struct graph_look *asked = calloc(1, sizeof(*asked));
    if (!asked)
        return;
    asked->plane = plane;
    asked->user_len = user.len;
    memcpy(asked->user, user.data, user.len);
    plane->resync.graphs_under_way++;
    ledger_contacts_list(plane->ledger, user, listed, asked);
}

void resync_graphs_run(struct presence_plane *plane)
{
    struct resync *resync = &plane->resync;
    unsigned room = RESYNC_GRAPHS_PER_RUN - resync->graphs_under_way;
    while (room-- > 0 && resync->graphs_at < resync->graphs.len) {
        const char *at = resync->graphs.data + resync->graphs_at;
        struct slice user = {at + 1, (uint8_t)*at};
        resync->graphs_at += 1 + user.len;
        begin_user(plane, user);
    }
    if (resync->graphs.len && resync->graphs_at >= resync->graphs.len) {
        buffer_free(&resync->graphs);
        resync->graphs_at = 0;
    }
}

#include "presence/resync_contacts.h"

#include "base/container.h"
#include "base/id_list.h"
#include "presence/presence_query.h"

#include <stdlib.h>
#include <string.h>

/* One user's contacts, queried a batch at a time. */
struct contacts_resync {
    struct presence_plane *plane;
    struct id_list contacts; /* owned */
    size_t next;
    size_t user_len;
    char user[USER_ID_BYTES_MAX];
};

/* ---- the queue ---- */

static void resync_contacts_queue_route(struct table_node *node, void *arg)
{
    const struct route *route = CONTAINER_OF(node, struct route, node);
    buffer_append_byte(arg, (char)route->user_id_len);
    buffer_append_slice(arg, route_user(route));
}

/* A second gap before the queue is empty starts over and keeps the older `changed_since_ms`. */
void resync_contacts_begin(struct presence_plane *plane)
{
    struct resync *resync = &plane->resync;
    bool was_empty = resync->users_at >= resync->users.len;
    int64_t healthy_at_ms = resync->healthy_at_ms ? resync->healthy_at_ms : plane->clock->wall_ms;
    if (was_empty)
        resync->changed_since_ms = healthy_at_ms - RESYNC_UNDETECTED_MS;
    buffer_free(&resync->users);
    resync->users = (struct buffer)BUFFER_INIT;
    resync->users_at = 0;
    table_each(&plane->router->routes, resync_contacts_queue_route, &resync->users);
    if (resync->users.failed)
        buffer_free(&resync->users);
}

/* ---- one user ---- */

static void contacts_resync_query_next(struct contacts_resync *user);

static void contacts_resync_end(struct contacts_resync *user)
{
    user->plane->resync.users_pending--;
    id_list_free(&user->contacts);
    free(user);
}

static void on_contacts_queried(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct contacts_resync *user = arg;
    struct presence_plane *plane = user->plane;
    struct presence changed[RESYNC_CONTACTS_PER_QUERY];
    size_t changed_count = 0;
    for (size_t i = 0; ok && i < count; i++)
        if (presences[i].status != PRESENCE_UNKNOWN && !presences[i].stale &&
            presences[i].version >= plane->resync.changed_since_ms)
            changed[changed_count++] = presences[i];
    struct message snapshot = {.type = MESSAGE_PRESENCE_SNAPSHOT,
                               .snapshot = {changed, changed_count}};
    if (changed_count)
        router_send_to_user(plane->router, (struct slice){user->user, user->user_len}, &snapshot,
                            NULL);
    metrics_add(plane->metrics, METRIC_RESYNC_USERS, (int64_t)count);
    metrics_add(plane->metrics, METRIC_RESYNC_TOLD, (int64_t)changed_count);
    if (ok)
        contacts_resync_query_next(user);
    else
        contacts_resync_end(user);
}

static void contacts_resync_query_next(struct contacts_resync *user)
{
    size_t left = user->contacts.count - user->next;
    size_t count = left < RESYNC_CONTACTS_PER_QUERY ? left : RESYNC_CONTACTS_PER_QUERY;
    const struct slice *batch = user->contacts.ids + user->next;
    struct slice viewer = {user->user, user->user_len};
    if (count == 0 || !router_find(user->plane->router, viewer)) {
        contacts_resync_end(user);
        return;
    }
    user->next += count;
    presence_query(user->plane, viewer, batch, count,
                   &(struct presence_query_handler){.done = on_contacts_queried, .arg = user});
}

/* If the ledger does not answer, the user gets no snapshot. */
static void on_contacts_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct contacts_resync *user = arg;
    if (outcome->status == LEDGER_OK && id_list_copy(&user->contacts, outcome->ids, outcome->count))
        contacts_resync_query_next(user);
    else
        contacts_resync_end(user);
}

void resync_contacts_run(struct presence_plane *plane)
{
    struct resync *resync = &plane->resync;
    unsigned left = RESYNC_CONTACTS_PER_RUN - resync->users_pending;
    while (left-- > 0 && resync->users_at < resync->users.len) {
        const char *at = resync->users.data + resync->users_at;
        struct slice user_id = {at + 1, (uint8_t)*at};
        resync->users_at += 1 + user_id.len;
        struct contacts_resync *user =
            router_find(plane->router, user_id) ? calloc(1, sizeof(*user)) : NULL;
        if (!user)
            continue;
        user->plane = plane;
        user->user_len = user_id.len;
        memcpy(user->user, user_id.data, user_id.len);
        resync->users_pending++;
        ledger_contacts_list(plane->ledger, user_id, on_contacts_listed, user);
    }
    if (resync->users.len && resync->users_at >= resync->users.len) {
        buffer_free(&resync->users);
        resync->users_at = 0;
    }
}

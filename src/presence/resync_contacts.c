#include "presence/resync_contacts.h"

#include "base/container.h"
#include "base/id_list.h"
#include "presence/presence_query.h"
#include "presence/sync_required.h"

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

static void resync_contacts_list_route(struct table_node *node, void *arg)
{
    struct slice **next = arg;
    *(*next)++ = route_user(CONTAINER_OF(node, struct route, node));
}

/* A second gap before the queue is empty starts over and keeps the older `changed_since_ms`. The list has no
 * bound of its own: the router bounds its users. */
void resync_contacts_begin(struct presence_plane *plane)
{
    struct resync *resync = &plane->resync;
    bool was_empty = resync->users_next >= resync->users.count;
    int64_t healthy_at_ms = resync->healthy_at_ms ? resync->healthy_at_ms : plane->clock->wall_ms;
    if (was_empty)
        resync->changed_since_ms = healthy_at_ms - RESYNC_UNDETECTED_MS;
    bool requires_syncs = resync->needs_syncs && resync_is_settled(plane);
    resync->needs_syncs &= !requires_syncs;
    id_list_free(&resync->users);
    resync->users_next = resync->syncs_next = 0;
    size_t count = plane->router->routes.size;
    struct slice *ids = count ? malloc(count * sizeof(*ids)) : NULL;
    if (!ids)
        return;
    struct slice *next = ids;
    table_each(&plane->router->routes, resync_contacts_list_route, &next);
    struct slice *owned = realloc(ids, count * sizeof(*ids) + id_list_bytes(ids, count));
    if (!owned) {
        free(ids);
        return;
    }
    id_list_pack(owned, owned, count, (char *)(owned + count));
    resync->users = (struct id_list){owned, count};
    resync->syncs_next = requires_syncs ? 0 : count;
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

/* Before the store is settled, routes may be missing, so devices would miss more afterwards. */
static void resync_require_syncs(struct presence_plane *plane)
{
    struct resync *resync = &plane->resync;
    for (unsigned i = 0; i < RESYNC_SYNCS_PER_RUN && resync->syncs_next < resync->users.count; i++)
        sync_required_send_to_user(plane->router, plane->metrics,
                                   resync->users.ids[resync->syncs_next++], SYNC_DELIVERY_OUTAGE);
}

void resync_contacts_run(struct presence_plane *plane)
{
    struct resync *resync = &plane->resync;
    resync_require_syncs(plane);
    unsigned left = RESYNC_CONTACTS_PER_RUN - resync->users_pending;
    while (left-- > 0 && resync->users_next < resync->users.count) {
        struct slice user_id = resync->users.ids[resync->users_next++];
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
    if (resync->users_next >= resync->users.count && resync->syncs_next >= resync->users.count) {
        id_list_free(&resync->users);
        resync->users_next = resync->syncs_next = 0;
    }
}

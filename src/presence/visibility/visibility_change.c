#include "presence/visibility/visibility_change.h"

#include "presence/notify.h"
#include "presence/presence_plane.h"
#include "presence/presence_query.h"
#include "presence/push.h"
#include "presence/visibility/privacy.h"

#include <stdlib.h>
#include <string.h>

/* ---- a relation ---- */

/* Has two passes: each of the two users is the target once, with the other as the viewer. */
struct relation_change {
    struct presence_plane *plane;
    enum visibility_cause cause;
    bool were_contacts;
    int pass;
    struct slice ids[2];
    struct push push; /* of this pass */
    visibility_change_done done;
    void *arg;
    char bytes[];
};

static void relation_change_decide(struct relation_change *relation);

static struct slice relation_change_target(const struct relation_change *relation)
{
    return relation->ids[relation->pass];
}

static struct slice relation_change_viewer(const struct relation_change *relation)
{
    return relation->ids[1 - relation->pass];
}

static void relation_change_next_pass(struct relation_change *relation)
{
    if (relation->pass++ == 0) {
        relation_change_decide(relation);
        return;
    }
    relation->done(relation->arg);
    free(relation);
}

static void relation_change_send(struct relation_change *relation)
{
    struct slice viewer = relation_change_viewer(relation);
    relation->push.change.timestamp_ms = relation->plane->clock->wall_ms;
    push_send(relation->plane, &(struct id_list){&viewer, 1}, &relation->push);
}

static void on_relation_chats_read(void *arg, const struct social_graph *graph)
{
    struct relation_change *relation = arg;
    if (graph)
        relation->push.chats = graph->chats;
    relation_change_send(relation);
    relation->push.chats = (struct id_list){0};
    relation_change_next_pass(relation);
}

/* A block, or its end, also concerns a viewer without a contact who has a chat of the target open. */
static void relation_change_send_pass(struct relation_change *relation, bool others_may_see)
{
    bool is_block =
        relation->cause == VISIBILITY_BLOCKED || relation->cause == VISIBILITY_UNBLOCKED;
    if (is_block && relation->pass == 0 && others_may_see) {
        graph_reader_read(&relation->plane->graphs, relation_change_target(relation),
                          on_relation_chats_read, relation);
        return;
    }
    relation_change_send(relation);
    relation_change_next_pass(relation);
}

/* The viewer's view cannot be decided now. The review that this starts hides the target until then. */
static void relation_change_leave_to_review(struct relation_change *relation)
{
    presence_publish_privacy(relation->plane, relation_change_target(relation));
    relation_change_next_pass(relation);
}

/* The query's decision is newer than the one that started the query. */
static void on_relation_redecided(void *arg, const struct slice *users,
                                  const struct privacy_decision *decisions, size_t count)
{
    (void)users, (void)count;
    struct relation_change *relation = arg;
    relation->push.view = decisions[0].view;
}

static void on_relation_queried(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct relation_change *relation = arg;
    if (!ok || count != 1) {
        relation_change_leave_to_review(relation);
        return;
    }
    relation->push.change.presence = presences[0];
    relation->push.change.presence.user_id = relation_change_target(relation);
    if (relation->push.contacts && presences[0].status >= PRESENCE_AWAY)
        relation->push.change.announcement =
            PRESENCE_ANNOUNCE_ONLINE; /* the viewer saw nothing until now */
    relation_change_send_pass(relation, relation->cause != VISIBILITY_CONTACT_MADE);
}

static void on_relation_profile_read(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct relation_change *relation = arg;
    if (outcome->status != LEDGER_OK) {
        relation_change_leave_to_review(relation);
        return;
    }
    const struct ledger_profile *profile = &outcome->profiles[0];
    struct privacy_decision decision = privacy_decide(relation_change_viewer(relation), profile);
    struct slice target = relation_change_target(relation);
    relation->push = (struct push){.changes_view = true, .view = decision.view};
    if (decision.view != PRIVACY_HIDDEN) {
        relation->push.contacts = relation->cause == VISIBILITY_CONTACT_MADE;
        presence_query(relation->plane, relation_change_viewer(relation), &target, 1,
                       &(struct presence_query_handler){.on_decided = on_relation_redecided,
                                                        .done = on_relation_queried,
                                                        .arg = relation});
        return;
    }
    relation->push.contacts =
        relation->were_contacts && privacy_of_contact(&profile->settings).view != PRIVACY_HIDDEN;
    relation->push.change.presence = presence_hidden(target, decision.reason);
    relation_change_send_pass(relation,
                              privacy_of_other(&profile->settings).view != PRIVACY_HIDDEN);
}

static void relation_change_decide(struct relation_change *relation)
{
    struct slice target = relation_change_target(relation);
    ledger_profiles(relation->plane->ledger, relation_change_viewer(relation), &target, 1,
                    on_relation_profile_read, relation);
}

void visibility_change_of_relation(struct presence_plane *plane, enum visibility_cause cause,
                                   struct slice user_id, struct slice other_id, bool were_contacts,
                                   visibility_change_done done, void *arg)
{
    graph_reader_drop(&plane->graphs, user_id);
    graph_reader_drop(&plane->graphs, other_id);
    privacy_repeat_note(plane, user_id);
    privacy_repeat_note(plane, other_id);
    struct relation_change *relation = malloc(sizeof(*relation) + user_id.len + other_id.len);
    if (!relation) {
        presence_publish_privacy(plane, user_id);
        presence_publish_privacy(plane, other_id);
        done(arg);
        return;
    }
    *relation = (struct relation_change){
        .plane = plane, .cause = cause, .were_contacts = were_contacts, .done = done, .arg = arg};
    char *other = mempcpy(relation->bytes, user_id.data, user_id.len);
    memcpy(other, other_id.data, other_id.len);
    relation->ids[0] = (struct slice){relation->bytes, user_id.len};
    relation->ids[1] = (struct slice){other, other_id.len};
    relation_change_decide(relation);
}

/* ---- settings ---- */

struct settings_change {
    struct presence_plane *plane;
    struct ledger_settings before;
    struct ledger_settings after;
    struct presence presence; /* as the user sees it */
    struct slice user_id;
    visibility_change_done done;
    void *arg;
    char bytes[];
};

static void settings_change_end(struct settings_change *settings)
{
    settings->done(settings->arg);
    free(settings);
}

static bool settings_decisions_differ(struct privacy_decision a, struct privacy_decision b)
{
    return a.view != b.view || a.reason != b.reason;
}

static struct presence_change settings_change_for(const struct settings_change *settings,
                                                  struct privacy_decision decision)
{
    int64_t wall_ms = settings->plane->clock->wall_ms;
    return (struct presence_change){
        .presence = privacy_apply(&settings->presence, decision, wall_ms), .timestamp_ms = wall_ms};
}

/* Contacts may keep visibility that others lose, so contacts and others are told separately. */
static void on_settings_graph_read(void *arg, const struct social_graph *graph)
{
    struct settings_change *settings = arg;
    struct privacy_decision contact = privacy_of_contact(&settings->after);
    struct privacy_decision other = privacy_of_other(&settings->after);
    struct privacy_decision other_before = privacy_of_other(&settings->before);
    if (graph && settings_decisions_differ(privacy_of_contact(&settings->before), contact))
        push_send(settings->plane, &graph->contacts,
                  &(struct push){.change = settings_change_for(settings, contact),
                                 .changes_view = true,
                                 .view = contact.view,
                                 .contacts = true});
    if (graph && settings_decisions_differ(other_before, other) &&
        (other.view != PRIVACY_HIDDEN || other_before.view != PRIVACY_HIDDEN)) {
        struct presence_change change = settings_change_for(settings, other);
        notify_chats(settings->plane, &graph->chats, &change, &graph->blocked, &graph->contacts);
    }
    settings_change_end(settings);
}

static void on_settings_queried(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct settings_change *settings = arg;
    if (!ok || count != 1) {
        settings_change_end(settings);
        return;
    }
    settings->presence = presences[0];
    settings->presence.user_id = settings->user_id;
    graph_reader_read(&settings->plane->graphs, settings->user_id, on_settings_graph_read,
                      settings);
}

void visibility_change_of_settings(struct presence_plane *plane, struct slice user_id,
                                   const struct ledger_settings *before,
                                   const struct ledger_settings *after, visibility_change_done done,
                                   void *arg)
{
    graph_reader_drop(&plane->graphs, user_id);
    presence_publish_privacy(plane, user_id);
    struct settings_change *settings = malloc(sizeof(*settings) + user_id.len);
    if (!settings) {
        done(arg);
        return;
    }
    *settings = (struct settings_change){
        .plane = plane, .before = *before, .after = *after, .done = done, .arg = arg};
    memcpy(settings->bytes, user_id.data, user_id.len);
    settings->user_id = (struct slice){settings->bytes, user_id.len};
    presence_query(plane, settings->user_id, &settings->user_id, 1,
                   &(struct presence_query_handler){.done = on_settings_queried, .arg = settings});
}

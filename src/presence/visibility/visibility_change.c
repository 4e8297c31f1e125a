#include "presence/visibility/visibility_change.h"

#include "presence/notify.h"
#include "presence/presence_plane.h"
#include "presence/presence_query.h"
#include "presence/push.h"
#include "presence/visibility/privacy.h"

#include <stdlib.h>
#include <string.h>

/* ---- a relation ---- */

/* Two passes: each of the two is the target once, the other one the viewer. */
struct relation {
    struct presence_plane *plane;
    enum visibility_cause cause;
    bool were_contacts;
    int pass;
    struct slice ids[2];
    struct push push; /* of this pass */
    void (*done)(void *arg);
    void *arg;
    char bytes[];
};

static void decide(struct relation *relation);

static struct slice target_of(const struct relation *relation)
{
    return relation->ids[relation->pass];
}

static struct slice viewer_of(const struct relation *relation)
{
    return relation->ids[1 - relation->pass];
}

static void end_relation(struct relation *relation)
{
    relation->done(relation->arg);
    free(relation);
}

static void next_pass(struct relation *relation)
{
    if (relation->pass++ == 0)
        decide(relation);
    else
        end_relation(relation);
}

static void send(struct relation *relation)
{
    struct slice viewer = viewer_of(relation);
    relation->push.change.timestamp_ms = relation->plane->clock->wall_ms;
    push_send(relation->plane, &(struct id_list){&viewer, 1}, &relation->push);
}

/* A block is felt, or no longer, by who has a chat of the target open. */
static void send_with_chats(void *arg, const struct social_graph *graph)
{
    struct relation *relation = arg;
    if (graph)
        relation->push.chats = graph->chats;
    send(relation);
    relation->push.chats = (struct id_list){0};
    next_pass(relation);
}

static void send_pass(struct relation *relation, bool shown_to_strangers)
{
    bool block = relation->cause == VISIBILITY_BLOCKED || relation->cause == VISIBILITY_UNBLOCKED;
    if (block && relation->pass == 0 && shown_to_strangers) {
        graph_reader_read(&relation->plane->graphs, target_of(relation), send_with_chats, relation);
        return;
    }
    send(relation);
    next_pass(relation);
}

/* It is not known what the viewer may see. The review that this asks for sees to it that, until it is, they see
 * nothing. */
static void leave_to_review(struct relation *relation)
{
    presence_publish_privacy(relation->plane, target_of(relation));
    next_pass(relation);
}

/* What the look decides is newer than what made us look. */
static void decided_anew(void *arg, const struct slice *users,
                         const struct privacy_decision *decisions, size_t count)
{
    (void)users, (void)count;
    struct relation *relation = arg;
    relation->push.view = decisions[0].view;
}

/* The state is read after the decision, as in every look. */
static void looked(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct relation *relation = arg;
    if (!ok || count != 1) {
        leave_to_review(relation);
        return;
    }
    relation->push.change.presence = presences[0];
    relation->push.change.presence.user_id = target_of(relation);
    if (relation->push.contacts && presences[0].status >= PRESENCE_AWAY)
        relation->push.change.announcement =
            PRESENCE_ANNOUNCE_ONLINE; /* to one who saw nothing until now */
    send_pass(relation, relation->cause != VISIBILITY_CONTACT_MADE);
}

static void decided(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct relation *relation = arg;
    if (outcome->status != LEDGER_OK) {
        leave_to_review(relation);
        return;
    }
    const struct ledger_profile *profile = &outcome->profiles[0];
    struct privacy_decision decision = privacy_decide(viewer_of(relation), profile);
    struct slice target = target_of(relation);
    relation->push = (struct push){.exposes = true, .view = decision.view};
    if (decision.view != PRIVACY_HIDDEN) {
        relation->push.contacts = relation->cause == VISIBILITY_CONTACT_MADE;
        presence_query(relation->plane, viewer_of(relation), &target, 1,
                       &(struct presence_query_handler){
                           .decided = decided_anew, .done = looked, .arg = relation});
        return;
    }
    relation->push.contacts =
        relation->were_contacts && privacy_of_contact(&profile->settings).view != PRIVACY_HIDDEN;
    relation->push.change.presence = presence_hidden(target, decision.reason);
    send_pass(relation, privacy_of_stranger(&profile->settings).view != PRIVACY_HIDDEN);
}

static void decide(struct relation *relation)
{
    struct slice target = target_of(relation);
    ledger_profiles(relation->plane->ledger, viewer_of(relation), &target, 1, decided, relation);
}

void visibility_change_of_relation(struct presence_plane *plane, enum visibility_cause cause,
                                   struct slice user_id, struct slice peer_id, bool were_contacts,
                                   void (*done)(void *arg), void *arg)
{
    graph_reader_drop(&plane->graphs, user_id);
    graph_reader_drop(&plane->graphs, peer_id);
    struct relation *relation = malloc(sizeof(*relation) + user_id.len + peer_id.len);
    if (!relation) {
        presence_publish_privacy(plane, user_id);
        presence_publish_privacy(plane, peer_id);
        done(arg);
        return;
    }
    *relation = (struct relation){
        .plane = plane, .cause = cause, .were_contacts = were_contacts, .done = done, .arg = arg};
    char *peer = mempcpy(relation->bytes, user_id.data, user_id.len);
    memcpy(peer, peer_id.data, peer_id.len);
    relation->ids[0] = (struct slice){relation->bytes, user_id.len};
    relation->ids[1] = (struct slice){peer, peer_id.len};
    decide(relation);
}

/* ---- settings ---- */

struct resetting {
    struct presence_plane *plane;
    struct ledger_settings before;
    struct ledger_settings after;
    struct presence presence; /* all of it */
    struct slice user_id;
    void (*done)(void *arg);
    void *arg;
    char bytes[];
};

static void end_resetting(struct resetting *resetting)
{
    resetting->done(resetting->arg);
    free(resetting);
}

static bool differ(struct privacy_decision a, struct privacy_decision b)
{
    return a.view != b.view || a.reason != b.reason;
}

static struct presence_change change_for(const struct resetting *resetting,
                                         struct privacy_decision decision)
{
    int64_t wall_ms = resetting->plane->clock->wall_ms;
    return (struct presence_change){.presence =
                                        privacy_apply(&resetting->presence, decision, wall_ms),
                                    .timestamp_ms = wall_ms};
}

/* Contacts online may keep their sight where others lose it, and are told apart from them. */
static void tell(void *arg, const struct social_graph *graph)
{
    struct resetting *resetting = arg;
    struct privacy_decision contact = privacy_of_contact(&resetting->after);
    struct privacy_decision stranger = privacy_of_stranger(&resetting->after);
    if (graph && differ(privacy_of_contact(&resetting->before), contact))
        push_send(resetting->plane, &graph->contacts,
                  &(struct push){.change = change_for(resetting, contact),
                                 .exposes = true,
                                 .view = contact.view,
                                 .contacts = true});
    if (graph && differ(privacy_of_stranger(&resetting->before), stranger) &&
        (stranger.view != PRIVACY_HIDDEN ||
         privacy_of_stranger(&resetting->before).view != PRIVACY_HIDDEN)) {
        struct presence_change change = change_for(resetting, stranger);
        notify_chats(resetting->plane, &graph->chats, &change, &graph->blocked, &graph->contacts);
    }
    end_resetting(resetting);
}

static void looked_at_self(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct resetting *resetting = arg;
    if (!ok || count != 1) {
        end_resetting(resetting);
        return;
    }
    resetting->presence = presences[0];
    resetting->presence.user_id = resetting->user_id;
    graph_reader_read(&resetting->plane->graphs, resetting->user_id, tell, resetting);
}

void visibility_change_of_settings(struct presence_plane *plane, struct slice user_id,
                                   const struct ledger_settings *before,
                                   const struct ledger_settings *after, void (*done)(void *arg),
                                   void *arg)
{
    graph_reader_drop(&plane->graphs, user_id);
    presence_publish_privacy(plane, user_id);
    struct resetting *resetting = malloc(sizeof(*resetting) + user_id.len);
    if (!resetting) {
        done(arg);
        return;
    }
    *resetting = (struct resetting){
        .plane = plane, .before = *before, .after = *after, .done = done, .arg = arg};
    memcpy(resetting->bytes, user_id.data, user_id.len);
    resetting->user_id = (struct slice){resetting->bytes, user_id.len};
    presence_query(plane, resetting->user_id, &resetting->user_id, 1,
                   &(struct presence_query_handler){.done = looked_at_self, .arg = resetting});
}

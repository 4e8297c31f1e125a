#include "presence/visibility/visibility_review.h"

#include "base/container.h"
#include "base/id_list.h"
#include "presence/presence_event.h"
#include "presence/presence_query.h"
#include "presence/subscription.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* One question to the ledger holds the user itself and so many viewers. */
enum { REVIEW_VIEWERS_MAX = LEDGER_PROFILES_MAX - 1 };

/* A review of one user, for some of its local subscribers' users. */
struct review {
    struct list of_plane;
    struct presence_plane *plane;
    bool waiting;         /* for the next try; else it is under way */
    bool outdated;        /* a newer one has begun */
    struct slice user_id; /* the last of `ids` */
    size_t viewer_count;
    struct id_list ids; /* owned: the viewers, then the user itself */
};

static struct review *review_of(struct list *at)
{
    return CONTAINER_OF(at, struct review, of_plane);
}

/* `ids` are the viewers and then the user, `count` in all. */
static struct review *make_review(struct presence_plane *plane, const struct slice *ids,
                                  size_t count)
{
    struct review *review = calloc(1, sizeof(*review));
    if (!review || !id_list_copy(&review->ids, ids, count)) {
        free(review);
        return NULL;
    }
    review->plane = plane;
    review->viewer_count = count - 1;
    review->user_id = review->ids.ids[count - 1];
    list_append(&plane->reviews, &review->of_plane);
    return review;
}

/* Of the subscribers from the first given on, as many as one question holds. */
static struct review *make_review_of(struct presence_plane *plane, struct slice user_id,
                                     const struct topic *topic, size_t first)
{
    size_t left = topic->count - first;
    size_t count = left < REVIEW_VIEWERS_MAX ? left : REVIEW_VIEWERS_MAX;
    struct slice *ids = malloc((count + 1) * sizeof(*ids));
    if (!ids)
        return NULL;
    for (size_t i = 0; i < count; i++)
        ids[i] = route_user(topic->subscriptions[first + i]->endpoint->route);
    ids[count] = user_id;
    struct review *review = make_review(plane, ids, count + 1);
    free(ids);
    return review;
}

static void free_review(struct review *review)
{
    list_remove(&review->of_plane);
    id_list_free(&review->ids);
    free(review);
}

static struct topic *topic_of(struct presence_plane *plane, struct slice user_id)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    return router_topic(plane->router, presence_topic(name, user_id));
}

/* ---- views ---- */

static bool sees(const struct subscription *subscription)
{
    return subscription->view == PRIVACY_PRESENCE || subscription->view == PRIVACY_EVERYTHING;
}

static void send_to(struct presence_plane *plane, struct endpoint *endpoint,
                    const struct presence *presence)
{
    struct message message = {
        .type = MESSAGE_PRESENCE_CHANGED,
        .change = {.presence = *presence, .timestamp_ms = plane->clock->wall_ms}};
    struct broadcast broadcast = {.message = &message};
    plane->router->deliver(endpoint, &broadcast,
                           router_key(plane->router, MESSAGE_PRESENCE_CHANGED, presence->user_id));
    broadcast_end(&broadcast);
}

static void hide(struct presence_plane *plane, struct subscription *subscription,
                 struct slice user_id, enum presence_reason reason)
{
    struct presence hidden = presence_hidden(user_id, reason);
    subscription->view = PRIVACY_HIDDEN;
    send_to(plane, subscription->endpoint, &hidden);
}

/* The profile of one viewer, asked for with the roles exchanged, as the viewer's view of the user. */
static struct privacy_decision decide_mirrored(struct slice viewer, struct slice user_id,
                                               const struct ledger_settings *settings,
                                               const struct ledger_profile *mirrored)
{
    struct ledger_profile profile = {
        .user = user_id,
        .settings = *settings,
        .are_contacts = mirrored->are_contacts,
        .blocked_by_viewer = mirrored->blocked_by_target,
        .blocked_by_target = mirrored->blocked_by_viewer,
    };
    return privacy_decide(viewer, &profile);
}

/* Sets one user's subscriptions to the new view. Those who lose sight are told here; those whose view
 * opened or narrowed are told by the state, which is read next. */
static bool set_views(struct presence_plane *plane, struct slice viewer, struct slice user_id,
                      struct privacy_decision decision)
{
    bool opened = false;
    struct route *route = router_find(plane->router, viewer);
    if (!route)
        return false;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        struct subscription *held = subscription_find(endpoint, user_id);
        if (!held || held->view == decision.view)
            continue;
        if (decision.view == PRIVACY_HIDDEN) {
            hide(plane, held, user_id, decision.reason);
        } else {
            held->view = (uint8_t)decision.view;
            held->due = true;
            opened = true;
        }
    }
    return opened;
}

static void blind(struct presence_plane *plane, struct slice viewer, struct slice user_id)
{
    struct route *route = router_find(plane->router, viewer);
    struct list *at = route ? route->endpoints.next : NULL;
    for (; at && at != &route->endpoints; at = at->next) {
        struct subscription *held =
            subscription_find(CONTAINER_OF(at, struct endpoint, of_route), user_id);
        if (held && sees(held))
            held->view = SUBSCRIPTION_UNDECIDED;
    }
}

/* Its viewers see nothing until the next try, which is theirs alone: others were reviewed with others. */
static void suspend(struct review *review)
{
    for (size_t i = 0; i < review->viewer_count; i++)
        blind(review->plane, review->ids.ids[i], review->user_id);
    review->waiting = true;
}

/* ---- one review ---- */

/* Who may see now, or sees more or less than before, hears how things stand; others know. */
static void read_state(void *arg, enum state_status status, const struct presence *presences,
                       size_t count)
{
    struct review *review = arg;
    if (status != STATE_OK || count != 1) {
        suspend(review);
        return;
    }
    struct topic *topic = topic_of(review->plane, review->user_id);
    struct presence_change change = {.presence = presences[0],
                                     .timestamp_ms = review->plane->clock->wall_ms};
    if (topic)
        subscription_tell_due(review->plane, topic, &change);
    free_review(review);
}

static void read_profiles(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct review *review = arg;
    if (review->outdated) {
        free_review(review);
        return;
    }
    if (outcome->status != LEDGER_OK) {
        suspend(review);
        return;
    }
    const struct ledger_settings *settings = &outcome->profiles[review->viewer_count].settings;
    bool opened = false;
    for (size_t i = 0; i < review->viewer_count; i++) {
        struct privacy_decision decision =
            decide_mirrored(review->ids.ids[i], review->user_id, settings, &outcome->profiles[i]);
        opened |= set_views(review->plane, review->ids.ids[i], review->user_id, decision);
    }
    if (opened)
        state_read(review->plane->store, &review->user_id, 1, read_state, review);
    else
        free_review(review);
}

/* What is asked now is as new as can be, whatever overtook it while it was under way. */
static void ask(struct review *review)
{
    review->waiting = false;
    review->outdated = false;
    ledger_profiles(review->plane->ledger, review->user_id, review->ids.ids, review->ids.count,
                    read_profiles, review);
}

/* ---- all of them ---- */

/* Those under way are dropped when they are answered, those that wait at once. */
static void outdate(struct presence_plane *plane, struct slice user_id)
{
    struct list *at = plane->reviews.next;
    while (at != &plane->reviews) {
        struct review *review = review_of(at);
        at = at->next;
        if (!slice_equal(review->user_id, user_id))
            continue;
        review->outdated = true;
        if (review->waiting)
            free_review(review);
    }
}

static void hide_from_all(struct presence_plane *plane, struct slice user_id, struct topic *topic)
{
    for (uint32_t i = 0; i < topic->count; i++)
        if (topic->subscriptions[i]->view != PRIVACY_HIDDEN)
            hide(plane, topic->subscriptions[i], user_id, PRESENCE_REASON_PRIVACY);
}

void visibility_review_start(struct presence_plane *plane, struct slice user_id)
{
    struct topic *topic = topic_of(plane, user_id);
    outdate(plane, user_id);
    presence_query_outdate(plane, user_id);
    for (size_t first = 0; topic && first < topic->count; first += REVIEW_VIEWERS_MAX) {
        struct review *review = make_review_of(plane, user_id, topic, first);
        if (!review) {
            hide_from_all(plane, user_id, topic);
            return;
        }
        ask(review);
    }
}

void visibility_review_viewer(struct presence_plane *plane, struct slice user_id,
                              struct slice viewer)
{
    struct review *review = make_review(plane, (struct slice[]){viewer, user_id}, 2);
    if (review)
        ask(review);
}

void visibility_review_again(struct presence_plane *plane, struct slice user_id)
{
    struct list *at = plane->reviews.next;
    while (at != &plane->reviews && !slice_equal(review_of(at)->user_id, user_id))
        at = at->next;
    if (at != &plane->reviews)
        visibility_review_start(plane, user_id);
}

void visibility_review_retry(struct presence_plane *plane)
{
    struct list *at = plane->reviews.next;
    while (at != &plane->reviews) {
        struct review *review = review_of(at);
        at = at->next;
        if (review->waiting)
            ask(review);
    }
}

void visibility_review_forget_all(struct presence_plane *plane)
{
    struct list *at = plane->reviews.next;
    while (at != &plane->reviews) {
        struct review *review = review_of(at);
        at = at->next;
        assert(review->waiting);
        free_review(review);
    }
}

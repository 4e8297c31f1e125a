#include "presence/visibility/visibility_review.h"

#include "base/container.h"
#include "base/id_list.h"
#include "presence/presence_query.h"
#include "presence/subscription.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* One ledger query holds the user itself and this many viewers. */
enum { REVIEW_VIEWERS_MAX = LEDGER_PROFILES_MAX - 1, REVIEW_TRIES_PER_RUN = 1000 };

/* A review of one user, for some of the users who subscribed here. */
struct review {
    struct list of_plane;
    struct presence_plane *plane;
    bool waiting;         /* for the next try; else it is pending */
    bool outdated;        /* a newer one has begun */
    struct slice user_id; /* the last of `ids` */
    size_t viewer_count;
    struct id_list ids;     /* owned: the viewers, then the user itself */
    struct presence ledger; /* the user's last seen and version there */
};

static struct review *review_of(struct list *at)
{
    return CONTAINER_OF(at, struct review, of_plane);
}

/* `ids` are the viewers and then the user, `count` in all. */
static struct review *review_make(struct presence_plane *plane, const struct slice *ids,
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

/* Makes a review for the subscribers from `first` on, as many as one ledger query holds. */
static struct review *review_make_for(struct presence_plane *plane, struct slice user_id,
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
    struct review *review = review_make(plane, ids, count + 1);
    free(ids);
    return review;
}

static void review_free(struct review *review)
{
    list_remove(&review->of_plane);
    id_list_free(&review->ids);
    free(review);
}

/* ---- views ---- */

static void review_hide(struct presence_plane *plane, struct subscription *subscription,
                        struct slice user_id, enum presence_reason reason)
{
    struct message message = {.type = MESSAGE_PRESENCE_CHANGED,
                              .change = {.presence = presence_hidden(user_id, reason),
                                         .timestamp_ms = plane->clock->wall_ms}};
    struct broadcast broadcast = {.message = &message};
    subscription->view = subscription->told_view = PRIVACY_HIDDEN;
    plane->router->deliver(subscription->endpoint, &broadcast,
                           router_key(plane->router, MESSAGE_PRESENCE_CHANGED, user_id));
    broadcast_end(&broadcast);
}

/* Turns the viewer's profile, which was read with the roles swapped, into the viewer's view of the user. */
static struct privacy_decision review_decide(struct slice viewer, struct slice user_id,
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

/* Sets the view of one viewer's subscriptions. Those that lose visibility are told here. Returns whether any
 * other view widened or narrowed: the caller then reads the state and delivers it to those. */
static bool review_set_views(struct presence_plane *plane, struct slice viewer,
                             struct slice user_id, struct privacy_decision decision)
{
    bool needs_state = false;
    struct route *route = router_find(plane->router, viewer);
    if (!route)
        return false;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        struct subscription *held = subscription_find(endpoint, user_id);
        if (!held || held->view == decision.view)
            continue;
        if (decision.view == PRIVACY_HIDDEN) {
            review_hide(plane, held, user_id, decision.reason);
        } else {
            held->view = (uint8_t)decision.view;
            held->needs_state = true;
            needs_state = true;
        }
    }
    return needs_state;
}

/* The viewers see nothing until the next try, which is only for them: other viewers have reviews of their
 * own. */
static void review_suspend(struct review *review)
{
    for (size_t i = 0; i < review->viewer_count; i++) {
        struct route *route = router_find(review->plane->router, review->ids.ids[i]);
        struct list *at = route ? route->endpoints.next : NULL;
        for (; at && at != &route->endpoints; at = at->next) {
            struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
            struct subscription *held = subscription_find(endpoint, review->user_id);
            if (held && (held->view == PRIVACY_PRESENCE || held->view == PRIVACY_EVERYTHING))
                held->view = SUBSCRIPTION_UNDECIDED;
        }
    }
    review->waiting = true;
}

/* ---- one review ---- */

/* Delivers the state to the subscribers whose view changed; the others have it. */
static void on_review_state_read(void *arg, enum state_status status,
                                 const struct presence *presences, size_t count)
{
    struct review *review = arg;
    if (status != STATE_OK || count != 1) {
        review_suspend(review);
        return;
    }
    struct topic *topic = subscription_topic(review->plane, review->user_id);
    struct presence told = {0};
    last_known_find(review->plane->last_known, review->user_id, &told);
    struct presence_change change = {
        .presence = presence_query_merge(&presences[0], &review->ledger, told.version),
        .timestamp_ms = review->plane->clock->wall_ms};
    if (topic)
        subscription_deliver_reviewed(review->plane, topic, &change);
    review_free(review);
}

static void on_review_profiles_read(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct review *review = arg;
    if (review->outdated) {
        review_free(review);
        return;
    }
    if (outcome->status != LEDGER_OK) {
        review_suspend(review);
        return;
    }
    const struct ledger_profile *profile = &outcome->profiles[review->viewer_count];
    const struct ledger_settings *settings = &profile->settings;
    review->ledger =
        (struct presence){.last_seen_ms = profile->last_seen_ms ? profile->last_seen_ms : TIME_NONE,
                          .version = (int64_t)profile->presence_version};
    bool needs_state = false;
    for (size_t i = 0; i < review->viewer_count; i++) {
        struct slice viewer = review->ids.ids[i];
        struct privacy_decision decision =
            review_decide(viewer, review->user_id, settings, &outcome->profiles[i]);
        needs_state |= review_set_views(review->plane, viewer, review->user_id, decision);
    }
    if (needs_state)
        state_read(review->plane->store, &review->user_id, 1, on_review_state_read, review);
    else
        review_free(review);
}

/* A new read is newer than the change that made this review outdated. */
static void review_read_profiles(struct review *review)
{
    review->waiting = false;
    review->outdated = false;
    ledger_profiles(review->plane->ledger, review->user_id, review->ids.ids, review->ids.count,
                    on_review_profiles_read, review);
}

/* ---- all reviews ---- */

/* Frees the user's reviews that wait; pending ones are freed when the ledger answers. */
static void review_outdate(struct presence_plane *plane, struct slice user_id)
{
    struct list *at = plane->reviews.next;
    while (at != &plane->reviews) {
        struct review *review = review_of(at);
        at = at->next;
        if (!slice_equal(review->user_id, user_id))
            continue;
        review->outdated = true;
        if (review->waiting)
            review_free(review);
    }
}

void visibility_review_start(struct presence_plane *plane, struct slice user_id)
{
    struct topic *topic = subscription_topic(plane, user_id);
    review_outdate(plane, user_id);
    presence_query_outdate(plane, user_id);
    for (size_t first = 0; topic && first < topic->count; first += REVIEW_VIEWERS_MAX) {
        struct review *review = review_make_for(plane, user_id, topic, first);
        if (review) {
            review_read_profiles(review);
            continue;
        }
        for (uint32_t i = 0; i < topic->count; i++)
            if (topic->subscriptions[i]->view != PRIVACY_HIDDEN)
                review_hide(plane, topic->subscriptions[i], user_id, PRESENCE_REASON_PRIVACY);
        return;
    }
}

void visibility_review_viewer(struct presence_plane *plane, struct slice user_id,
                              struct slice viewer)
{
    struct review *review = review_make(plane, (struct slice[]){viewer, user_id}, 2);
    if (review)
        review_read_profiles(review);
}

void visibility_review_again(struct presence_plane *plane, struct slice user_id)
{
    struct list *at = plane->reviews.next;
    while (at != &plane->reviews && !slice_equal(review_of(at)->user_id, user_id))
        at = at->next;
    if (at != &plane->reviews)
        visibility_review_start(plane, user_id);
}

/* Returns whether one of its viewers is still here. */
static bool review_has_viewers(const struct review *review)
{
    for (size_t i = 0; i < review->viewer_count; i++)
        if (router_find(review->plane->router, review->ids.ids[i]))
            return true;
    return false;
}

/* A review that was tried goes to the end, so that each has its turn. */
void visibility_review_retry(struct presence_plane *plane)
{
    struct list *at = plane->reviews.next, *last = plane->reviews.prev;
    size_t tries = 0;
    for (bool is_last = list_empty(&plane->reviews); !is_last && tries < REVIEW_TRIES_PER_RUN;) {
        struct review *review = review_of(at);
        is_last = at == last;
        at = at->next;
        if (!review->waiting)
            continue;
        if (!review_has_viewers(review)) {
            review_free(review);
            continue;
        }
        list_remove(&review->of_plane);
        list_append(&plane->reviews, &review->of_plane);
        review_read_profiles(review);
        tries++;
    }
}

void visibility_review_free_all(struct presence_plane *plane)
{
    struct list *at = plane->reviews.next;
    while (at != &plane->reviews) {
        struct review *review = review_of(at);
        at = at->next;
        assert(review->waiting);
        review_free(review);
    }
}

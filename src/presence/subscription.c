#include "presence/subscription.h"

#include "presence/presence_event.h"

#include "base/container.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)PRIVACY_VIEWS <= (int)ROUTER_VIEWS_MAX, "a subscription's view is a privacy view");

static struct subscription *find(const struct endpoint *endpoint, struct slice user_id)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    return router_subscription(endpoint, presence_topic(name, user_id));
}

size_t subscription_count_with(const struct endpoint *endpoint, const struct slice *users,
                               size_t count)
{
    size_t held = 0;
    for (const struct subscription *at = endpoint->subscriptions; at; at = at->next)
        held += presence_topic_user((struct slice){at->topic->name, at->topic->name_len}).data !=
                NULL;
    for (size_t i = 0; i < count; i++) {
        bool repeated = false;
        for (size_t j = 0; j < i && !repeated; j++)
            repeated = slice_equal(users[i], users[j]);
        held += !repeated && !find(endpoint, users[i]);
    }
    return held;
}

static void update_gauge(struct presence_plane *plane, int64_t amount)
{
    metrics_add(plane->metrics, METRIC_SUBSCRIPTIONS, amount);
}

bool subscription_add(struct presence_plane *plane, struct endpoint *endpoint,
                      const struct slice *users, size_t count)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    uint16_t before = endpoint->subscription_count;
    bool added = true;
    for (size_t i = 0; i < count && added; i++)
        added = router_subscribe(plane->router, endpoint, presence_topic(name, users[i])) != NULL;
    update_gauge(plane, endpoint->subscription_count - before);
    return added;
}

void subscription_remove(struct presence_plane *plane, struct endpoint *endpoint,
                         const struct slice *users, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct subscription *held = find(endpoint, users[i]);
        if (!held)
            continue;
        router_unsubscribe(plane->router, held);
        update_gauge(plane, -1);
    }
}

void subscription_decide(struct presence_plane *plane, struct endpoint *endpoint,
                         const struct slice *users, const struct privacy_decision *decisions,
                         size_t count)
{
    (void)plane;
    for (size_t i = 0; i < count; i++) {
        struct subscription *held = find(endpoint, users[i]);
        if (held)
            held->view = (uint8_t)decisions[i].view;
    }
}

/* Sends a change to all subscribers of a topic, each in the variant its view allows. */
void subscription_fan_out(struct presence_plane *plane, struct slice topic_name,
                          const struct presence_change *change)
{
    struct topic *topic = router_topic(plane->router, topic_name);
    if (!topic)
        return;
    struct message messages[PRIVACY_VIEWS];
    struct broadcast broadcasts[PRIVACY_VIEWS] = {0};
    struct broadcast *variants[ROUTER_VIEWS_MAX] = {0};
    for (int view = PRIVACY_PRESENCE; view < PRIVACY_VIEWS; view++) {
        struct privacy_decision decision = {.view = (enum privacy_view)view};
        messages[view] = (struct message){
            .type = MESSAGE_PRESENCE_CHANGED,
            .change = {privacy_apply(&change->presence, decision), change->timestamp_ms}};
        broadcasts[view].message = &messages[view];
        variants[view] = &broadcasts[view];
    }
    uint64_t key =
        router_key(plane->router, MESSAGE_PRESENCE_CHANGED, change->presence.user_id);
    size_t delivered = router_fan_out(plane->router, topic, variants, key);
    for (int view = PRIVACY_PRESENCE; view < PRIVACY_VIEWS; view++)
        broadcast_end(&broadcasts[view]);
    metrics_set(plane->metrics, METRIC_SUBSCRIPTION_FANOUT_COUNT, (int64_t)delivered);
    metrics_add(plane->metrics, METRIC_PRESENCE_DELIVERIES, (int64_t)delivered);
    metrics_latency(plane->metrics, LATENCY_PRESENCE,
                    (plane->clock->wall_ms - change->timestamp_ms) * 1000);
}

/* ---- review ---- */

/* One review: of one user, for all its local subscribers' users. */
struct review {
    struct presence_plane *plane;
    struct slice user_id;
    size_t viewer_count;
    struct slice viewers[]; /* then the bytes of all ids */
};

static struct review *make_review(struct presence_plane *plane, struct slice user_id,
                                  const struct topic *topic)
{
    size_t count = topic->count < LEDGER_PROFILES_MAX - 1 ? topic->count : LEDGER_PROFILES_MAX - 1;
    struct review *review = malloc(sizeof(*review) + (count + 1) * sizeof(struct slice) +
                                   (count + 1) * USER_ID_BYTES_MAX);
    if (!review)
        return NULL;
    *review = (struct review){.plane = plane, .viewer_count = count};
    char *at = (char *)&review->viewers[count + 1];
    for (size_t i = 0; i <= count; i++) {
        struct slice id =
            i < count ? route_user(topic->subscriptions[i]->endpoint->route) : user_id;
        memcpy(at, id.data, id.len);
        review->viewers[i] = (struct slice){at, id.len};
        at += id.len;
    }
    review->user_id = review->viewers[count];
    return review;
}

static void send_to(struct presence_plane *plane, struct endpoint *endpoint,
                    const struct presence *presence)
{
    struct message message = {.type = MESSAGE_PRESENCE_CHANGED,
                              .change = {*presence, plane->clock->wall_ms}};
    struct broadcast broadcast = {.message = &message};
    plane->router->deliver(endpoint, &broadcast,
                           router_key(plane->router, MESSAGE_PRESENCE_CHANGED, presence->user_id));
    broadcast_end(&broadcast);
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

/* Sets one user's subscriptions to the topic to the new view. Those who lose sight are told here;
 * those whose view opened or narrowed are told by the state, which is read next. */
static bool set_views(struct presence_plane *plane, struct slice viewer, struct slice user_id,
                      struct privacy_decision decision)
{
    bool opened = false;
    struct route *route = router_find(plane->router, viewer);
    if (!route)
        return false;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        struct subscription *held = find(endpoint, user_id);
        if (!held || held->view == decision.view)
            continue;
        held->view = (uint8_t)decision.view;
        if (decision.view == PRIVACY_HIDDEN) {
            struct presence hidden = presence_hidden(user_id, decision.reason);
            send_to(plane, endpoint, &hidden);
        } else {
            opened = true;
        }
    }
    return opened;
}

/* Everybody who may see hears how things stand: a repetition to those who knew is harmless and rare. */
static void review_state(void *arg, enum state_status status, const struct presence *presences,
                         size_t count)
{
    struct review *review = arg;
    if (status == STATE_OK && count == 1) {
        char name[ROUTER_TOPIC_BYTES_MAX];
        struct presence_change change = {presences[0], review->plane->clock->wall_ms};
        subscription_fan_out(review->plane, presence_topic(name, review->user_id), &change);
    }
    free(review);
}

static void review_profiles(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct review *review = arg;
    if (outcome->status != LEDGER_OK) {
        free(review);
        return;
    }
    const struct ledger_settings *settings = &outcome->profiles[review->viewer_count].settings;
    bool opened = false;
    for (size_t i = 0; i < review->viewer_count; i++) {
        struct privacy_decision decision = decide_mirrored(review->viewers[i], review->user_id,
                                                           settings, &outcome->profiles[i]);
        opened |= set_views(review->plane, review->viewers[i], review->user_id, decision);
    }
    if (opened)
        state_read(review->plane->store, &review->user_id, 1, review_state, review);
    else
        free(review);
}

void subscription_review(struct presence_plane *plane, struct slice user_id)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct topic *topic = router_topic(plane->router, presence_topic(name, user_id));
    struct review *review = topic ? make_review(plane, user_id, topic) : NULL;
    if (review)
        ledger_profiles(plane->ledger, review->user_id, review->viewers, review->viewer_count + 1,
                        review_profiles, review);
}

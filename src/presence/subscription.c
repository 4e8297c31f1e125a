#include "presence/subscription.h"

#include "presence/presence_event.h"
#include "presence/resync.h"

#include <assert.h>
#include <string.h>

static_assert((int)SUBSCRIPTION_UNDECIDED < (int)ROUTER_VIEWS_MAX,
              "a subscription's view is a privacy view or undecided");

struct topic *subscription_topic(const struct presence_plane *plane, struct slice user_id)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    return router_topic(plane->router, presence_topic(name, user_id));
}

struct subscription *subscription_find(const struct endpoint *endpoint, struct slice user_id)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    if (endpoint->subscription_count == 0)
        return NULL;
    return router_subscription(endpoint, presence_topic(name, user_id));
}

size_t subscription_count_with(const struct endpoint *endpoint, const struct slice *users,
                               size_t count)
{
    size_t held = 0;
    for (const struct subscription *at = endpoint->subscriptions; at; at = at->next)
        held += presence_topic_user(topic_name(at->topic)).data != NULL;
    for (size_t i = 0; i < count; i++) {
        bool repeated = false;
        for (size_t j = 0; j < i && !repeated; j++)
            repeated = slice_equal(users[i], users[j]);
        held += !repeated && !subscription_find(endpoint, users[i]);
    }
    return held;
}

/* An existing subscription keeps its view. */
bool subscription_add(struct presence_plane *plane, struct endpoint *endpoint,
                      const struct slice *users, size_t count)
{
    uint32_t before = endpoint->subscription_count;
    bool added = true;
    for (size_t i = 0; i < count && added; i++) {
        char name[ROUTER_TOPIC_BYTES_MAX];
        uint32_t held_before = endpoint->subscription_count;
        struct subscription *held =
            router_subscribe(plane->router, endpoint, presence_topic(name, users[i]));
        if (held && endpoint->subscription_count > held_before)
            held->view = SUBSCRIPTION_UNDECIDED;
        added = held != NULL;
    }
    metrics_add(plane->metrics, METRIC_SUBSCRIPTIONS,
                (int64_t)(endpoint->subscription_count - before));
    return added;
}

static void subscription_drop(struct presence_plane *plane, struct subscription *held)
{
    router_unsubscribe(plane->router, held);
    metrics_add(plane->metrics, METRIC_SUBSCRIPTIONS, -1);
}

void subscription_remove(struct presence_plane *plane, struct endpoint *endpoint,
                         const struct slice *users, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct subscription *held = subscription_find(endpoint, users[i]);
        if (held)
            subscription_drop(plane, held);
    }
}

void subscription_withdraw(struct presence_plane *plane, struct endpoint *endpoint,
                           const struct slice *users, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct subscription *held = subscription_find(endpoint, users[i]);
        if (held && held->view == SUBSCRIPTION_UNDECIDED)
            subscription_drop(plane, held);
    }
}

void subscription_decide(struct endpoint *endpoint, const struct slice *users,
                         const struct privacy_decision *decisions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct subscription *held = subscription_find(endpoint, users[i]);
        if (held)
            held->view = (uint8_t)decisions[i].view;
    }
}

/* ---- delivering a state in the variants that views allow ---- */

/* Encodes what a holder was told about a user in a byte. For an offline user it is 0, which never compares as
 * equal, because last seen may differ. */
static uint8_t subscription_told_byte(const struct presence *presence)
{
    enum { IN_CALL = 0x10 };
    if (presence->status == PRESENCE_OFFLINE)
        return 0;
    return (uint8_t)(presence->status | (presence->in_call ? IN_CALL : 0));
}

static void subscription_note_told(struct subscription *held, const struct presence *presence)
{
    held->version = presence->version;
    held->told = subscription_told_byte(presence);
    held->told_view = held->view;
}

/* Whether the holder knows this state as its view shows it: the view was only suspended meanwhile. Views differ only in what
 * they show of an offline user. */
static bool subscription_knows(const struct subscription *held, const struct presence *presence)
{
    return held->version == presence->version && held->told_view != PRIVACY_HIDDEN &&
           (held->told_view == held->view || presence->status != PRESENCE_OFFLINE);
}

void subscription_note_pushed(struct subscription *held, const struct presence *presence)
{
    bool shows_all = presence->status != PRESENCE_OFFLINE || presence->last_seen_ms != TIME_NONE;
    subscription_note_told(held, presence);
    held->told_view = shows_all ? PRIVACY_EVERYTHING : PRIVACY_PRESENCE;
}

struct presence_variants {
    struct message messages[PRIVACY_VIEWS];
    struct broadcast broadcasts[PRIVACY_VIEWS];
    struct broadcast *by_view[ROUTER_VIEWS_MAX]; /* NULL: the view shows nothing */
};

static void presence_variants_make(struct presence_variants *variants,
                                   const struct presence_change *change, int64_t wall_ms)
{
    memset(variants, 0, sizeof(*variants));
    for (int view = PRIVACY_PRESENCE; view < PRIVACY_VIEWS; view++) {
        struct privacy_decision decision = {.view = (enum privacy_view)view};
        variants->messages[view] = (struct message){
            .type = MESSAGE_PRESENCE_CHANGED,
            .change = {.presence = privacy_apply(&change->presence, decision, wall_ms),
                       .timestamp_ms = change->timestamp_ms}};
        variants->broadcasts[view].message = &variants->messages[view];
        variants->by_view[view] = &variants->broadcasts[view];
    }
}

static void presence_variants_end(struct presence_variants *variants)
{
    for (int view = PRIVACY_PRESENCE; view < PRIVACY_VIEWS; view++)
        broadcast_end(&variants->broadcasts[view]);
}

void subscription_told(struct presence_plane *plane, const struct endpoint *endpoint,
                       const struct presence *presences, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct presence *presence = &presences[i];
        struct subscription *held = subscription_find(endpoint, presence->user_id);
        if (held && presence->status == PRESENCE_UNKNOWN)
            held->told_view = PRIVACY_HIDDEN;
        if (!held || presence->status == PRESENCE_UNKNOWN)
            continue;
        bool outdated = held->version > presence->version;
        subscription_note_told(held, presence);
        if (outdated)
            reread_queue_add_topic(plane, held->topic);
    }
}

void subscription_deliver_reviewed(struct presence_plane *plane, struct topic *topic,
                                   const struct presence_change *change)
{
    struct presence_variants variants;
    uint64_t key = router_key(plane->router, MESSAGE_PRESENCE_CHANGED, change->presence.user_id);
    presence_variants_make(&variants, change, plane->clock->wall_ms);
    for (uint32_t i = 0; i < topic->count; i++) {
        struct subscription *held = topic->subscriptions[i];
        if (held->needs_state && variants.by_view[held->view] &&
            !subscription_knows(held, &change->presence)) {
            plane->router->deliver(held->endpoint, variants.by_view[held->view], key);
            subscription_note_told(held, &change->presence);
            metrics_count(plane->metrics, METRIC_PRESENCE_DELIVERIES);
        }
        held->needs_state = false;
    }
    presence_variants_end(&variants);
}

size_t subscription_deliver(struct presence_plane *plane, struct topic *topic,
                            const struct presence_change *change)
{
    struct presence_variants variants;
    presence_variants_make(&variants, change, plane->clock->wall_ms);
    uint64_t key = router_key(plane->router, MESSAGE_PRESENCE_CHANGED, change->presence.user_id);
    size_t delivered =
        router_fan_out(plane->router, topic, variants.by_view, key, change->presence.version,
                       subscription_told_byte(&change->presence));
    presence_variants_end(&variants);
    metrics_add(plane->metrics, METRIC_PRESENCE_DELIVERIES, (int64_t)delivered);
    return delivered;
}

void subscription_fan_out(struct presence_plane *plane, struct slice topic_name,
                          const struct presence_change *change)
{
    struct topic *topic = router_topic(plane->router, topic_name);
    if (!topic)
        return;
    size_t delivered = subscription_deliver(plane, topic, change);
    metrics_set(plane->metrics, METRIC_SUBSCRIPTION_FANOUT_COUNT, (int64_t)delivered);
    metrics_latency(plane->metrics, LATENCY_PRESENCE,
                    (plane->clock->wall_ms - change->timestamp_ms) * 1000);
}

#include "bus/fleet/peer_hub_internal.h"

#include "base/container.h"
#include "bus/bus.h"

#include <stdlib.h>
#include <string.h>

enum { TOPIC_LENGTH_BYTES = 2 };

bool peer_hub_is_gateway_of(struct slice gateway_id, struct slice process)
{
    if (!slice_starts_with(gateway_id, process))
        return false;
    struct slice rest = slice_after(gateway_id, process.len);
    if (rest.len == 0)
        return true;
    bool numbered = rest.data[0] == '-' && rest.len > 1;
    for (size_t i = 1; numbered && i < rest.len; i++)
        numbered = rest.data[i] >= '0' && rest.data[i] <= '9';
    return numbered;
}

bool peer_hub_has_gateways(struct slice process)
{
    return !memchr(process.data, ':', process.len);
}

/* ---- frames ---- */

void peer_hub_take_frame(struct peer_hub *hub, struct slice frame)
{
    if (frame.len < TOPIC_LENGTH_BYTES)
        return;
    const uint8_t *head = (const uint8_t *)frame.data;
    size_t topic_len = (size_t)head[0] << 8 | head[1];
    struct slice rest = {frame.data + TOPIC_LENGTH_BYTES, frame.len - TOPIC_LENGTH_BYTES};
    if (topic_len == 0 || topic_len > rest.len || topic_len > PEER_HUB_TOPIC_BYTES_MAX)
        return;
    metrics_count(hub->options.metrics, METRIC_PEER_FRAMES_RECEIVED);
    hub->options.on_event(hub->options.arg, slice_first(rest, topic_len),
                          (struct slice){rest.data + topic_len, rest.len - topic_len});
}

static void peer_hub_send_to_entry(struct roster_entry *entry, struct slice topic,
                                   struct slice payload)
{
    char head[TOPIC_LENGTH_BYTES] = {(char)(topic.len >> 8), (char)topic.len};
    struct slice pieces[] = {{head, sizeof(head)}, topic, payload};
    size_t queued_bytes = entry->dialer ? peer_dialer_queued_bytes(entry->dialer)
                                        : peer_link_queued_bytes(entry->link);
    bool sent = queued_bytes + payload.len <= PEER_HUB_QUEUE_BYTES_MAX &&
                (entry->dialer ? peer_dialer_send(entry->dialer, pieces, 3)
                               : peer_link_send(entry->link, pieces, 3));
    metrics_count(entry->hub->options.metrics,
                  sent ? METRIC_PEER_FRAMES_SENT : METRIC_PEER_FRAMES_SKIPPED);
}

/* ---- from other threads ---- */

struct hub_mail {
    struct mail mail;
    struct peer_hub *hub;
    size_t topic_len;
    size_t payload_len;
    char bytes[];
};

/* Sends the event to the peers that its topic selects. */
static void on_hub_mail(struct mail *mail, void *owner)
{
    (void)owner;
    struct hub_mail *event = CONTAINER_OF(mail, struct hub_mail, mail);
    struct slice topic = {event->bytes, event->topic_len};
    struct slice payload = {event->bytes + event->topic_len, event->payload_len};
    struct slice gateway_id = bus_topic_gateway(topic);
    struct list *entries = &event->hub->roster.entries;
    bool only_lost = slice_equal(topic, BUS_TOPIC_LOST);
    bool tried = false;
    for (struct list *at = entries->next; at != entries; at = at->next) {
        struct roster_entry *entry = roster_entry_of(at);
        bool is_selected =
            gateway_id.data
                ? peer_hub_is_gateway_of(gateway_id, roster_entry_name(entry))
                : entry->lost || (!only_lost && peer_hub_has_gateways(roster_entry_name(entry)));
        if (!entry->chosen || !is_selected)
            continue;
        peer_hub_send_to_entry(entry, only_lost ? BUS_TOPIC_ALL : topic, payload);
        tried = true;
    }
    if (!tried)
        metrics_count(event->hub->options.metrics, METRIC_PEER_FRAMES_SKIPPED);
    free(event);
}

void peer_hub_send(struct peer_hub *hub, struct metrics *metrics, struct slice topic,
                   struct slice payload)
{
    struct hub_mail *event = NULL;
    if (topic.len <= PEER_HUB_TOPIC_BYTES_MAX && peer_hub_open_links(hub) > 0)
        event = malloc(sizeof(*event) + topic.len + payload.len);
    if (event) {
        event->mail.on_open = on_hub_mail;
        event->hub = hub;
        event->topic_len = topic.len;
        event->payload_len = payload.len;
        memcpy(event->bytes, topic.data, topic.len);
        if (payload.len)
            memcpy(event->bytes + topic.len, payload.data, payload.len);
        if (mailbox_post(hub->options.mailbox, &event->mail))
            return;
        free(event);
    }
    metrics_count(metrics, METRIC_PEER_FRAMES_SKIPPED);
}

size_t peer_hub_open_links(const struct peer_hub *hub)
{
    return atomic_load(&hub->roster.chosen_count);
}

size_t peer_hub_gateway_links(const struct peer_hub *hub)
{
    return atomic_load(&hub->roster.gateway_count);
}

size_t peer_hub_lost_links(const struct peer_hub *hub)
{
    return atomic_load(&hub->roster.lost_count);
}

/* ---- life ---- */

struct peer_hub *peer_hub_make(const struct peer_hub_options *options)
{
    struct peer_hub *hub = calloc(1, sizeof(*hub));
    if (!hub)
        return NULL;
    hub->options = *options;
    hub->listener.source.fd = -1;
    peer_roster_init(&hub->roster, PEER_HUB_LINKS_MAX, options->metrics);
    pending_peers_init(&hub->pending, PEER_HUB_PENDING_MAX);
    return hub;
}

void peer_hub_free(struct peer_hub **hub)
{
    struct peer_hub *freed = *hub;
    *hub = NULL;
    if (!freed)
        return;
    listener_close(&freed->listener);
    while (!list_empty(&freed->roster.entries)) {
        struct roster_entry *entry = roster_entry_of(freed->roster.entries.next);
        if (entry->dialer)
            peer_dialer_drop(&entry->dialer);
        if (entry->link)
            peer_link_drop(&entry->link);
        peer_roster_remove(entry);
    }
    free(freed);
}

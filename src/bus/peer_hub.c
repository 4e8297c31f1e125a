#include "bus/peer_hub.h"

#include "base/container.h"
#include "base/log.h"
#include "bus/bus.h"
#include "bus/peer_roster.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { TOPIC_LENGTH_BYTES = 2, LISTEN_BACKLOG = 64, UNSENT_BYTES_MAX = 256 * 1024 };

struct peer_hub {
    struct peer_hub_options options;
    struct listener listener;
    struct peer_roster roster;
    size_t stranger_count;
};

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

static struct peer_hub *hub_of(const struct peer_member *member)
{
    return member->arg;
}

static bool is_myself(const struct peer_member *member, struct slice name)
{
    return slice_equal(name, hub_of(member)->options.name);
}

/* ---- frames ---- */

static void take_frame(struct peer_hub *hub, struct slice frame)
{
    if (frame.len < TOPIC_LENGTH_BYTES)
        return;
    const uint8_t *head = (const uint8_t *)frame.data;
    size_t topic_len = (size_t)head[0] << 8 | head[1];
    struct slice rest = {frame.data + TOPIC_LENGTH_BYTES, frame.len - TOPIC_LENGTH_BYTES};
    if (topic_len == 0 || topic_len > rest.len || topic_len > PEER_HUB_TOPIC_BYTES_MAX)
        return;
    metrics_count(hub->options.metrics, METRIC_PEER_FRAMES_RECEIVED);
    hub->options.received(hub->options.arg, slice_first(rest, topic_len),
                          (struct slice){rest.data + topic_len, rest.len - topic_len});
}

static bool send_frame(struct peer_member *member, struct slice topic, struct slice payload)
{
    char head[TOPIC_LENGTH_BYTES] = {(char)(topic.len >> 8), (char)topic.len};
    struct slice pieces[] = {{head, sizeof(head)}, topic, payload};
    size_t queued_bytes = member->dialer ? peer_dialer_queued_bytes(member->dialer)
                                         : peer_link_queued_bytes(member->link);
    bool sent = queued_bytes + payload.len <= PEER_HUB_QUEUE_BYTES_MAX &&
                (member->dialer ? peer_dialer_send(member->dialer, pieces, 3)
                                : peer_link_send(member->link, pieces, 3));
    metrics_count(hub_of(member)->options.metrics,
                  sent ? METRIC_PEER_FRAMES_SENT : METRIC_PEER_FRAMES_SKIPPED);
    return sent;
}

static bool is_meant(const struct peer_member *member, struct slice topic)
{
    struct slice gateway_id = bus_topic_gateway(topic);
    if (gateway_id.data)
        return peer_hub_is_gateway_of(gateway_id, peer_member_name(member));
    return member->lost || !slice_equal(topic, BUS_TOPIC_LOST);
}

/* On the hub's own thread. */
static void send_to_peers(struct peer_hub *hub, struct slice topic, struct slice payload)
{
    bool tried = false;
    for (struct list *at = hub->roster.members.next; at != &hub->roster.members; at = at->next) {
        struct peer_member *member = peer_member_of(at);
        if (!member->chosen || !is_meant(member, topic))
            continue;
        send_frame(member, slice_equal(topic, BUS_TOPIC_LOST) ? BUS_TOPIC_ALL : topic, payload);
        tried = true;
    }
    if (!tried)
        metrics_count(hub->options.metrics, METRIC_PEER_FRAMES_SKIPPED);
}

/* ---- dialled links ---- */

static void dialled_open(struct peer_dialer *dialer, void *arg, struct slice name)
{
    (void)dialer;
    struct peer_member *member = arg;
    if (is_myself(member, name)) {
        member->is_myself = true;
        peer_dialer_end(member->dialer);
        return;
    }
    peer_roster_opened(member, name);
}

static void dialled_received(struct peer_dialer *dialer, void *arg, struct slice frame)
{
    (void)dialer;
    take_frame(hub_of(arg), frame);
}

static void dialled_closed(struct peer_dialer *dialer, void *arg, const char *why)
{
    (void)dialer, (void)why;
    peer_roster_closed(arg);
}

static void dialled_ended(void *arg)
{
    struct peer_member *member = arg;
    member->dialer = NULL;
    if (member->forgotten)
        peer_roster_remove(member);
}

static const struct peer_dialer_owner dialer_owner = {.opened = dialled_open,
                                                      .received = dialled_received,
                                                      .closed = dialled_closed,
                                                      .ended = dialled_ended};

static struct peer_link_options link_options(const struct peer_hub *hub, struct tls_context *tls)
{
    return (struct peer_link_options){
        .loop = hub->options.loop,
        .streams = hub->options.streams,
        .random = hub->options.random,
        .secret = hub->options.secret,
        .name = hub->options.name,
        .tls = tls,
    };
}

static struct peer_member *dial(struct peer_hub *hub, struct slice address)
{
    struct peer_link_options options = link_options(hub, hub->options.tls_dial);
    struct peer_member *member = peer_roster_add(&hub->roster, address, hub);
    if (!member)
        return NULL;
    member->dialer = peer_dialer_make(&options, member->address, &dialer_owner, member);
    if (member->dialer)
        return member;
    peer_roster_remove(member);
    return NULL;
}

bool peer_hub_add(struct peer_hub *hub, const char *address)
{
    struct peer_member *member = peer_roster_find_address(&hub->roster, slice_of(address));
    if (!member)
        member = dial(hub, slice_of(address));
    if (member)
        member->learned = false;
    return member != NULL;
}

/* ---- the registry ---- */

static bool is_linked(struct peer_hub *hub, struct slice gateway_id)
{
    for (struct list *at = hub->roster.members.next; at != &hub->roster.members; at = at->next)
        if (peer_member_of(at)->chosen &&
            peer_hub_is_gateway_of(gateway_id, peer_member_name(peer_member_of(at))))
            return true;
    return peer_hub_is_gateway_of(gateway_id, hub->options.name);
}

static void learn_one(struct peer_hub *hub, const struct peer_hub_entry *entry)
{
    struct peer_member *member = peer_roster_find_address(&hub->roster, entry->address);
    if (!member && !is_linked(hub, entry->gateway_id)) {
        member = dial(hub, entry->address);
        if (member)
            member->learned = true;
    }
    if (member)
        member->named = true;
}

static void forget_unnamed(struct peer_hub *hub)
{
    struct list *at = hub->roster.members.next;
    while (at != &hub->roster.members) {
        struct peer_member *member = peer_member_of(at);
        at = at->next;
        if (!member->learned || member->named || member->open)
            continue;
        member->forgotten = true;
        if (member->dialer)
            peer_dialer_end(member->dialer);
        else
            peer_roster_remove(member);
    }
}

static bool is_registered(const struct peer_member *member, const struct peer_hub_entry *entries,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (peer_hub_is_gateway_of(entries[i].gateway_id, peer_member_name(member)))
            return true;
    return false;
}

void peer_hub_learn(struct peer_hub *hub, const struct peer_hub_entry *entries, size_t count)
{
    for (struct list *at = hub->roster.members.next; at != &hub->roster.members; at = at->next)
        peer_member_of(at)->named = false;
    for (size_t i = 0; i < count; i++)
        if (entries[i].address.len)
            learn_one(hub, &entries[i]);
    forget_unnamed(hub);
    for (struct list *at = hub->roster.members.next; at != &hub->roster.members; at = at->next)
        peer_roster_set_lost(peer_member_of(at),
                             peer_member_of(at)->chosen &&
                                 !is_registered(peer_member_of(at), entries, count));
}

/* ---- accepted links ---- */

static void accepted_open(struct peer_link *link, void *arg, struct slice name)
{
    struct peer_member *member = arg;
    hub_of(member)->stranger_count--;
    member->is_myself = is_myself(member, name);
    if (member->is_myself)
        peer_link_close(link); /* one's own dialler, which sees it too */
    else
        peer_roster_opened(member, name);
}

static void accepted_received(struct peer_link *link, void *arg, struct slice frame)
{
    (void)link;
    const struct peer_member *member = arg;
    if (!member->is_myself)
        take_frame(hub_of(member), frame);
}

static void accepted_closed(struct peer_link *link, void *arg, const char *why)
{
    (void)link;
    struct peer_member *member = arg;
    if (member->open) {
        log_info("peer_link_closed", "peer=%s why=%s", log_quote(peer_member_name(member)),
                 log_quote(slice_of(why)));
        peer_roster_closed(member);
    } else if (!member->is_myself) {
        hub_of(member)->stranger_count--;
        log_warn("peer_link_refused", "why=%s", log_quote(slice_of(why)));
    }
    peer_roster_remove(member);
}

static const struct peer_link_owner link_owner = {
    .opened = accepted_open, .received = accepted_received, .closed = accepted_closed};

static void accept_stranger(void *arg, int fd)
{
    struct peer_hub *hub = arg;
    struct peer_link_options options = link_options(hub, hub->options.tls_accept);
    struct peer_member *member = hub->stranger_count < PEER_HUB_STRANGERS_MAX
                                     ? peer_roster_add(&hub->roster, SLICE_NONE, hub)
                                     : NULL;
    if (!member) {
        close(fd);
        return;
    }
    member->link = peer_link_accept(&options, fd, &link_owner, member);
    if (!member->link) {
        peer_roster_remove(member);
        close(fd);
        return;
    }
    hub->stranger_count++;
}

bool peer_hub_listen(struct peer_hub *hub, const char *address, char error[LISTENER_ERROR_TEXT_MAX])
{
    struct listener_options options = {
        .address = address, .backlog = LISTEN_BACKLOG, .unsent_bytes_max = UNSENT_BYTES_MAX};
    return listener_open(&hub->listener, hub->options.loop, &options, accept_stranger, hub, error);
}

uint16_t peer_hub_port(const struct peer_hub *hub)
{
    return hub->listener.port;
}

/* ---- from other threads ---- */

struct hub_mail {
    struct mail mail;
    struct peer_hub *hub;
    size_t topic_len;
    size_t payload_len;
    char bytes[];
};

static void open_mail(struct mail *mail, void *owner)
{
    (void)owner;
    struct hub_mail *letter = CONTAINER_OF(mail, struct hub_mail, mail);
    send_to_peers(letter->hub, (struct slice){letter->bytes, letter->topic_len},
                  (struct slice){letter->bytes + letter->topic_len, letter->payload_len});
    free(letter);
}

static bool post(struct peer_hub *hub, struct slice topic, struct slice payload)
{
    struct hub_mail *letter = malloc(sizeof(*letter) + topic.len + payload.len);
    if (!letter)
        return false;
    letter->mail.open = open_mail;
    letter->hub = hub;
    letter->topic_len = topic.len;
    letter->payload_len = payload.len;
    memcpy(letter->bytes, topic.data, topic.len);
    if (payload.len)
        memcpy(letter->bytes + topic.len, payload.data, payload.len);
    if (mailbox_post(hub->options.mailbox, &letter->mail))
        return true;
    free(letter);
    return false;
}

void peer_hub_send(struct peer_hub *hub, struct metrics *metrics, struct slice topic,
                   struct slice payload)
{
    bool fits = topic.len <= PEER_HUB_TOPIC_BYTES_MAX;
    if (!fits || peer_hub_open_links(hub) == 0 || !post(hub, topic, payload))
        metrics_count(metrics, METRIC_PEER_FRAMES_SKIPPED);
}

size_t peer_hub_open_links(const struct peer_hub *hub)
{
    return atomic_load(&hub->roster.chosen_count);
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
    return hub;
}

void peer_hub_free(struct peer_hub **hub)
{
    struct peer_hub *freed = *hub;
    *hub = NULL;
    if (!freed)
        return;
    listener_close(&freed->listener);
    while (!list_empty(&freed->roster.members)) {
        struct peer_member *member = peer_member_of(freed->roster.members.next);
        if (member->dialer)
            peer_dialer_drop(&member->dialer);
        if (member->link)
            peer_link_drop(&member->link);
        peer_roster_remove(member);
    }
    free(freed);
}

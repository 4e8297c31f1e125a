#include "aggregate/aggregate_client_internal.h"
#include "base/container.h"
#include "log/log.h"

#include <stdio.h>

enum { FRAME_BYTES_KEPT = 1 << 20, STALL_MS = 2 * AGGREGATE_PING_MS };

size_t aggregate_link_index(const struct aggregate_link *link)
{
    return (size_t)(link - link->client->links);
}

static const char *link_address(const struct aggregate_link *link)
{
    return link->client->options.addresses[aggregate_link_index(link)];
}

static int64_t link_now_ms(const struct aggregate_link *link)
{
    return link->client->options.links.loop->clock.now_ms;
}

/* ---- who has which slot ---- */

/* Computes who is usable, and tells it if that changed or `is_new` says that a session is. */
static void update_usable(struct aggregate_client *client, bool is_new)
{
    bool changed = is_new;
    for (size_t i = 0; i < client->options.address_count; i++) {
        const struct aggregate_link *link = &client->links[i];
        bool usable =
            link->state == AGGREGATE_LINK_READY && link->is_available && !link->is_leaving;
        changed |= usable != client->usable[i];
        client->usable[i] = usable;
    }
    if (!changed)
        return;
    for (unsigned slot = 0; slot < AGGREGATE_SLOTS; slot++)
        client->slots[slot].owner =
            (uint16_t)aggregate_ring_find(&client->ring, (uint16_t)slot, client->usable);
    aggregate_client_tell_changed(client);
}

/* ---- sending ---- */

bool aggregate_link_send(struct aggregate_link *link, const struct aggregate_frame *frame)
{
    struct buffer *out = &link->client->frame;
    buffer_clear(out);
    aggregate_frame_write(out, frame);
    struct slice piece = buffer_slice(out);
    bool sent = !out->failed &&
                peer_dialer_queued_bytes(link->dialer) < AGGREGATE_QUEUE_BYTES_MAX &&
                peer_dialer_send(link->dialer, &piece, 1);
    if (out->cap > FRAME_BYTES_KEPT)
        buffer_free(out);
    return sent;
}

/* ---- frames ---- */

static void on_aggregator_welcome(struct aggregate_link *link, const struct aggregate_frame *frame)
{
    if (link->state != AGGREGATE_LINK_GREETING)
        return;
    link->state = AGGREGATE_LINK_READY;
    link->is_available = frame->is_available;
    link->is_leaving = false;
    link->sessions++;
    link->refusal[0] = '\0';
    log_info("aggregator_reached", "address=%s redis=%s", log_quote(slice_of(link_address(link))),
             frame->is_available ? "available" : "unavailable");
    update_usable(link->client, true);
}

/* An operator must see why; the same reason is logged once. */
static void on_aggregator_refusal(struct aggregate_link *link, const struct aggregate_frame *frame)
{
    if (!slice_equal(slice_of(link->refusal), frame->reason)) {
        snprintf(link->refusal, sizeof(link->refusal), "%.*s", SLICE_FORMAT(frame->reason));
        log_error("aggregator_refuses", "address=%s reason=%s",
                  log_quote(slice_of(link_address(link))), log_sentence(frame->reason));
    }
    peer_dialer_cut(link->dialer, "the aggregator refuses this gateway");
}

static void on_aggregator_notice(struct aggregate_link *link, const struct aggregate_frame *frame)
{
    if (frame->notice == AGGREGATE_AVAILABLE || frame->notice == AGGREGATE_UNAVAILABLE)
        link->is_available = frame->notice == AGGREGATE_AVAILABLE;
    else if (frame->notice == AGGREGATE_LEAVING)
        link->is_leaving = true;
    aggregate_client_tell_notice(link, frame->notice, frame->body);
    update_usable(link->client, false);
}

static void on_aggregator_frame(struct peer_dialer *dialer, void *arg, struct slice bytes)
{
    struct aggregate_link *link = arg;
    struct aggregate_frame frame;
    if (link->client->is_closed || link->state == AGGREGATE_LINK_DOWN)
        return;
    link->heard_ms = link_now_ms(link);
    if (!aggregate_frame_read(bytes, &frame)) {
        log_error("aggregator_frame_refused", "address=%s",
                  log_quote(slice_of(link_address(link))));
        peer_dialer_cut(dialer, "it sent a frame that is none of this version");
    } else if (frame.kind == AGGREGATE_ANSWER) {
        aggregate_client_take_answer(link, frame.id, AGGREGATE_DONE, frame.body);
    } else if (frame.kind == AGGREGATE_UNDONE) {
        aggregate_client_take_answer(link, frame.id, AGGREGATE_REFUSED, SLICE_NONE);
    } else if (frame.kind == AGGREGATE_NOTICE) {
        on_aggregator_notice(link, &frame);
    } else if (frame.kind == AGGREGATE_WELCOME) {
        on_aggregator_welcome(link, &frame);
    } else if (frame.kind == AGGREGATE_REFUSAL) {
        on_aggregator_refusal(link, &frame);
    }
}

/* ---- links ---- */

static void on_aggregator_link_opened(struct peer_dialer *dialer, void *arg, struct slice name)
{
    struct aggregate_link *link = arg;
    const struct aggregate_client_options *options = &link->client->options;
    struct aggregate_frame hello = {.kind = AGGREGATE_HELLO,
                                    .version = AGGREGATE_VERSION,
                                    .gateway_id = options->gateway_id,
                                    .instance = slice_of(link->client->instance),
                                    .process = options->process,
                                    .terms = options->terms};
    (void)dialer;
    (void)name;
    link->state = AGGREGATE_LINK_GREETING;
    link->heard_ms = link_now_ms(link);
    aggregate_link_send(link, &hello);
}

/* First nobody is routed here any more, then the calls are lost, so that a retry goes elsewhere. */
static void lose_link(struct aggregate_link *link)
{
    bool was_ready = link->state == AGGREGATE_LINK_READY;
    link->state = AGGREGATE_LINK_DOWN;
    link->is_available = false;
    for (struct list *at = link->calls.next; at != &link->calls; at = at->next) {
        struct aggregate_pending *pending = CONTAINER_OF(at, struct aggregate_pending, place);
        if (pending->has_slot)
            link->client->slots[pending->slot].unanswered--;
        pending->has_slot = false;
    }
    update_usable(link->client, false);
    aggregate_client_lose_calls(link);
    if (was_ready && !link->client->is_closed)
        log_warn("aggregator_lost", "address=%s usable=%zu",
                 log_quote(slice_of(link_address(link))), aggregate_client_usable(link->client));
}

static void on_aggregator_link_closed(struct peer_dialer *dialer, void *arg, const char *why)
{
    struct aggregate_link *link = arg;
    (void)dialer;
    (void)why;
    if (link->state != AGGREGATE_LINK_DOWN)
        lose_link(link);
}

static const struct peer_dialer_owner LINK_OWNER = {.on_opened = on_aggregator_link_opened,
                                                    .on_frame = on_aggregator_frame,
                                                    .on_closed = on_aggregator_link_closed};

/* ---- time ---- */

static bool has_overdue_call(const struct aggregate_link *link, int64_t now_ms)
{
    return !list_empty(&link->calls) &&
           now_ms - CONTAINER_OF(link->calls.next, struct aggregate_pending, place)->sent_ms >=
               AGGREGATE_CALL_LIMIT_MS;
}

/* A link that is given up is lost at once, not when its socket is closed. */
static void watch_link(struct aggregate_link *link, int64_t now_ms)
{
    const char *why = NULL;
    if (link->state == AGGREGATE_LINK_DOWN)
        return;
    if (now_ms - link->heard_ms >= AGGREGATE_SILENCE_MS)
        why = "the aggregator is silent";
    else if (has_overdue_call(link, now_ms))
        why = "the aggregator does not answer";
    if (why) {
        peer_dialer_cut(link->dialer, why);
        lose_link(link);
    } else {
        aggregate_link_send(link,
                            &(struct aggregate_frame){.kind = AGGREGATE_PING, .sent_ms = now_ms});
    }
}

/* What arrived while this process stood still is not read yet, so silence proves nothing then. */
static void on_links_tick(struct wheel_timer *timer)
{
    struct aggregate_client *client = CONTAINER_OF(timer, struct aggregate_client, tick);
    struct loop *loop = client->options.links.loop;
    int64_t now_ms = loop->clock.now_ms;
    bool stood_still = now_ms - client->ticked_ms >= STALL_MS;
    client->ticked_ms = now_ms;
    for (size_t i = 0; i < client->options.address_count; i++) {
        if (stood_still)
            client->links[i].heard_ms = now_ms;
        watch_link(&client->links[i], now_ms);
    }
    loop_set_timer(loop, timer, now_ms + AGGREGATE_PING_MS);
}

/* ---- life ---- */

bool aggregate_links_start(struct aggregate_client *client)
{
    struct loop *loop = client->options.links.loop;
    bool made = true;
    for (size_t i = 0; i < client->options.address_count; i++) {
        client->links[i].client = client;
        list_init(&client->links[i].calls);
    }
    for (unsigned slot = 0; slot < AGGREGATE_SLOTS; slot++)
        client->slots[slot].owner = AGGREGATE_NONE;
    for (size_t i = 0; i < client->options.address_count && made; i++) {
        struct aggregate_link *link = &client->links[i];
        link->dialer = peer_dialer_make(&client->options.links, client->options.addresses[i],
                                        &LINK_OWNER, link);
        made = link->dialer != NULL;
    }
    client->tick.fire = on_links_tick;
    client->ticked_ms = loop->clock.now_ms;
    loop_set_timer(loop, &client->tick, client->ticked_ms + AGGREGATE_PING_MS);
    return made;
}

void aggregate_links_drop(struct aggregate_client *client)
{
    loop_cancel_timer(client->options.links.loop, &client->tick);
    for (size_t i = 0; i < client->options.address_count; i++) {
        struct aggregate_link *link = &client->links[i];
        peer_dialer_drop(&link->dialer);
        if (link->client)
            lose_link(link);
    }
}

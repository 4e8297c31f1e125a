#include "ledger/remote/ledger_service.h"

#include "base/container.h"
#include "ledger/ledger_request_inbox.h"
#include "ledger/remote/ledger_wire.h"
#include "log/log.h"
#include "peer/pending_peers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ACCEPT_QUEUE_MAX = 1024,
    UNSENT_BYTES_MAX = 1 << 20,
    SWEEP_MS = 250,
    FRAME_BYTES_KEPT = 1 << 20
};

struct ledger_service {
    struct peer_link_options options;
    struct ledger_client client;
    struct ledger_request_inbox inbox;
    struct listener listener;
    struct list links;
    size_t link_count; /* authenticated links, until their last answer */
    struct pending_peers pending;
    struct wheel_timer sweep;
    struct ledger_service_counts counts; /* the totals; ledger_service_counts() fills in the rest */
    struct buffer frame;                 /* the answer that is being encoded */
    bool draining;
};

/* A link to another process. It lives until it is closed and all its requests are answered. */
struct service_peer {
    struct list place;
    struct ledger_service *service;
    struct peer_link *link; /* NULL: closed */
    struct pending_peer pending;
    bool is_counted; /* among the service's links */
    size_t unanswered;
    char name[PEER_NAME_BYTES_MAX + 1];
};

/* Where a request came from: its `arg`. */
struct request_origin {
    struct service_peer *peer;
    uint64_t id;
};

/* ---- links ---- */

static void free_service_peer_if_done(struct service_peer *peer)
{
    if (peer->link || peer->unanswered)
        return;
    list_remove(&peer->place);
    if (peer->is_counted)
        peer->service->link_count--;
    free(peer);
}

/* Pauses a link that is at a bound, and resumes it when both bounds are half empty. */
static void pause_or_resume_peer(struct service_peer *peer)
{
    size_t queued_bytes = peer_link_queued_bytes(peer->link);
    if (peer->service->draining || peer->unanswered >= LEDGER_SERVICE_LINK_REQUESTS_MAX ||
        queued_bytes >= LEDGER_SERVICE_LINK_BYTES_MAX)
        peer_link_pause(peer->link, true);
    else if (peer->unanswered <= LEDGER_SERVICE_LINK_REQUESTS_MAX / 2 &&
             queued_bytes <= LEDGER_SERVICE_LINK_BYTES_MAX / 2)
        peer_link_pause(peer->link, false);
}

static void on_service_link_opened(struct peer_link *link, void *arg, struct slice name)
{
    struct service_peer *peer = arg;
    struct ledger_service *service = peer->service;
    snprintf(peer->name, sizeof(peer->name), "%.*s", SLICE_FORMAT(name));
    pending_peers_remove(&service->pending, &peer->pending);
    if (service->link_count == LEDGER_SERVICE_LINKS_MAX) {
        peer_link_close(link, "there are too many links");
        return;
    }
    peer->is_counted = true;
    service->link_count++;
    service->counts.links_opened++;
    log_info("ledger_link_open", "peer=%s links=%zu", log_quote(name), service->link_count);
    pause_or_resume_peer(peer);
}

static void on_service_link_closed(struct peer_link *link, void *arg, const char *why)
{
    struct service_peer *peer = arg;
    (void)link;
    peer->link = NULL;
    pending_peers_remove(&peer->service->pending, &peer->pending);
    peer->service->counts.links_refused += !peer->is_counted;
    if (peer->is_counted)
        log_warn("ledger_link_closed", "peer=%s reason=%s unanswered=%zu",
                 log_quote(slice_of(peer->name)), log_sentence(slice_of(why)), peer->unanswered);
    else
        log_warn("ledger_link_refused", "peer=%s reason=%s", log_quote(slice_of(peer->name)),
                 log_sentence(slice_of(why)));
    free_service_peer_if_done(peer);
}

static void on_service_link_emptied(struct peer_link *link, void *arg)
{
    (void)link;
    pause_or_resume_peer(arg);
}

/* ---- answers ---- */

static void send_service_answer(struct service_peer *peer, uint64_t id,
                                struct ledger_request *request)
{
    struct buffer *frame = &peer->service->frame;
    buffer_clear(frame);
    ledger_wire_encode_answer(frame, id, request);
    struct slice piece = buffer_slice(frame);
    if (frame->failed || !peer_link_send(peer->link, &piece, 1)) {
        log_warn("ledger_answer_lost", "peer=%s operation=%s bytes=%zu",
                 log_quote(slice_of(peer->name)), ledger_request_operation_name(request->operation),
                 piece.len);
        peer_link_close(peer->link, "closed");
    }
    if (frame->cap > FRAME_BYTES_KEPT)
        buffer_free(frame);
}

static void on_service_requests_finished(void *arg, struct ledger_request *chain)
{
    struct ledger_service *service = arg;
    while (chain) {
        struct ledger_request *request = chain;
        struct request_origin *origin = request->arg;
        struct service_peer *peer = origin->peer;
        chain = request->next;
        ledger_request_detach(request);
        service->counts.answers[request->operation][request->outcome.any.status]++;
        peer->unanswered--;
        if (peer->link) {
            send_service_answer(peer, origin->id, request);
            pause_or_resume_peer(peer);
        }
        ledger_request_free(request);
        free_service_peer_if_done(peer);
    }
}

/* ---- requests ---- */

static void refuse_service_frame(struct service_peer *peer)
{
    peer->service->counts.frames_refused++;
    log_warn("ledger_frame_refused", "peer=%s reason=%s", log_quote(slice_of(peer->name)),
             log_sentence(slice_of("not a request of this version")));
    peer_link_close(peer->link, "closed");
}

static void take_service_request(struct service_peer *peer, const struct ledger_wire_head *head,
                                 struct slice body)
{
    struct ledger_service *service = peer->service;
    struct ledger_request *request = ledger_request_make(&service->client, head->operation, NULL);
    struct request_origin *origin = ledger_request_alloc(request, sizeof(*origin));
    bool understood = origin && ledger_wire_decode_input(request, body);
    if (request->exhausted) {
        ledger_request_fail(request, LEDGER_BUSY); /* it did not reach the ledger */
        service->counts.answers[request->operation][LEDGER_BUSY]++;
        send_service_answer(peer, head->id, request);
        if (!request->stands_in)
            ledger_request_free(request);
        return;
    }
    if (!understood) {
        ledger_request_free(request);
        refuse_service_frame(peer);
        return;
    }
    *origin = (struct request_origin){peer, head->id};
    request->arg = origin;
    request->wall_ms = head->wall_ms;
    peer->unanswered++;
    ledger_request_submit(request);
}

static void on_service_frame(struct peer_link *link, void *arg, struct slice frame)
{
    struct service_peer *peer = arg;
    struct ledger_wire_head head;
    struct slice body;
    (void)link;
    if (ledger_wire_decode_request_head(frame, &head, &body))
        take_service_request(peer, &head, body);
    else
        refuse_service_frame(peer);
    pause_or_resume_peer(peer);
}

static const struct peer_link_owner link_owner = {.on_opened = on_service_link_opened,
                                                  .on_frame = on_service_frame,
                                                  .on_closed = on_service_link_closed,
                                                  .on_emptied = on_service_link_emptied};

static void on_service_connection(void *arg, int fd)
{
    struct ledger_service *service = arg;
    struct service_peer *peer = service->draining ? NULL : calloc(1, sizeof(*peer));
    if (peer) {
        peer->service = service;
        peer->link = peer_link_accept(&service->options, fd, &link_owner, peer);
    }
    if (!peer || !peer->link) {
        free(peer);
        close(fd);
        return;
    }
    list_append(&service->links, &peer->place);
    pending_peers_add(&service->pending, &peer->pending, peer->link);
}

/* ---- time ---- */

/* Abandons overdue requests: the client in the other process has stopped waiting. */
static void on_service_sweep_due(struct wheel_timer *timer)
{
    struct ledger_service *service = CONTAINER_OF(timer, struct ledger_service, sweep);
    struct loop *loop = service->options.loop;
    const struct list *unanswered = &service->client.unanswered;
    for (struct list *at = unanswered->next; at != unanswered; at = at->next) {
        struct ledger_request *request = CONTAINER_OF(at, struct ledger_request, unanswered);
        if (request->deadline_ms > loop->clock.now_ms)
            break;
        atomic_store_explicit(&request->abandoned, true, memory_order_relaxed);
    }
    loop_set_timer(loop, &service->sweep, loop->clock.now_ms + SWEEP_MS);
}

/* ---- life ---- */

static bool start_service(struct ledger_service *service, const char *address,
                          char error[LISTENER_ERROR_TEXT_MAX])
{
    struct loop *loop = service->options.loop;
    struct listener_options listening = {.address = address,
                                         .accept_queue_max = ACCEPT_QUEUE_MAX,
                                         .unsent_bytes_max = UNSENT_BYTES_MAX};
    if (!listener_open(&service->listener, loop, &listening, on_service_connection, service, error))
        return false;
    if (!ledger_request_inbox_init(&service->inbox, loop, on_service_requests_finished, service)) {
        snprintf(error, LISTENER_ERROR_TEXT_MAX, "cannot create an eventfd");
        listener_close(&service->listener);
        return false;
    }
    return true;
}

struct ledger_service *ledger_service_open(const struct peer_link_options *options,
                                           struct ledger *ledger, const char *address,
                                           char error[LISTENER_ERROR_TEXT_MAX])
{
    struct ledger_service *service = calloc(1, sizeof(*service));
    if (!service) {
        snprintf(error, LISTENER_ERROR_TEXT_MAX, "out of memory");
        return NULL;
    }
    service->options = *options;
    list_init(&service->links);
    pending_peers_init(&service->pending, LEDGER_SERVICE_PENDING_MAX);
    ledger_client_init(&service->client, ledger, &options->loop->clock, ledger_request_inbox_post,
                       &service->inbox);
    if (!start_service(service, address, error)) {
        free(service);
        return NULL;
    }
    service->sweep.fire = on_service_sweep_due;
    loop_set_timer(options->loop, &service->sweep, options->loop->clock.now_ms + SWEEP_MS);
    return service;
}

uint16_t ledger_service_port(const struct ledger_service *service)
{
    return service->listener.port;
}

struct ledger_service_counts ledger_service_counts(const struct ledger_service *service)
{
    struct ledger_service_counts counts = service->counts;
    counts.links = service->link_count;
    counts.pending = service->pending.count;
    counts.pending_displaced = service->pending.displaced;
    counts.unanswered = service->client.outstanding;
    return counts;
}

void ledger_service_drain(struct ledger_service *service)
{
    service->draining = true;
    listener_close(&service->listener);
    for (struct list *at = service->links.next; at != &service->links; at = at->next) {
        struct service_peer *peer = CONTAINER_OF(at, struct service_peer, place);
        if (peer->link)
            pause_or_resume_peer(peer);
    }
}

bool ledger_service_is_drained(const struct ledger_service *service)
{
    if (service->client.outstanding)
        return false;
    for (const struct list *at = service->links.next; at != &service->links; at = at->next) {
        const struct service_peer *peer = CONTAINER_OF(at, struct service_peer, place);
        if (peer->link && peer_link_queued_bytes(peer->link))
            return false;
    }
    return true;
}

void ledger_service_free(struct ledger_service **service)
{
    struct ledger_service *freed = *service;
    *service = NULL;
    if (!freed)
        return;
    freed->draining = true;
    listener_close(&freed->listener);
    ledger_request_inbox_free(&freed->inbox);
    loop_cancel_timer(freed->options.loop, &freed->sweep);
    for (struct list *at = freed->links.next; at != &freed->links;) {
        struct service_peer *peer = CONTAINER_OF(at, struct service_peer, place);
        at = at->next;
        assert(!peer->unanswered); /* the ledger was closed before this */
        peer_link_drop(&peer->link);
        free(peer);
    }
    buffer_free(&freed->frame);
    free(freed);
}

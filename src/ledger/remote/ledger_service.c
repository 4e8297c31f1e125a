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

enum { BACKLOG = 1024, UNSENT_BYTES_MAX = 1 << 20, SWEEP_MS = 250, FRAME_BYTES_KEPT = 1 << 20 };

struct ledger_service {
    struct peer_link_options options;
    struct ledger_client client;
    struct ledger_request_inbox inbox;
    struct listener listener;
    struct list links;
    size_t link_count; /* that have proved themselves, until their last answer */
    struct pending_peers strangers;
    struct wheel_timer sweep;
    struct ledger_service_counts counts; /* what only grows; the rest is filled in when asked for */
    struct buffer frame;                 /* where answers are encoded, one at a time */
    bool draining;
};

/* Lives until it is closed and all it asked is answered. */
struct service_link {
    struct list place;
    struct ledger_service *service;
    struct peer_link *link; /* NULL: closed */
    struct pending_peer stranger;
    bool is_counted; /* among the service's links */
    size_t unanswered;
    char name[PEER_NAME_BYTES_MAX + 1];
};

/* What a request remembers of its asker. */
struct service_call {
    struct service_link *from;
    uint64_t id;
};

/* ---- links ---- */

static void release(struct service_link *from)
{
    if (from->link || from->unanswered)
        return;
    list_remove(&from->place);
    if (from->is_counted)
        from->service->link_count--;
    free(from);
}

static bool is_full(const struct service_link *from)
{
    return from->unanswered >= LEDGER_SERVICE_LINK_REQUESTS_MAX ||
           peer_link_queued_bytes(from->link) >= LEDGER_SERVICE_LINK_BYTES_MAX;
}

static bool has_halved(const struct service_link *from)
{
    return from->unanswered <= LEDGER_SERVICE_LINK_REQUESTS_MAX / 2 &&
           peer_link_queued_bytes(from->link) <= LEDGER_SERVICE_LINK_BYTES_MAX / 2;
}

static void steer(struct service_link *from)
{
    if (is_full(from) || from->service->draining)
        peer_link_pause(from->link, true);
    else if (has_halved(from))
        peer_link_pause(from->link, false);
}

static void opened(struct peer_link *link, void *arg, struct slice name)
{
    struct service_link *from = arg;
    struct ledger_service *service = from->service;
    snprintf(from->name, sizeof(from->name), "%.*s", SLICE_FORMAT(name));
    pending_peers_remove(&service->strangers, &from->stranger);
    if (service->link_count == LEDGER_SERVICE_LINKS_MAX) {
        peer_link_refuse(link, "there are too many links");
        return;
    }
    from->is_counted = true;
    service->link_count++;
    service->counts.links_opened++;
    log_info("ledger_link_open", "peer=%s links=%zu", log_quote(name), service->link_count);
    steer(from);
}

static void closed(struct peer_link *link, void *arg, const char *why)
{
    struct service_link *from = arg;
    (void)link;
    from->link = NULL;
    pending_peers_remove(&from->service->strangers, &from->stranger);
    from->service->counts.links_refused += !from->is_counted;
    if (from->is_counted)
        log_warn("ledger_link_closed", "peer=%s reason=%s unanswered=%zu",
                 log_quote(slice_of(from->name)), log_sentence(slice_of(why)), from->unanswered);
    else
        log_warn("ledger_link_refused", "peer=%s reason=%s", log_quote(slice_of(from->name)),
                 log_sentence(slice_of(why)));
    release(from);
}

static void drained(struct peer_link *link, void *arg)
{
    (void)link;
    steer(arg);
}

/* ---- answers ---- */

static void send_answer(struct service_link *from, uint64_t id, struct ledger_request *request)
{
    struct buffer *frame = &from->service->frame;
    buffer_clear(frame);
    ledger_wire_encode_answer(frame, id, request);
    struct slice piece = buffer_slice(frame);
    if (frame->failed || !peer_link_send(from->link, &piece, 1)) {
        log_warn("ledger_answer_lost", "peer=%s operation=%s bytes=%zu",
                 log_quote(slice_of(from->name)), ledger_request_name(request), piece.len);
        peer_link_close(from->link);
    }
    if (frame->cap > FRAME_BYTES_KEPT)
        buffer_free(frame);
}

static void count_answer(struct ledger_service *service, const struct ledger_request *request)
{
    service->counts.answers[request->operation][request->outcome.any.status]++;
}

static void answer(struct ledger_request *request)
{
    struct service_call *call = request->arg;
    struct service_link *from = call->from;
    ledger_request_detach(request);
    count_answer(from->service, request);
    from->unanswered--;
    if (from->link) {
        send_answer(from, call->id, request);
        steer(from);
    }
    ledger_request_free(request);
    release(from);
}

static void taken(void *arg, struct ledger_request *chain)
{
    (void)arg;
    while (chain) {
        struct ledger_request *next = chain->next;
        answer(chain);
        chain = next;
    }
}

/* ---- requests ---- */

static void refuse_frame(struct service_link *from)
{
    from->service->counts.frames_refused++;
    log_warn("ledger_frame_refused", "peer=%s reason=%s", log_quote(slice_of(from->name)),
             log_sentence(slice_of("not a request of this version")));
    peer_link_close(from->link);
}

/* Nothing reached the ledger. */
static void answer_busy(struct service_link *from, uint64_t id, struct ledger_request *request)
{
    ledger_request_fail(request, LEDGER_BUSY);
    count_answer(from->service, request);
    send_answer(from, id, request);
    if (!request->stands_in)
        ledger_request_free(request);
}

static void take_request(struct service_link *from, const struct ledger_wire_head *head,
                         struct slice body)
{
    struct ledger_service *service = from->service;
    struct ledger_request *request = ledger_request_make(&service->client, head->operation, NULL);
    struct service_call *call = ledger_request_alloc(request, sizeof(*call));
    bool understood = call && ledger_wire_decode_input(request, body);
    if (request->exhausted) {
        answer_busy(from, head->id, request);
        return;
    }
    if (!understood) {
        ledger_request_free(request);
        refuse_frame(from);
        return;
    }
    *call = (struct service_call){from, head->id};
    request->arg = call;
    request->wall_ms = head->wall_ms;
    from->unanswered++;
    ledger_request_submit(request);
}

static void received(struct peer_link *link, void *arg, struct slice frame)
{
    struct service_link *from = arg;
    struct ledger_wire_head head;
    struct slice body;
    (void)link;
    if (ledger_wire_decode_request_head(frame, &head, &body))
        take_request(from, &head, body);
    else
        refuse_frame(from);
    steer(from);
}

static const struct peer_link_owner link_owner = {opened, received, closed, drained};

static void accepted(void *arg, int fd)
{
    struct ledger_service *service = arg;
    struct service_link *from = service->draining ? NULL : calloc(1, sizeof(*from));
    if (from) {
        from->service = service;
        from->link = peer_link_accept(&service->options, fd, &link_owner, from);
    }
    if (!from || !from->link) {
        free(from);
        close(fd);
        return;
    }
    list_append(&service->links, &from->place);
    pending_peers_add(&service->strangers, &from->stranger, from->link);
}

/* ---- time ---- */

/* Whoever asked has stopped waiting by now. */
static void abandon_overdue(struct ledger_service *service)
{
    const struct list *unanswered = &service->client.unanswered;
    for (struct list *at = unanswered->next; at != unanswered; at = at->next) {
        struct ledger_request *request = CONTAINER_OF(at, struct ledger_request, unanswered);
        if (request->deadline_ms > service->options.loop->clock.now_ms)
            return;
        atomic_store_explicit(&request->abandoned, true, memory_order_relaxed);
    }
}

static void sweep(struct wheel_timer *timer)
{
    struct ledger_service *service = CONTAINER_OF(timer, struct ledger_service, sweep);
    struct loop *loop = service->options.loop;
    abandon_overdue(service);
    loop_set_timer(loop, &service->sweep, loop->clock.now_ms + SWEEP_MS);
}

/* ---- life ---- */

static bool start(struct ledger_service *service, const char *address,
                  char error[LISTENER_ERROR_TEXT_MAX])
{
    struct loop *loop = service->options.loop;
    struct listener_options listening = {
        .address = address, .backlog = BACKLOG, .unsent_bytes_max = UNSENT_BYTES_MAX};
    if (!listener_open(&service->listener, loop, &listening, accepted, service, error))
        return false;
    if (!ledger_request_inbox_init(&service->inbox, loop, taken, service)) {
        snprintf(error, LISTENER_ERROR_TEXT_MAX, "no event descriptor is to be had");
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
    pending_peers_init(&service->strangers, LEDGER_SERVICE_STRANGERS_MAX);
    ledger_client_init(&service->client, ledger, &options->loop->clock, ledger_request_inbox_post,
                       &service->inbox);
    if (!start(service, address, error)) {
        free(service);
        return NULL;
    }
    service->sweep.fire = sweep;
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
    counts.strangers = service->strangers.count;
    counts.strangers_displaced = service->strangers.displaced;
    counts.unanswered = service->client.outstanding;
    return counts;
}

void ledger_service_drain(struct ledger_service *service)
{
    service->draining = true;
    listener_close(&service->listener);
    for (struct list *at = service->links.next; at != &service->links; at = at->next) {
        struct service_link *from = CONTAINER_OF(at, struct service_link, place);
        if (from->link)
            steer(from);
    }
}

bool ledger_service_is_drained(const struct ledger_service *service)
{
    if (service->client.outstanding)
        return false;
    for (const struct list *at = service->links.next; at != &service->links; at = at->next) {
        const struct service_link *from = CONTAINER_OF(at, struct service_link, place);
        if (from->link && peer_link_queued_bytes(from->link))
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
        struct service_link *from = CONTAINER_OF(at, struct service_link, place);
        at = at->next;
        assert(!from->unanswered); /* the ledger was closed before */
        peer_link_drop(&from->link);
        free(from);
    }
    buffer_free(&freed->frame);
    free(freed);
}

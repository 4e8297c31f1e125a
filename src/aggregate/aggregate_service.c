#include "aggregate/aggregate_service.h"

#include "aggregate/aggregate_client.h"
#include "aggregate/aggregate_lateness.h"
#include "base/container.h"
#include "base/list.h"
#include "log/log.h"
#include "peer/pending_peers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ACCEPT_QUEUE_MAX = 4096, UNSENT_BYTES_MAX = 1 << 20, FRAME_BYTES_KEPT = 1 << 20 };

struct aggregate_service {
    struct aggregate_service_options options;
    struct listener listener;
    struct list sessions;
    size_t session_count; /* with a hello */
    size_t unanswered;    /* calls of all sessions */
    struct pending_peers pending;
    struct buffer frame; /* that is being encoded */
    bool is_available;
    bool is_draining;
};

/* A link of a gateway. It lives until it is closed and all its calls are answered. */
struct aggregate_session {
    struct list place;
    struct aggregate_service *service;
    struct peer_link *link; /* NULL: closed */
    struct pending_peer pending;
    void *kept; /* the owner's; NULL: no hello yet */
    size_t unanswered;
    struct aggregate_lateness lateness;
    char gateway[AGGREGATE_ID_BYTES_MAX + 1];
};

/* ---- sending ---- */

static bool send_to_session(struct aggregate_session *session, const struct aggregate_frame *frame)
{
    struct buffer *out = &session->service->frame;
    buffer_clear(out);
    aggregate_frame_write(out, frame);
    struct slice piece = buffer_slice(out);
    bool sent = !out->failed && peer_link_send(session->link, &piece, 1);
    if (out->cap > FRAME_BYTES_KEPT)
        buffer_free(out);
    return sent;
}

/* A gateway that does not get an answer must not wait for it. */
static void send_or_close(struct aggregate_session *session, const struct aggregate_frame *frame)
{
    if (session->link && !send_to_session(session, frame))
        peer_link_close(session->link, "an answer could not be sent");
}

void aggregate_session_notify(struct aggregate_session *session, enum aggregate_notice notice,
                              struct slice body)
{
    if (!session->link)
        return;
    if (peer_link_queued_bytes(session->link) >= AGGREGATE_SERVICE_NOTICE_BYTES_MAX)
        peer_link_close(session->link, "it does not read what it subscribed to");
    else
        send_or_close(session, &(struct aggregate_frame){
                                   .kind = AGGREGATE_NOTICE, .notice = notice, .body = body});
}

static void notify_all_sessions(struct aggregate_service *service, enum aggregate_notice notice)
{
    for (struct list *at = service->sessions.next; at != &service->sessions; at = at->next) {
        struct aggregate_session *session = CONTAINER_OF(at, struct aggregate_session, place);
        if (session->kept)
            aggregate_session_notify(session, notice, SLICE_NONE);
    }
}

struct slice aggregate_session_gateway(const struct aggregate_session *session)
{
    return slice_of(session->gateway);
}

/* ---- the life of a session ---- */

static void free_session_if_done(struct aggregate_session *session)
{
    if (session->link || session->unanswered)
        return;
    list_remove(&session->place);
    free(session);
}

/* Pauses a link that is at a bound, and resumes it when both bounds are half empty. */
static void pause_or_resume_session(struct aggregate_session *session)
{
    if (!session->link)
        return;
    size_t queued_bytes = peer_link_queued_bytes(session->link);
    if (session->unanswered >= AGGREGATE_SERVICE_LINK_CALLS_MAX ||
        queued_bytes >= AGGREGATE_SERVICE_LINK_BYTES_MAX)
        peer_link_pause(session->link, true);
    else if (session->unanswered <= AGGREGATE_SERVICE_LINK_CALLS_MAX / 2 &&
             queued_bytes <= AGGREGATE_SERVICE_LINK_BYTES_MAX / 2)
        peer_link_pause(session->link, false);
}

static void count_session(struct aggregate_service *service, int more)
{
    service->session_count += (size_t)more;
    metrics_set(service->options.metrics, METRIC_AGGREGATE_SESSIONS,
                (int64_t)service->session_count);
}

static void on_session_link_opened(struct peer_link *link, void *arg, struct slice name)
{
    struct aggregate_session *session = arg;
    (void)link;
    (void)name;
    pending_peers_remove(&session->service->pending, &session->pending);
}

static void end_session(struct aggregate_session *session)
{
    struct aggregate_service *service = session->service;
    void *kept = session->kept;
    session->kept = NULL;
    if (!kept)
        return;
    count_session(service, -1);
    service->options.owner->on_closed(service->options.arg, kept);
}

static void on_session_link_closed(struct peer_link *link, void *arg, const char *why)
{
    struct aggregate_session *session = arg;
    (void)link;
    session->link = NULL;
    pending_peers_remove(&session->service->pending, &session->pending);
    log_warn("gateway_link_closed", "gateway=%s reason=%s unanswered=%zu",
             log_quote(slice_of(session->gateway)), log_sentence(slice_of(why)),
             session->unanswered);
    session->unanswered++; /* keeps the session while its owner lets go of it */
    end_session(session);
    session->unanswered--;
    free_session_if_done(session);
}

static void on_session_link_emptied(struct peer_link *link, void *arg)
{
    (void)link;
    pause_or_resume_session(arg);
}

/* ---- hello ---- */

static void refuse_session(struct aggregate_session *session, const char *reason)
{
    log_error("gateway_refused", "gateway=%s reason=%s", log_quote(slice_of(session->gateway)),
              log_sentence(slice_of(reason)));
    send_to_session(
        session, &(struct aggregate_frame){.kind = AGGREGATE_REFUSAL, .reason = slice_of(reason)});
}

/* Writes why a hello is refused. Returns false when it is not. */
static bool find_refusal(const struct aggregate_service *service,
                         const struct aggregate_frame *hello,
                         char reason[AGGREGATE_REASON_BYTES_MAX])
{
    if (hello->version != AGGREGATE_VERSION) {
        snprintf(reason, AGGREGATE_REASON_BYTES_MAX,
                 "the gateway speaks version %llu of the protocol, the aggregator %d",
                 (unsigned long long)hello->version, AGGREGATE_VERSION);
        return true;
    }
    if (service->session_count < AGGREGATE_SERVICE_LINKS_MAX)
        return false;
    snprintf(reason, AGGREGATE_REASON_BYTES_MAX, "there are too many links");
    return true;
}

/* The gateway's leases keep its own window and grace; what all gateways share has the aggregator's settings. */
static void warn_of_other_terms(const struct aggregate_session *session,
                                const struct aggregate_terms *terms)
{
    for (size_t i = 0; i < AGGREGATE_TERM_COUNT; i++) {
        int64_t theirs = terms->values[i], ours = session->service->options.terms.values[i];
        if (theirs != ours)
            log_warn("gateway_setting_differs", "gateway=%s setting=%s gateway_has=%lld has=%lld",
                     log_quote(slice_of(session->gateway)), aggregate_term_name(i),
                     (long long)theirs, (long long)ours);
    }
}

static void take_hello(struct aggregate_session *session, const struct aggregate_frame *hello)
{
    struct aggregate_service *service = session->service;
    char reason[AGGREGATE_REASON_BYTES_MAX];
    snprintf(session->gateway, sizeof(session->gateway), "%.*s", SLICE_FORMAT(hello->gateway_id));
    if (find_refusal(service, hello, reason)) {
        refuse_session(session, reason);
        return;
    }
    session->kept = service->options.owner->on_opened(service->options.arg, session, hello);
    if (!session->kept) {
        refuse_session(session, "out of memory");
        return;
    }
    count_session(service, 1);
    warn_of_other_terms(session, &hello->terms);
    log_info("gateway_link_open", "gateway=%s sessions=%zu", log_quote(slice_of(session->gateway)),
             service->session_count);
    send_or_close(session, &(struct aggregate_frame){.kind = AGGREGATE_WELCOME,
                                                     .version = AGGREGATE_VERSION,
                                                     .is_available = service->is_available});
    if (service->is_draining)
        aggregate_session_notify(session, AGGREGATE_LEAVING, SLICE_NONE);
}

/* ---- calls ---- */

static void finish_served(struct aggregate_served *served, const struct aggregate_frame *frame)
{
    struct aggregate_session *session = served->session;
    send_or_close(session, frame);
    session->unanswered--;
    session->service->unanswered--;
    free(served);
    pause_or_resume_session(session);
    free_session_if_done(session);
}

void aggregate_served_answer(struct aggregate_served *served, struct slice body)
{
    finish_served(served, &(struct aggregate_frame){
                              .kind = AGGREGATE_ANSWER, .id = served->id, .body = body});
}

void aggregate_served_undone(struct aggregate_served *served)
{
    metrics_count(served->session->service->options.metrics, METRIC_AGGREGATE_CALLS_UNDONE);
    finish_served(served, &(struct aggregate_frame){.kind = AGGREGATE_UNDONE, .id = served->id});
}

static void refuse_session_frame(struct aggregate_session *session)
{
    metrics_count(session->service->options.metrics, METRIC_AGGREGATE_FRAMES_REFUSED);
    peer_link_close(session->link, "it sent a frame that is none of this version");
}

static void serve_call(struct aggregate_session *session, const struct aggregate_frame *frame,
                       bool is_late)
{
    struct aggregate_service *service = session->service;
    struct aggregate_served *served = malloc(sizeof(*served));
    if (!served) {
        send_or_close(session,
                      &(struct aggregate_frame){.kind = AGGREGATE_UNDONE, .id = frame->id});
        return;
    }
    *served = (struct aggregate_served){session, frame->id, frame->operation};
    session->unanswered++;
    service->unanswered++;
    metrics_count(service->options.metrics, METRIC_AGGREGATE_SERVED);
    if (is_late) {
        aggregate_served_undone(served);
        return;
    }
    session->unanswered++; /* an answer may come at once, and close the link */
    if (!service->options.owner->on_call(service->options.arg, session->kept, served,
                                         frame->body)) {
        refuse_session_frame(session);
        aggregate_served_undone(served);
    }
    session->unanswered--;
    pause_or_resume_session(session);
}

static void on_session_frame(struct peer_link *link, void *arg, struct slice bytes)
{
    struct aggregate_session *session = arg;
    struct aggregate_frame frame;
    bool read = aggregate_frame_read(bytes, &frame);
    int64_t now_ms = session->service->options.links.loop->clock.now_ms;
    (void)link;
    if (read && frame.kind == AGGREGATE_HELLO && !session->kept) {
        take_hello(session, &frame);
    } else if (read && frame.kind == AGGREGATE_PING && session->kept) {
        aggregate_lateness_note(&session->lateness, frame.sent_ms, now_ms);
        send_or_close(session, &(struct aggregate_frame){.kind = AGGREGATE_PONG});
    } else if (read && frame.kind == AGGREGATE_CALL && session->kept) {
        serve_call(session, &frame,
                   aggregate_lateness_note(&session->lateness, frame.sent_ms, now_ms) >=
                       AGGREGATE_SILENCE_MS);
    } else {
        refuse_session_frame(session);
    }
}

/* ---- the listener ---- */

static const struct peer_link_owner SESSION_LINK_OWNER = {.on_opened = on_session_link_opened,
                                                          .on_frame = on_session_frame,
                                                          .on_closed = on_session_link_closed,
                                                          .on_emptied = on_session_link_emptied};

static void on_aggregate_connection(void *arg, int fd)
{
    struct aggregate_service *service = arg;
    struct aggregate_session *session = service->is_draining ? NULL : calloc(1, sizeof(*session));
    if (session) {
        session->service = service;
        session->link = peer_link_accept(&service->options.links, fd, &SESSION_LINK_OWNER, session);
    }
    if (!session || !session->link) {
        free(session);
        close(fd);
        return;
    }
    list_append(&service->sessions, &session->place);
    pending_peers_add(&service->pending, &session->pending, session->link);
}

/* ---- life ---- */

struct aggregate_service *aggregate_service_open(const struct aggregate_service_options *options,
                                                 char error[LISTENER_ERROR_TEXT_MAX])
{
    struct aggregate_service *service = calloc(1, sizeof(*service));
    struct listener_options listening = {.address = options->address,
                                         .accept_queue_max = ACCEPT_QUEUE_MAX,
                                         .unsent_bytes_max = UNSENT_BYTES_MAX};
    if (!service) {
        snprintf(error, LISTENER_ERROR_TEXT_MAX, "out of memory");
        return NULL;
    }
    service->options = *options;
    list_init(&service->sessions);
    pending_peers_init(&service->pending, AGGREGATE_SERVICE_PENDING_MAX);
    if (listener_open(&service->listener, options->links.loop, &listening, on_aggregate_connection,
                      service, error))
        return service;
    free(service);
    return NULL;
}

uint16_t aggregate_service_port(const struct aggregate_service *service)
{
    return service->listener.port;
}

void aggregate_service_set_available(struct aggregate_service *service, bool available)
{
    if (service->is_available == available)
        return;
    service->is_available = available;
    notify_all_sessions(service, available ? AGGREGATE_AVAILABLE : AGGREGATE_UNAVAILABLE);
}

void aggregate_service_drain(struct aggregate_service *service)
{
    service->is_draining = true;
    listener_close(&service->listener);
    notify_all_sessions(service, AGGREGATE_LEAVING);
}

bool aggregate_service_is_drained(const struct aggregate_service *service)
{
    if (service->unanswered)
        return false;
    for (const struct list *at = service->sessions.next; at != &service->sessions; at = at->next) {
        const struct aggregate_session *session =
            CONTAINER_OF(at, const struct aggregate_session, place);
        if (session->link && peer_link_queued_bytes(session->link))
            return false;
    }
    return true;
}

void aggregate_service_free(struct aggregate_service **service)
{
    struct aggregate_service *freed = *service;
    *service = NULL;
    if (!freed)
        return;
    freed->is_draining = true;
    listener_close(&freed->listener);
    for (struct list *at = freed->sessions.next; at != &freed->sessions;) {
        struct aggregate_session *session = CONTAINER_OF(at, struct aggregate_session, place);
        at = at->next;
        peer_link_drop(&session->link);
        session->unanswered++;
        end_session(session);
        session->unanswered--;
        assert(!session->unanswered); /* the stores were closed before this */
        list_remove(&session->place);
        free(session);
    }
    buffer_free(&freed->frame);
    free(freed);
}

#include "webhooks/webhook_lane.h"

#include "base/backoff.h"
#include "base/container.h"
#include "log/log.h"

#include <xxhash.h>

enum { HELD_SLOTS = 1024, OK_MIN = 200, OK_MAX = 299, MS_PER_SECOND = 1000, HEADERS_MAX = 6 };

#define BATCH_ID_PREFIX "batch_"

static struct webhook_event *lane_event_of(struct list *item)
{
    return CONTAINER_OF(item, struct webhook_event, item);
}

static void on_lane_timer(struct wheel_timer *timer)
{
    webhook_lane_pump(CONTAINER_OF(timer, struct webhook_lane, timer));
}

void webhook_lane_init(struct webhook_lane *lane, const struct webhook_lane_parts *parts)
{
    *lane = (struct webhook_lane){.parts = *parts,
                                  .batch_limit = parts->config->webhooks.batch_max,
                                  .timer.fire = on_lane_timer};
    list_init(&lane->events);
}

void webhook_lane_open(struct webhook_lane *lane)
{
    lane->is_open = true;
    lane->opened_at_wall_ms = lane->parts.loop->clock.wall_ms;
    lane->failures = 0;
    lane->wait_until_ms = 0;
    lane->taken_at_ms = lane->parts.loop->clock.now_ms;
}

void webhook_lane_add(struct webhook_lane *lane, struct webhook_event *event, struct list *after)
{
    list_append(after->next, &event->item); /* before the next one */
    lane->count++;
}

void webhook_lane_detach(struct webhook_lane *lane, struct webhook_event *event)
{
    list_remove(&event->item);
    lane->count--;
}

int64_t webhook_lane_oldest_ms(const struct webhook_lane *lane)
{
    return list_empty(&lane->events) ? 0 : lane_event_of(lane->events.next)->time_ms;
}

void webhook_lane_close(struct webhook_lane *lane)
{
    struct list *at = lane->events.next;
    lane->is_open = false;
    loop_cancel_timer(lane->parts.loop, &lane->timer);
    while (at != &lane->events) {
        struct webhook_event *event = lane_event_of(at);
        at = at->next;
        if (event->state == WEBHOOK_EVENT_IN_FLIGHT || event->state == WEBHOOK_EVENT_RESOLVING)
            continue;
        webhook_lane_detach(lane, event);
        webhook_event_free(&event);
    }
}

void webhook_lane_free(struct webhook_lane *lane)
{
    while (!list_empty(&lane->events)) {
        struct webhook_event *event = lane_event_of(lane->events.next);
        webhook_event_free(&event);
    }
}

/* ---- choosing ---- */

/* Returns whether the event must be read again before it is sent. */
static bool is_event_stale(const struct webhook_lane *lane, const struct webhook_event *event)
{
    int64_t age_ms = lane->parts.loop->clock.now_ms - event->read_at_ms;
    return event->body.len && age_ms > WEBHOOK_READ_AGE_MAX_MS;
}

/* Chooses the first events that may be sent now, in order: behind one that has to wait, those of the same subject wait too. Subjects are
 * told apart by a few bits of their hash, so some wait without need. Returns when to look again. */
static int64_t choose_batch(struct webhook_lane *lane)
{
    bool held[HELD_SLOTS] = {false};
    int64_t now_ms = lane->parts.loop->clock.now_ms, look_at_ms = INT64_MAX;
    size_t bytes = 0;
    lane->in_flight_count = 0;
    lane->must_read = false;
    for (struct list *at = lane->events.next; at != &lane->events; at = at->next) {
        struct webhook_event *event = lane_event_of(at);
        bool *holds = &held[event->order_hash % HELD_SLOTS];
        if (*holds || event->state >= WEBHOOK_EVENT_TAKEN)
            continue;
        if (event->state != WEBHOOK_EVENT_READY || event->due_at_ms > now_ms) {
            *holds = true;
            if (event->state == WEBHOOK_EVENT_READY && event->due_at_ms < look_at_ms)
                look_at_ms = event->due_at_ms;
            continue;
        }
        if (event->failures && lane->in_flight_count > 0) {
            *holds = true; /* it goes alone, with the next request */
            continue;
        }
        if (is_event_stale(lane, event)) {
            *holds = lane->must_read = true;
            continue;
        }
        bytes += event->data.len + event->body.len;
        if (lane->in_flight_count == lane->batch_limit ||
            (lane->in_flight_count && bytes > WEBHOOK_BATCH_BYTES_MAX))
            break;
        lane->in_flight[lane->in_flight_count++] = event;
        if (event->failures)
            break;
    }
    return look_at_ms;
}

/* Returns until when the chosen batch waits for more events. */
static int64_t get_gathering_end_ms(const struct webhook_lane *lane)
{
    const struct config *config = lane->parts.config;
    if (!lane->parts.gathers || lane->in_flight_count >= lane->batch_limit)
        return 0;
    return lane->in_flight[0]->added_at_ms + config->webhooks.batch_ms;
}

/* ---- sending ---- */

static void write_batch_body(struct buffer *body, const struct webhook_lane *lane)
{
    buffer_append_text(body, "{\"events\":[");
    for (size_t i = 0; i < lane->in_flight_count; i++)
        webhook_event_write(body, lane->in_flight[i]);
    buffer_append_text(body, "]}");
}

/* The same batch has the same id at every try. */
static struct slice write_batch_id(char out[64], struct slice body)
{
    int len = snprintf(out, 64, BATCH_ID_PREFIX "%016llx",
                       (unsigned long long)XXH3_64bits(body.data, body.len));
    return (struct slice){out, (size_t)len};
}

static void on_batch_answered(void *arg, const struct http_client_response *response);

static bool send_batch_body(struct webhook_lane *lane, struct slice body)
{
    const struct webhook_lane_parts *parts = &lane->parts;
    const struct config *config = parts->config;
    struct webhook_headers signature;
    char id[64];
    if (!webhook_sign(&signature, &parts->endpoint->secret, write_batch_id(id, body),
                      parts->loop->clock.wall_ms / MS_PER_SECOND, body))
        return false;
    const char *headers[HEADERS_MAX] = {"Content-Type: application/json",
                                        "User-Agent: rollcall/" ROLLCALL_VERSION, signature.id,
                                        signature.timestamp};
    if (signature.signature[0])
        headers[4] = signature.signature;
    struct http_client_request request = {
        .method = "POST",
        .url = parts->endpoint->url,
        .headers = headers,
        .body = body,
        .ca_file = config->webhooks.ca_file[0] ? config->webhooks.ca_file : NULL,
        .time_limit_ms = config->webhooks.timeout_ms,
        .body_bytes_max = WEBHOOK_ANSWER_BYTES_MAX,
    };
    return http_client_send(parts->client, &request, on_batch_answered, lane);
}

/* Without memory or a place among the requests it is tried again soon. */
static void send_batch_of_lane(struct webhook_lane *lane)
{
    struct buffer body = BUFFER_INIT;
    write_batch_body(&body, lane);
    bool sent = !body.failed && send_batch_body(lane, buffer_slice(&body));
    buffer_free(&body);
    for (size_t i = 0; sent && i < lane->in_flight_count; i++)
        lane->in_flight[i]->state = WEBHOOK_EVENT_IN_FLIGHT;
    if (sent)
        return;
    lane->in_flight_count = 0;
    lane->wait_until_ms = lane->parts.loop->clock.now_ms + WEBHOOK_BACKOFF_MIN_MS;
    loop_set_timer(lane->parts.loop, &lane->timer, lane->wait_until_ms);
}

void webhook_lane_pump(struct webhook_lane *lane)
{
    struct loop *loop = lane->parts.loop;
    int64_t now_ms = loop->clock.now_ms;
    if (!lane->is_open || lane->in_flight_count > 0)
        return;
    int64_t look_at_ms = lane->wait_until_ms;
    if (look_at_ms <= now_ms) {
        look_at_ms = choose_batch(lane);
        int64_t gathers_until_ms = lane->in_flight_count ? get_gathering_end_ms(lane) : INT64_MAX;
        if (gathers_until_ms <= now_ms) {
            send_batch_of_lane(lane);
            return;
        }
        lane->in_flight_count = 0;
        if (gathers_until_ms < look_at_ms)
            look_at_ms = gathers_until_ms;
    }
    if (look_at_ms != INT64_MAX)
        loop_set_timer(loop, &lane->timer, look_at_ms);
}

/* ---- answers ---- */

static void take_batch(struct webhook_lane *lane)
{
    const struct webhook_lane_parts *parts = &lane->parts;
    uint32_t batch_max = parts->config->webhooks.batch_max;
    size_t count = lane->in_flight_count;
    metrics_add(parts->metrics, METRIC_WEBHOOKS_SENT, (int64_t)count);
    if (lane->failures)
        log_info("webhook_endpoint_recovered", "queue=%s failures=%u", parts->endpoint->queue,
                 lane->failures);
    lane->failures = 0;
    lane->wait_until_ms = 0;
    lane->taken_at_ms = parts->loop->clock.now_ms;
    lane->batch_limit = lane->batch_limit * 2 < batch_max ? lane->batch_limit * 2 : batch_max;
    lane->in_flight_count = 0;
    for (size_t i = 0; i < count; i++) {
        lane->in_flight[i]->state = WEBHOOK_EVENT_TAKEN;
        parts->on_taken(parts->arg, lane->in_flight[i]);
    }
}

/* Gives up what is too old, whether it was in this batch or not: its endpoint has failed just now. */
static void give_up_old_events(struct webhook_lane *lane)
{
    const struct webhook_lane_parts *parts = &lane->parts;
    int64_t now_ms = parts->loop->clock.wall_ms;
    struct list *at = lane->events.next;
    while (at != &lane->events) {
        struct webhook_event *event = lane_event_of(at);
        int64_t since_ms =
            event->time_ms > lane->opened_at_wall_ms ? event->time_ms : lane->opened_at_wall_ms;
        at = at->next;
        if (event->state != WEBHOOK_EVENT_READY ||
            now_ms - since_ms < parts->config->webhooks.give_up_ms)
            continue;
        event->state = WEBHOOK_EVENT_GIVEN_UP;
        parts->on_given_up(parts->arg, event);
    }
}

/* An event that its endpoint has refused alone is tried later, and the others go on. Returns whether it was refused before. */
static bool postpone_event(struct webhook_lane *lane, struct webhook_event *event)
{
    event->due_at_ms =
        lane->parts.loop->clock.now_ms + backoff_ms(lane->parts.random, event->failures,
                                                    WEBHOOK_BACKOFF_MIN_MS, WEBHOOK_BACKOFF_MAX_MS);
    return event->failures++ > 0;
}

static void pause_lane(struct webhook_lane *lane)
{
    int64_t now_ms = lane->parts.loop->clock.now_ms;
    bool is_alive = now_ms - lane->taken_at_ms < WEBHOOK_BACKOFF_MAX_MS;
    lane->wait_until_ms =
        now_ms + backoff_ms(lane->parts.random, lane->failures++, WEBHOOK_BACKOFF_MIN_MS,
                            is_alive ? WEBHOOK_BACKOFF_ALIVE_MS : WEBHOOK_BACKOFF_MAX_MS);
}

static void retry_batch(struct webhook_lane *lane, const struct http_client_response *response)
{
    const struct webhook_lane_parts *parts = &lane->parts;
    size_t count = lane->in_flight_count;
    bool is_known = false;
    metrics_count(parts->metrics, METRIC_WEBHOOKS_FAILED);
    metrics_add(parts->metrics, METRIC_WEBHOOKS_RETRIED, (int64_t)count);
    log_warn("webhook_failed", "queue=%s events=%zu status=%u error=%s failures=%u",
             parts->endpoint->queue, count, response->status,
             log_sentence(slice_of(response->error ? response->error : "")), lane->failures + 1);
    for (size_t i = 0; i < count; i++)
        lane->in_flight[i]->state = WEBHOOK_EVENT_READY;
    lane->in_flight_count = 0;
    if (response->status && count == 1)
        is_known = postpone_event(lane, lane->in_flight[0]);
    else if (response->status)
        lane->batch_limit = (uint32_t)(count / 2);
    if (!is_known || lane->failures > 1) /* else others were taken meanwhile */
        pause_lane(lane);
    give_up_old_events(lane);
}

static void on_batch_answered(void *arg, const struct http_client_response *response)
{
    struct webhook_lane *lane = arg;
    if (response->status >= OK_MIN && response->status <= OK_MAX)
        take_batch(lane);
    else
        retry_batch(lane, response);
    if (!lane->is_open)
        webhook_lane_close(lane); /* frees what was in flight */
    if (lane->parts.on_settled)
        lane->parts.on_settled(lane->parts.arg);
    webhook_lane_pump(lane);
}

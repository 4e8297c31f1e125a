/*
 * A lane: events in order on their way to one endpoint, one request at a time.
 *
 *     webhook_lane_add() ──► READY ──batch──► IN_FLIGHT ──2xx──► on_taken()
 *                              ▲                  └──anything else──► READY, after a back-off
 *                              └─ older than the time to give up, at a failure ──► on_given_up()
 *
 * A batch has the first events that are due, at most `batch_max` and WEBHOOK_BATCH_BYTES_MAX, and is sent when it is full, or when its
 * first event has waited for `batch_ms`. A failed batch that was answered is tried again in halves, so that an event that its endpoint refuses is
 * found: it is then tried alone, with a back-off of its own, and holds up only the events of its own chat or user. While an endpoint
 * gives no answer, the whole lane waits. So events of one subject are taken in their order, whatever fails.
 *
 * An event whose message was read more than WEBHOOK_READ_AGE_MAX_MS ago waits until it was read again (`must_read`), so that the body
 * of a message that was deleted meanwhile does not leave.
 *
 * The lane owns the events it has; its owner gets them back with on_taken() and on_given_up(), frees them or keeps them. One thread.
 */
#ifndef ROLLCALL_WEBHOOKS_WEBHOOK_LANE_H
#define ROLLCALL_WEBHOOKS_WEBHOOK_LANE_H

#include "base/random.h"
#include "config/config.h"
#include "http_client/http_client.h"
#include "metrics/metrics.h"
#include "webhooks/webhook_endpoints.h"
#include "webhooks/webhook_event.h"

enum {
    WEBHOOK_BATCH_BYTES_MAX = 1024 * 1024, /* of one request's body; a larger event goes alone */
    WEBHOOK_BATCH_EVENTS_MAX = 1000,
    WEBHOOK_ANSWER_BYTES_MAX = 64 * 1024,
    WEBHOOK_READ_AGE_MAX_MS = 5000,
    WEBHOOK_BACKOFF_MIN_MS = 500,
    WEBHOOK_BACKOFF_MAX_MS = 60000,
    WEBHOOK_BACKOFF_ALIVE_MS =
        2000, /* instead, if the endpoint has taken something within the last minute */
};

/* Gives an event back, detached from the lane. */
typedef void (*webhook_lane_hook)(void *arg, struct webhook_event *event);

/* Borrowed for the life of the lane. */
struct webhook_lane_parts {
    const struct config *config;
    const struct webhook_endpoint *endpoint;
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct http_client *client;
    webhook_lane_hook on_taken;
    webhook_lane_hook on_given_up;
    void (*on_settled)(void *arg); /* after the hooks of one answer; may be NULL */
    void *arg;
    bool gathers; /* waits batch_ms for more events; else its owner has gathered them */
};

struct webhook_lane {
    struct webhook_lane_parts parts;
    struct list events; /* in order */
    size_t count;
    int64_t opened_at_wall_ms; /* giving up is not counted from before */
    bool is_open;
    struct webhook_event *in_flight[WEBHOOK_BATCH_EVENTS_MAX];
    size_t in_flight_count;
    unsigned failures;   /* requests in a row */
    int64_t taken_at_ms; /* the last request that succeeded, or the opening */
    uint32_t batch_limit;
    int64_t wait_until_ms;
    bool must_read; /* an event is due whose message was read too long ago */
    struct wheel_timer timer;
};

void webhook_lane_init(struct webhook_lane *lane, const struct webhook_lane_parts *parts);

/* Starts sending. */
void webhook_lane_open(struct webhook_lane *lane);

/* Sends nothing more and frees all events but those in flight, whose answer is still heard. */
void webhook_lane_close(struct webhook_lane *lane);

/* Takes the event: behind `after`, which is one of the lane's items or its head. */
void webhook_lane_add(struct webhook_lane *lane, struct webhook_event *event, struct list *after);

/* Sends what is due. Call it after events were added, or have become ready. */
void webhook_lane_pump(struct webhook_lane *lane);

/* Detaches an event that is not in flight. */
void webhook_lane_detach(struct webhook_lane *lane, struct webhook_event *event);

/* Returns when the oldest event happened (wall clock); 0: there is none. */
int64_t webhook_lane_oldest_ms(const struct webhook_lane *lane);

/* The loop and the HTTP client make no more turns. */
void webhook_lane_free(struct webhook_lane *lane);

#endif

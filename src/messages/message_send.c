#include "messages/message_send.h"

#include "log/log.h"

#include <stdlib.h>

/* The wait after a failure of unknown length. */
enum { RETRY_AFTER_DEFAULT_MS = 1000 };

/* A send under way. */
struct send {
    struct message_plane *plane;
    message_send_done done;
    void *arg;
    struct message_ack ack;
    struct feed_event event;
    char message_id[LEDGER_ID_BYTES_MAX];
    int64_t started_us;
    int64_t stored_us;
    int64_t deadline_ms;
    char bytes[];
};

static struct message_send_result make_send_failure(struct slice client_message_id,
                                                    enum error_code code, const char *text,
                                                    int64_t retry_after_ms)
{
    return (struct message_send_result){.error = {.code = code,
                                                  .text = text,
                                                  .client_message_id = client_message_id,
                                                  .retry_after_ms = retry_after_ms,
                                                  .grace_period_ms = -1}};
}

static void end_send(struct send *send, const struct message_send_result *result)
{
    send->plane->sends--;
    send->done(send->arg, result);
    free(send);
}

static void fail_send(struct send *send, enum error_code code, const char *text,
                      int64_t retry_after_ms)
{
    struct message_send_result result =
        make_send_failure(send->ack.client_message_id, code, text, retry_after_ms);
    end_send(send, &result);
}

static void fail_send_for_now(struct send *send, const char *text)
{
    metrics_count(send->plane->metrics, METRIC_SENDS_FAILED);
    int64_t known_ms = send->plane->stopped ? 0 : ledger_retry_after_ms(send->plane->ledger);
    fail_send(send, ERROR_SERVICE_UNAVAILABLE, text, known_ms ? known_ms : RETRY_AFTER_DEFAULT_MS);
}

/* ---- publishing ---- */

static void on_send_published(void *arg, bool published)
{
    struct send *send = arg;
    struct message_plane *plane = send->plane;
    metrics_latency(plane->metrics, LATENCY_PUBLISH, clock_microseconds() - send->stored_us);
    if (!published) {
        fail_send_for_now(send, "the message is stored but could not be published; send it again");
        return;
    }
    if (plane->on_sent)
        plane->on_sent(plane->on_sent_arg, send->ack.chat_id, send->event.sender);
    struct message_send_result result = {.accepted = true, .ack = send->ack};
    end_send(send, &result);
}

static void publish_send(struct send *send)
{
    if (send->plane->stopped)
        fail_send_for_now(send, "the server is stopping; send it again");
    else
        feed_publish(send->plane->feed, &send->event, send->deadline_ms, on_send_published, send);
}

static void on_first_send_read(void *arg, const struct ledger_messages_outcome *outcome)
{
    struct send *send = arg;
    if (outcome->status != LEDGER_OK || outcome->count != 1) {
        fail_send_for_now(send, "the message is stored but could not be published; send it again");
        return;
    }
    send->event.body = outcome->messages[0].body;
    publish_send(send);
}

/* ---- storing ---- */

static void continue_stored_send(struct send *send, const struct ledger_append_outcome *outcome)
{
    struct metrics *metrics = send->plane->metrics;
    struct slice message_id = {send->message_id, outcome->message_id.len};
    memcpy(send->message_id, outcome->message_id.data, outcome->message_id.len);
    send->ack.message_id = message_id;
    send->ack.sequence = (int64_t)outcome->sequence;
    send->ack.duplicate = outcome->duplicate;
    send->ack.body_differs = outcome->body_differs;
    send->event.message_id = message_id;
    send->event.sequence = outcome->sequence;
    send->event.sent_at_ms = outcome->sent_at_ms;
    send->event.members_version = outcome->members_version;
    send->stored_us = clock_microseconds();
    metrics_count(metrics,
                  outcome->duplicate ? METRIC_IDEMPOTENCY_HITS : METRIC_MESSAGES_PERSISTED);
    if (!outcome->duplicate) {
        metrics_latency(metrics, LATENCY_PERSIST, send->stored_us - send->started_us);
        publish_send(send);
    } else if (outcome->published && send->plane->feed->uses_outbox) {
        end_send(send, &(struct message_send_result){.accepted = true, .ack = send->ack});
    } else if (send->plane->stopped) {
        fail_send_for_now(send, "the server is stopping; send it again");
    } else {
        /* The repetition may have another body, so publish the body of the first send. */
        ledger_messages_after(send->plane->ledger, send->ack.chat_id, SLICE_NONE,
                              send->event.sequence - 1, 1, on_first_send_read, send);
    }
}

static void on_message_appended(void *arg, const struct ledger_append_outcome *outcome)
{
    struct send *send = arg;
    switch (outcome->status) {
    case LEDGER_OK:
        continue_stored_send(send, outcome);
        break;
    case LEDGER_NOT_FOUND:
        fail_send(send, ERROR_NOT_FOUND, "there is no such chat", -1);
        break;
    case LEDGER_FORBIDDEN:
        fail_send(send, ERROR_FORBIDDEN, "you may not send to this chat", -1);
        break;
    case LEDGER_HALTED:
        metrics_count(send->plane->metrics, METRIC_COUNTER_CORRUPTION);
        log_error("chat_halted", "chat=%s", log_quote(send->ack.chat_id));
        fail_send(send, ERROR_CHAT_HALTED, "the chat is halted until an operator repairs it", -1);
        break;
    case LEDGER_BUSY:
        metrics_count(send->plane->metrics, METRIC_SENDS_FAILED);
        fail_send(send, ERROR_SERVER_BUSY, "too many messages are waiting to be stored",
                  RETRY_AFTER_DEFAULT_MS);
        break;
    case LEDGER_INVALID:
    case LEDGER_LIMIT:
    case LEDGER_CONFLICT:
        fail_send(send, ERROR_INVALID_MESSAGE, "the ledger refused this message", -1);
        break;
    default:
        fail_send_for_now(send, "the message could not be stored; send it again");
        break;
    }
}

/* ---- starting ---- */

static struct send *make_send(struct message_plane *plane, const struct message_send_order *order)
{
    size_t bytes =
        order->chat.len + order->sender.len + order->client_message_id.len + order->body.len;
    struct send *send = calloc(1, sizeof(*send) + bytes);
    if (!send)
        return NULL;
    char *at = send->bytes;
    struct ulid message_id = ulid_make(plane->clock->wall_ms, plane->random);
    ulid_write(send->message_id, &message_id);
    send->plane = plane;
    send->ack.chat_id = send->event.chat = slice_copy_to(&at, order->chat);
    send->ack.client_message_id = slice_copy_to(&at, order->client_message_id);
    send->event.sender = slice_copy_to(&at, order->sender);
    send->event.body = slice_copy_to(&at, order->body);
    send->event.has_except = order->except != NULL;
    if (order->except)
        send->event.except = *order->except;
    send->started_us = clock_microseconds();
    send->deadline_ms = plane->clock->now_ms + plane->config->gateway.timeouts.durability_rpc_ms;
    return send;
}

bool message_send_body_fits(const struct message_plane *plane, struct slice body)
{
    return body.len <= LEDGER_BODY_BYTES_MAX &&
           body.len <= plane->config->gateway.backpressure.inbound.max_message_size_bytes;
}

void message_send(struct message_plane *plane, const struct message_send_order *order,
                  message_send_done done, void *arg)
{
    struct message_send_result refused;
    if (!message_send_body_fits(plane, order->body)) {
        refused = make_send_failure(order->client_message_id, ERROR_MESSAGE_TOO_LARGE,
                                    "the body is too large", -1);
        done(arg, &refused);
        return;
    }
    struct send *send = plane->stopped ? NULL : make_send(plane, order);
    if (!send) {
        refused = make_send_failure(order->client_message_id, ERROR_SERVICE_UNAVAILABLE,
                                    "the server cannot take messages now", RETRY_AFTER_DEFAULT_MS);
        done(arg, &refused);
        return;
    }
    send->done = done;
    send->arg = arg;
    plane->sends++;
    struct slice message_id = {send->message_id, ULID_TEXT_LEN};
    ledger_message_append(plane->ledger, order->chat, order->sender, order->client_message_id,
                          message_id, order->body, on_message_appended, send);
}

/* send_message, ack, sync_request */
#include "messages/message_cursor.h"
#include "messages/message_history.h"
#include "messages/message_send.h"
#include "session/dispatch.h"
#include "session/pending_reply.h"

/* When to retry after the queue was too full for a page of history. */
enum { SYNC_RETRY_AFTER_MS = 1000 };

static void on_send_message_done(void *arg, const struct message_send_result *result)
{
    struct pending_reply *pending = arg;
    struct message reply = {.type = result->accepted ? MESSAGE_MESSAGE_ACK : MESSAGE_ERROR};
    if (result->accepted)
        reply.message_ack = result->ack;
    else
        reply.error = result->error;
    pending_reply_send(&pending, &reply);
}

void handle_send_message(struct session *session, const struct message *message)
{
    struct session_context *context = session->context;
    const struct send_message *send = &message->send;
    int64_t retry_after_ms;
    if (!message_send_body_fits(session->context->messages, send->body)) {
        session_refuse(session, message, ERROR_MESSAGE_TOO_LARGE, "the body is too large", -1);
        return;
    }
    if (!rate_limit_take(&session->messages, &context->message_rate,
                         context->message_rate.interval_us, context->loop->clock.now_ms,
                         &retry_after_ms)) {
        metrics_count(context->metrics, METRIC_RATE_LIMITED);
        session_refuse_rate(session, message, "too many messages", retry_after_ms);
        return;
    }
    if (!dispatch_within_budget(session, message, BUDGET_MESSAGES, BUDGET_ONE))
        return;
    struct pending_reply *pending = pending_reply_open(session, message);
    if (!pending)
        return;
    struct message_send_order order = {
        .chat = send->chat_id,
        .sender = session_user(session),
        .client_message_id = send->client_message_id,
        .body = send->body,
        .except = &session->conn_id,
    };
    message_send(session->context->messages, &order, on_send_message_done, pending);
}

void handle_ack(struct session *session, const struct message *message)
{
    message_cursor_advance(session->context->messages, message->ack.chat_id, session_user(session),
                           (struct slice){session->device, session->device_len},
                           (uint64_t)message->ack.sequence);
    /* an ack has no reply, unless the dialect's clients wait for one */
    if (message->id.data && session->connection.dialect->confirms_acks)
        session_confirm(session, message->id);
}

/* The client can repeat its sync_request, so a page must not turn a client that reads many chats at once into a slow
 * consumer. */
static void on_history_page_read(void *arg, enum ledger_status status,
                                 const struct sync_response *page)
{
    struct pending_reply *pending = arg;
    if (status == LEDGER_NOT_FOUND) {
        pending_reply_error(&pending, ERROR_NOT_FOUND, "there is no such chat");
    } else if (status == LEDGER_BUSY) {
        pending_reply_error(&pending, ERROR_SERVER_BUSY, "too many requests wait for the ledger");
    } else if (status != LEDGER_OK) {
        pending_reply_error(&pending, ERROR_SERVICE_UNAVAILABLE, "the chat cannot be read now");
    } else {
        struct message reply = {.type = MESSAGE_SYNC_RESPONSE, .sync_response = *page};
        if (pending->session && connection_is_filling(&pending->session->connection))
            reply = (struct message){.type = MESSAGE_ERROR,
                                     .error = {.code = ERROR_SERVER_BUSY,
                                               .text = "read the messages on their way first",
                                               .retry_after_ms = SYNC_RETRY_AFTER_MS,
                                               .grace_period_ms = -1}};
        pending_reply_send(&pending, &reply);
    }
}

void handle_sync_request(struct session *session, const struct message *message)
{
    struct pending_reply *pending = pending_reply_open(session, message);
    if (!pending)
        return;
    struct message_history_query query = {
        .chat = message->sync.chat_id,
        .reader = session_user(session),
        .sequence = (uint64_t)message->sync.after_sequence,
        .limit = message->sync.limit,
    };
    message_history_read(session->context->messages, &query, on_history_page_read, pending);
}

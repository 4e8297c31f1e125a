#include "session/pending_reply.h"

#include <stdlib.h>
#include <string.h>

struct pending_reply *pending_reply_open(struct session *session, const struct message *message)
{
    uint32_t max = session->context->config->gateway.backpressure.inbound.max_queue_depth;
    struct pending_reply *pending = NULL;
    if (session->pending_reply_count < max)
        pending = malloc(sizeof(*pending) + message->id.len);
    if (!pending) {
        metrics_count(session->context->metrics, METRIC_SERVER_BUSY);
        session_refuse(session, message, ERROR_SERVER_BUSY,
                       "too many commands are pending on this connection", -1);
        return NULL;
    }
    char *id = (char *)(pending + 1);
    *pending = (struct pending_reply){
        .next = session->pending_replies,
        .session = session,
        .type = message->type,
        .id = message->id.data ? (struct slice){id, message->id.len} : SLICE_NONE,
    };
    if (message->id.data && message->id.len)
        memcpy(id, message->id.data, message->id.len);
    session->pending_replies = pending;
    session->pending_reply_count++;
    return pending;
}

void pending_reply_end(struct pending_reply **pending)
{
    struct pending_reply *ended = *pending;
    *pending = NULL;
    if (ended->session) {
        struct pending_reply **at = &ended->session->pending_replies;
        while (*at != ended)
            at = &(*at)->next;
        *at = ended->next;
        ended->session->pending_reply_count--;
    }
    free(ended);
}

void pending_reply_send(struct pending_reply **pending, struct message *reply)
{
    reply->id = (*pending)->id;
    if ((*pending)->session)
        connection_send(&(*pending)->session->connection, reply);
    pending_reply_end(pending);
}

void pending_reply_error(struct pending_reply **pending, enum error_code code, const char *text)
{
    if ((*pending)->session)
        session_error((*pending)->session, (*pending)->id, code, text);
    pending_reply_end(pending);
}

void pending_reply_ledger_error(struct pending_reply **pending, enum ledger_status status)
{
    switch (status) {
    case LEDGER_NOT_FOUND:
        pending_reply_error(pending, ERROR_NOT_FOUND, "there is no such chat");
        break;
    case LEDGER_FORBIDDEN:
        pending_reply_error(pending, ERROR_FORBIDDEN, "you may not do this");
        break;
    case LEDGER_HALTED:
        pending_reply_error(pending, ERROR_CHAT_HALTED,
                            "the chat takes no messages until it is repaired");
        break;
    case LEDGER_INVALID:
    case LEDGER_CONFLICT:
    case LEDGER_LIMIT:
        pending_reply_error(pending, ERROR_INVALID_MESSAGE, ledger_status_name(status));
        break;
    default:
        pending_reply_error(pending, ERROR_SERVICE_UNAVAILABLE, "the ledger does not answer");
        break;
    }
}

void pending_reply_cancel(struct session *session, enum message_type type, struct slice chat_id)
{
    for (struct pending_reply *at = session->pending_replies; at; at = at->next)
        if (at->type == type && slice_equal(at->chat_id, chat_id))
            at->cancelled = true;
}

void pending_reply_orphan_all(struct session *session)
{
    while (session->pending_replies) {
        struct pending_reply *pending = session->pending_replies;
        session->pending_replies = pending->next;
        pending->session = NULL;
        pending->next = NULL;
    }
    session->pending_reply_count = 0;
}

#include "session/pending_reply.h"

#include <stdlib.h>
#include <string.h>

struct pending_reply *pending_reply_open(struct session *session, const struct message *message)
{
    uint32_t max = session->context->config->gateway.backpressure.inbound.max_queue_depth;
    struct pending_reply *request = NULL;
    if (session->request_count < max)
        request = malloc(sizeof(*request) + message->id.len);
    if (!request) {
        metrics_count(session->context->metrics, METRIC_SERVER_BUSY);
        session_refuse(session, message, ERROR_SERVER_BUSY,
                       "too many requests under way on this connection", -1);
        return NULL;
    }
    char *id = (char *)(request + 1);
    *request = (struct pending_reply){
        .next = session->requests,
        .session = session,
        .type = message->type,
        .id = message->id.data ? (struct slice){id, message->id.len} : SLICE_NONE,
    };
    if (message->id.data && message->id.len)
        memcpy(id, message->id.data, message->id.len);
    session->requests = request;
    session->request_count++;
    return request;
}

void pending_reply_end(struct pending_reply **request)
{
    struct pending_reply *ended = *request;
    *request = NULL;
    if (ended->session) {
        struct pending_reply **at = &ended->session->requests;
        while (*at != ended)
            at = &(*at)->next;
        *at = ended->next;
        ended->session->request_count--;
    }
    free(ended);
}

void pending_reply_reply(struct pending_reply **request, struct message *answer)
{
    answer->id = (*request)->id;
    if ((*request)->session)
        connection_send(&(*request)->session->connection, answer);
    pending_reply_end(request);
}

void pending_reply_error(struct pending_reply **request, enum error_code code, const char *text)
{
    if ((*request)->session)
        session_error((*request)->session, (*request)->id, code, text);
    pending_reply_end(request);
}

void pending_reply_ledger_error(struct pending_reply **request, enum ledger_status status)
{
    switch (status) {
    case LEDGER_NOT_FOUND:
        pending_reply_error(request, ERROR_NOT_FOUND, "there is no such thing");
        break;
    case LEDGER_FORBIDDEN:
        pending_reply_error(request, ERROR_FORBIDDEN, "you may not do this");
        break;
    case LEDGER_HALTED:
        pending_reply_error(request, ERROR_CHAT_HALTED,
                            "the chat takes no messages until it is repaired");
        break;
    case LEDGER_INVALID:
    case LEDGER_CONFLICT:
    case LEDGER_LIMIT:
        pending_reply_error(request, ERROR_INVALID_MESSAGE, ledger_status_name(status));
        break;
    default:
        pending_reply_error(request, ERROR_SERVICE_UNAVAILABLE, "the ledger does not answer");
        break;
    }
}

void pending_reply_take_back(struct session *session, enum message_type type, struct slice about)
{
    for (struct pending_reply *at = session->requests; at; at = at->next)
        if (at->type == type && slice_equal(at->about, about))
            at->taken_back = true;
}

void pending_reply_orphan_all(struct session *session)
{
    while (session->requests) {
        struct pending_reply *request = session->requests;
        session->requests = request->next;
        request->session = NULL;
        request->next = NULL;
    }
    session->request_count = 0;
}

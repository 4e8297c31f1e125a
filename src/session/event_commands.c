/* event: what the application handles (hooks/event_hook.h) */
#include "session/dispatch.h"
#include "session/pending_reply.h"

/* When to retry an event that was beyond a bound. */
enum { EVENT_RETRY_AFTER_MS = 1000 };

/* The application's status as an error of ours. */
static enum error_code event_refusal_code(unsigned status)
{
    switch (status) {
    case 401:
    case 403:
        return ERROR_FORBIDDEN;
    case 404:
        return ERROR_NOT_FOUND;
    case 413:
        return ERROR_MESSAGE_TOO_LARGE;
    case 429:
        return ERROR_RATE_LIMITED;
    default:
        return ERROR_INVALID_MESSAGE;
    }
}

static void on_event_done(void *arg, const struct event_answer *answer)
{
    struct pending_reply *pending = arg;
    struct session *session = pending->session;
    struct message reply = {.type = MESSAGE_EVENT_ACK, .data = answer->data};
    enum error_code code = answer->result == EVENT_REFUSED ? event_refusal_code(answer->status)
                           : answer->result == EVENT_BUSY  ? ERROR_SERVER_BUSY
                                                           : ERROR_SERVICE_UNAVAILABLE;
    if (session && answer->result == EVENT_BUSY)
        metrics_count(session->context->metrics, METRIC_SERVER_BUSY);
    if (answer->result != EVENT_ANSWERED)
        reply = (struct message){
            .type = MESSAGE_ERROR,
            .error = {.code = code,
                      .text = answer->text,
                      .retry_after_ms = answer->result == EVENT_BUSY ? EVENT_RETRY_AFTER_MS : -1,
                      .grace_period_ms = -1}};
    else if (session && !pending->id.data && session->connection.dialect->answers_asked_only) {
        pending_reply_end(&pending);
        return;
    }
    pending_reply_send(&pending, &reply);
}

/* Returns NULL, or why the event is refused, with its code. */
static const char *check_event(const struct session *session, const struct custom_event *event,
                               enum error_code *code)
{
    *code = ERROR_INVALID_MESSAGE;
    if (!session->context->event_hook)
        return event->unknown_text;
    if (event->name.len == 0 || event->name.len > EVENT_HOOK_NAME_BYTES_MAX)
        return "the name of an event has 1 to 128 bytes";
    *code = ERROR_MESSAGE_TOO_LARGE;
    return event->args.len > session->context->config->gateway.max_frame_bytes
               ? "the event is too large"
               : NULL;
}

void handle_event(struct session *session, const struct message *message)
{
    const struct custom_event *event = &message->event;
    enum error_code code;
    const char *problem = check_event(session, event, &code);
    if (problem) {
        metrics_add(session->context->metrics, METRIC_INVALID_MESSAGES,
                    code == ERROR_INVALID_MESSAGE);
        session_refuse(session, message, code, problem, -1);
        return;
    }
    if (!dispatch_within_budget(session, message, BUDGET_EVENTS, BUDGET_ONE))
        return;
    struct pending_reply *pending = pending_reply_open(session, message);
    if (!pending)
        return;
    struct event_question question = {
        .user_id = session_user(session),
        .device_id = {session->device, session->device_len},
        .conn_id = session->conn_id,
        .name = event->name,
        .data = event->data,
        .args = event->args,
    };
    event_hook_ask(session->context->event_hook, &question, on_event_done, pending);
}

#include "session/dispatch.h"

typedef void (*command_handler)(struct session *session, const struct message *message);

struct command {
    command_handler handle;
    bool unlimited; /* exempt from the rate limit */
};

static const struct command COMMANDS[MESSAGE_TYPE_COUNT] = {
    [MESSAGE_HEARTBEAT] = {handle_heartbeat},
    [MESSAGE_SUBSCRIBE_PRESENCE] = {handle_subscribe_presence},
    [MESSAGE_UNSUBSCRIBE_PRESENCE] = {handle_unsubscribe_presence},
    [MESSAGE_QUERY_PRESENCE] = {handle_query_presence},
    [MESSAGE_OPEN_CHAT] = {handle_open_chat},
    [MESSAGE_CLOSE_CHAT] = {handle_close_chat},
    [MESSAGE_TYPING_START] = {handle_typing_start},
    [MESSAGE_TYPING_STOP] = {handle_typing_stop, .unlimited = true},
    [MESSAGE_SEND_MESSAGE] = {handle_send_message},
    [MESSAGE_ACK] = {handle_ack},
    [MESSAGE_SYNC_REQUEST] = {handle_sync_request},
    [MESSAGE_CALL_REQUEST] = {handle_call_command},
    [MESSAGE_CALL_ACCEPT] = {handle_call_command},
    [MESSAGE_CALL_REJECT] = {handle_call_command},
    [MESSAGE_CALL_END] = {handle_call_command},
    [MESSAGE_CALL_SIGNAL] = {handle_call_command},
    [MESSAGE_REFRESH_TOKEN] = {handle_refresh_token},
    [MESSAGE_USER_CONNECT] = {handle_user_connect},
    [MESSAGE_USER_DISCONNECT] = {handle_user_disconnect, .unlimited = true},
    [MESSAGE_CALL_DECLARE_START] = {handle_call_command},
    [MESSAGE_CALL_DECLARE_END] = {handle_call_command},
};

bool dispatch_within_rate(struct session *session, int64_t *retry_after_ms)
{
    const struct config_inbound *limits = &session->context->config->gateway.backpressure.inbound;
    if (rate_limit_take(&session->commands, limits->command_rate_per_second,
                        limits->command_rate_burst, session->context->loop->clock.now_ms,
                        retry_after_ms))
        return true;
    metrics_count(session->context->metrics, METRIC_RATE_LIMITED);
    return false;
}

/* Returns false after telling the client when to retry. */
static bool check_command_rate(struct session *session, const struct message *message)
{
    int64_t retry_after_ms;
    if (dispatch_within_rate(session, &retry_after_ms))
        return true;
    session_refuse(session, message, ERROR_RATE_LIMITED, "too many commands", retry_after_ms);
    return false;
}

void dispatch_invalid(struct session *session, const struct message *message, const char *problem)
{
    if (!check_command_rate(session, message))
        return;
    metrics_count(session->context->metrics, METRIC_INVALID_MESSAGES);
    session_refuse(session, message, ERROR_INVALID_MESSAGE, problem, -1);
}

void dispatch(struct session *session, const struct message *message)
{
    command_handler handle = COMMANDS[message->type].handle;
    if (!handle)
        dispatch_invalid(session, message, "unknown type");
    else if (COMMANDS[message->type].unlimited || check_command_rate(session, message))
        handle(session, message);
}

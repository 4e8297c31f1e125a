#include "session/dispatch.h"

typedef void (*command_handler)(struct session *session, const struct message *message);

struct command {
    command_handler handle;
    enum budget_class budget; /* of the user, besides the rate limit of the connection */
    bool never_refused;
};

static const struct command COMMANDS[MESSAGE_TYPE_COUNT] = {
    [MESSAGE_HEARTBEAT] = {handle_heartbeat},
    [MESSAGE_SUBSCRIBE_PRESENCE] = {handle_subscribe_presence, BUDGET_READS},
    [MESSAGE_UNSUBSCRIBE_PRESENCE] = {handle_unsubscribe_presence},
    [MESSAGE_QUERY_PRESENCE] = {handle_query_presence, BUDGET_READS},
    [MESSAGE_OPEN_CHAT] = {handle_open_chat, BUDGET_READS},
    [MESSAGE_CLOSE_CHAT] = {handle_close_chat},
    [MESSAGE_TYPING_START] = {handle_typing_start, BUDGET_SIGNALS},
    [MESSAGE_TYPING_STOP] = {handle_typing_stop, .never_refused = true},
    [MESSAGE_SEND_MESSAGE] = {handle_send_message},
    [MESSAGE_ACK] = {handle_ack},
    [MESSAGE_SYNC_REQUEST] = {handle_sync_request, BUDGET_READS},
    [MESSAGE_CALL_REQUEST] = {handle_call_command, BUDGET_CALLS},
    [MESSAGE_CALL_ACCEPT] = {handle_call_command, BUDGET_SIGNALS},
    [MESSAGE_CALL_REJECT] = {handle_call_command, BUDGET_SIGNALS},
    [MESSAGE_CALL_END] = {handle_call_command, BUDGET_SIGNALS},
    [MESSAGE_CALL_SIGNAL] = {handle_call_command, BUDGET_SIGNALS},
    [MESSAGE_REFRESH_TOKEN] = {handle_refresh_token},
    [MESSAGE_USER_CONNECT] = {handle_user_connect},
    [MESSAGE_USER_DISCONNECT] = {handle_user_disconnect, .never_refused = true},
    [MESSAGE_CALL_DECLARE_START] = {handle_call_command, BUDGET_CALLS},
    [MESSAGE_CALL_DECLARE_END] = {handle_call_command, BUDGET_SIGNALS},
};

bool dispatch_within_rate(struct session *session, int64_t *retry_after_ms)
{
    const struct session_context *context = session->context;
    if (rate_limit_take(&session->commands, &context->command_rate,
                        context->command_rate.interval_us, context->loop->clock.now_ms,
                        retry_after_ms))
        return true;
    metrics_count(context->metrics, METRIC_RATE_LIMITED);
    return false;
}

/* Returns false after telling the client when to retry. */
static bool check_command_rate(struct session *session, const struct message *message)
{
    int64_t retry_after_ms;
    if (dispatch_within_rate(session, &retry_after_ms))
        return true;
    session_refuse_rate(session, message, "too many commands", retry_after_ms);
    return false;
}

bool dispatch_within_budget(struct session *session, const struct message *message,
                            enum budget_class budget, unsigned cost)
{
    int64_t retry_after_ms;
    if (budget_take(&session->context->budgets, budget, session_user(session), cost,
                    &retry_after_ms))
        return true;
    session_refuse_rate(session, message, budget_refusal_text(budget), retry_after_ms);
    return false;
}

static bool check_command_budget(struct session *session, const struct message *message)
{
    bool names_users =
        message->type == MESSAGE_SUBSCRIBE_PRESENCE || message->type == MESSAGE_QUERY_PRESENCE;
    enum budget_class budget = COMMANDS[message->type].budget;
    return budget == BUDGET_NONE ||
           dispatch_within_budget(session, message, budget,
                                  names_users ? budget_cost_of_users(message->users.count)
                                              : BUDGET_ONE);
}

/* A client that floods is throttled all the same. */
static void dispatch_never_refused(struct session *session, const struct message *message)
{
    struct connection *connection = &session->connection;
    int64_t retry_after_ms;
    bool is_within_rate = dispatch_within_rate(session, &retry_after_ms);
    COMMANDS[message->type].handle(session, message);
    if (!is_within_rate)
        connection_exceed(connection);
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
    const struct command *command = &COMMANDS[message->type];
    if (!command->handle)
        dispatch_invalid(session, message, "unknown type");
    else if (command->never_refused)
        dispatch_never_refused(session, message);
    else if (check_command_rate(session, message) && check_command_budget(session, message))
        command->handle(session, message);
}

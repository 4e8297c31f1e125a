#include "session/dispatch.h"

typedef void (*command_handler)(struct session *session, const struct message *message);

/* One value decides about a command, so that the most frequent ones cost one comparison. */
enum command_admission {
    ADMIT_NEVER, /* clients may not send it */
    ADMIT_WITHIN_RATE,
    ADMIT_WITHIN_BUDGET, /* of the user, besides the rate limit of the connection */
    ADMIT_ALWAYS,
};

struct command {
    command_handler handle;
    enum command_admission admission;
    enum budget_class budget;
};

static const struct command COMMANDS[MESSAGE_TYPE_COUNT] = {
    [MESSAGE_HEARTBEAT] = {handle_heartbeat, ADMIT_WITHIN_RATE},
    [MESSAGE_SUBSCRIBE_PRESENCE] = {handle_subscribe_presence, ADMIT_WITHIN_BUDGET, BUDGET_READS},
    [MESSAGE_UNSUBSCRIBE_PRESENCE] = {handle_unsubscribe_presence, ADMIT_WITHIN_RATE},
    [MESSAGE_QUERY_PRESENCE] = {handle_query_presence, ADMIT_WITHIN_BUDGET, BUDGET_READS},
    [MESSAGE_OPEN_CHAT] = {handle_open_chat, ADMIT_WITHIN_BUDGET, BUDGET_READS},
    [MESSAGE_CLOSE_CHAT] = {handle_close_chat, ADMIT_WITHIN_RATE},
    [MESSAGE_TYPING_START] = {handle_typing_start, ADMIT_WITHIN_BUDGET, BUDGET_SIGNALS},
    [MESSAGE_TYPING_STOP] = {handle_typing_stop, ADMIT_ALWAYS},
    [MESSAGE_SEND_MESSAGE] = {handle_send_message, ADMIT_WITHIN_RATE},
    [MESSAGE_ACK] = {handle_ack, ADMIT_WITHIN_RATE},
    [MESSAGE_SYNC_REQUEST] = {handle_sync_request, ADMIT_WITHIN_BUDGET, BUDGET_READS},
    [MESSAGE_CALL_REQUEST] = {handle_call_command, ADMIT_WITHIN_BUDGET, BUDGET_CALLS},
    [MESSAGE_CALL_ACCEPT] = {handle_call_command, ADMIT_WITHIN_BUDGET, BUDGET_SIGNALS},
    [MESSAGE_CALL_REJECT] = {handle_call_command, ADMIT_WITHIN_BUDGET, BUDGET_SIGNALS},
    [MESSAGE_CALL_END] = {handle_call_command, ADMIT_WITHIN_BUDGET, BUDGET_SIGNALS},
    [MESSAGE_CALL_SIGNAL] = {handle_call_command, ADMIT_WITHIN_BUDGET, BUDGET_SIGNALS},
    [MESSAGE_REFRESH_TOKEN] = {handle_refresh_token, ADMIT_WITHIN_RATE},
    [MESSAGE_EVENT] = {handle_event, ADMIT_WITHIN_RATE},
    [MESSAGE_USER_CONNECT] = {handle_user_connect, ADMIT_WITHIN_RATE},
    [MESSAGE_USER_DISCONNECT] = {handle_user_disconnect, ADMIT_ALWAYS},
    [MESSAGE_CALL_DECLARE_START] = {handle_call_command, ADMIT_WITHIN_BUDGET, BUDGET_CALLS},
    [MESSAGE_CALL_DECLARE_END] = {handle_call_command, ADMIT_WITHIN_BUDGET, BUDGET_SIGNALS},
};

int64_t dispatch_rate_wait_ms(struct session *session)
{
    const struct session_context *context = session->context;
    int64_t wait_ms =
        rate_limit_wait_ms(&session->commands, &context->command_rate,
                           context->command_rate.interval_us, context->loop->clock.now_ms);
    if (wait_ms)
        metrics_count(context->metrics, METRIC_RATE_LIMITED);
    return wait_ms;
}

/* Returns false after telling the client when to retry. */
static bool check_command_rate(struct session *session, const struct message *message)
{
    int64_t retry_after_ms = dispatch_rate_wait_ms(session);
    if (retry_after_ms)
        session_refuse_rate(session, message, "too many commands", retry_after_ms);
    return retry_after_ms == 0;
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
    return dispatch_within_budget(session, message, budget,
                                  names_users ? budget_cost_of_users(message->users.count)
                                              : BUDGET_ONE);
}

/* A client that floods is throttled all the same. */
static void dispatch_always(struct session *session, const struct message *message)
{
    struct connection *connection = &session->connection;
    bool is_within_rate = dispatch_rate_wait_ms(session) == 0;
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
    enum command_admission admission = command->admission;
    if (admission == ADMIT_NEVER)
        dispatch_invalid(session, message, "unknown type");
    else if (admission == ADMIT_ALWAYS)
        dispatch_always(session, message);
    else if (check_command_rate(session, message) &&
             (admission == ADMIT_WITHIN_RATE || check_command_budget(session, message)))
        command->handle(session, message);
}

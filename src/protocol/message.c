#include "protocol/message.h"

static const char *const TYPE_NAMES[MESSAGE_TYPE_COUNT] = {
    [MESSAGE_INVALID] = "invalid",
    [MESSAGE_HEARTBEAT] = "heartbeat",
    [MESSAGE_SUBSCRIBE_PRESENCE] = "subscribe_presence",
    [MESSAGE_UNSUBSCRIBE_PRESENCE] = "unsubscribe_presence",
    [MESSAGE_QUERY_PRESENCE] = "query_presence",
    [MESSAGE_OPEN_CHAT] = "open_chat",
    [MESSAGE_CLOSE_CHAT] = "close_chat",
    [MESSAGE_TYPING_START] = "typing_start",
    [MESSAGE_TYPING_STOP] = "typing_stop",
    [MESSAGE_SEND_MESSAGE] = "send_message",
    [MESSAGE_ACK] = "ack",
    [MESSAGE_SYNC_REQUEST] = "sync_request",
    [MESSAGE_CALL_REQUEST] = "call_request",
    [MESSAGE_CALL_ACCEPT] = "call_accept",
    [MESSAGE_CALL_REJECT] = "call_reject",
    [MESSAGE_CALL_END] = "call_end",
    [MESSAGE_CALL_SIGNAL] = "call_signal",
    [MESSAGE_REFRESH_TOKEN] = "refresh_token",
    [MESSAGE_EVENT] = "event",
    [MESSAGE_USER_CONNECT] = "user:connect",
    [MESSAGE_USER_DISCONNECT] = "user:disconnect",
    [MESSAGE_CALL_DECLARE_START] = "call:start",
    [MESSAGE_CALL_DECLARE_END] = "call:end",
    [MESSAGE_CONNECTION_ESTABLISHED] = "connection_established",
    [MESSAGE_HEARTBEAT_ACK] = "heartbeat_ack",
    [MESSAGE_OK] = "ok",
    [MESSAGE_ERROR] = "error",
    [MESSAGE_PRESENCE_SNAPSHOT] = "presence_snapshot",
    [MESSAGE_PRESENCE_CHANGED] = "presence_changed",
    [MESSAGE_CHAT_SNAPSHOT] = "chat_snapshot",
    [MESSAGE_TYPING_CHANGED] = "typing_changed",
    [MESSAGE_MESSAGE_ACK] = "message_ack",
    [MESSAGE_MESSAGE] = "message",
    [MESSAGE_SYNC_RESPONSE] = "sync_response",
    [MESSAGE_CALL_RINGING] = "call_ringing",
    [MESSAGE_CALL_INCOMING] = "call_incoming",
    [MESSAGE_CALL_ACCEPTED] = "call_accepted",
    [MESSAGE_CALL_REJECTED] = "call_rejected",
    [MESSAGE_CALL_ENDED] = "call_ended",
    [MESSAGE_CONTACT_REQUEST] = "contact_request",
    [MESSAGE_CONTACT_ACCEPTED] = "contact_accepted",
    [MESSAGE_CONTACT_REMOVED] = "contact_removed",
    [MESSAGE_DELIVERY] = "delivery",
    [MESSAGE_EVENT_ACK] = "event_ack",
    [MESSAGE_CONNECTION_CLOSING] = "connection_closing",
    [MESSAGE_CONTACT_PRESENCE] = "contact_presence",
    [MESSAGE_CHAT_PRESENCE] = "chat_presence",
    [MESSAGE_RELAY] = "relay",
};

static const char *const ERROR_NAMES[ERROR_CODE_COUNT] = {
    [ERROR_INVALID_MESSAGE] = "INVALID_MESSAGE",
    [ERROR_MESSAGE_TOO_LARGE] = "MESSAGE_TOO_LARGE",
    [ERROR_UNAUTHENTICATED] = "UNAUTHENTICATED",
    [ERROR_FORBIDDEN] = "FORBIDDEN",
    [ERROR_NOT_FOUND] = "NOT_FOUND",
    [ERROR_RATE_LIMITED] = "RATE_LIMITED",
    [ERROR_SERVER_BUSY] = "SERVER_BUSY",
    [ERROR_SERVICE_UNAVAILABLE] = "SERVICE_UNAVAILABLE",
    [ERROR_SLOW_CONSUMER] = "SLOW_CONSUMER",
    [ERROR_SUBSCRIPTION_LIMIT] = "SUBSCRIPTION_LIMIT",
    [ERROR_CHAT_HALTED] = "CHAT_HALTED",
    [ERROR_CALL_BUSY] = "CALL_BUSY",
    [ERROR_CALL_UNAVAILABLE] = "CALL_UNAVAILABLE",
};

static const char *const CLOSING_NAMES[CLOSING_REASON_COUNT] = {
    [CLOSING_SLOW_CONSUMER] = "slow_consumer",
    [CLOSING_DRAINING] = "draining",
    [CLOSING_MAX_LIFETIME] = "max_lifetime",
    [CLOSING_MEMORY_PRESSURE] = "memory_pressure",
    [CLOSING_HEARTBEAT_TIMEOUT] = "heartbeat_timeout",
    [CLOSING_TOKEN_EXPIRED] = "token_expired",
    [CLOSING_UPSTREAM_FAILURE] = "upstream_failure",
    [CLOSING_ADMIN] = "admin",
    [CLOSING_TOKEN_REVOKED] = "token_revoked",
    [CLOSING_KEY_REMOVED] = "key_removed",
    [CLOSING_RATE_LIMITED] = "rate_limited",
    [CLOSING_TOO_MANY_CONNECTIONS] = "too_many_connections",
};

static const char *const ANNOUNCEMENT_NAMES[PRESENCE_ANNOUNCEMENTS] = {
    [PRESENCE_ANNOUNCE_ONLINE] = "online",
    [PRESENCE_ANNOUNCE_OFFLINE] = "offline",
    [PRESENCE_ANNOUNCE_IN_CALL] = "in_call",
    [PRESENCE_ANNOUNCE_OUT_OF_CALL] = "out_of_call",
};

const char *message_type_name(enum message_type type)
{
    return TYPE_NAMES[type];
}

struct slice message_name(const struct message *message)
{
    return message->type == MESSAGE_RELAY ? message->relay.name
                                          : slice_of(message_type_name(message->type));
}

/* The heartbeat is first, so that the most frequent message takes one comparison. */
enum message_type message_type_from_client(struct slice name)
{
    for (int type = MESSAGE_HEARTBEAT; type <= MESSAGE_EVENT; type++)
        if (slice_is(name, TYPE_NAMES[type]))
            return (enum message_type)type;
    return MESSAGE_INVALID;
}

const char *presence_announcement_name(enum presence_announcement announcement)
{
    return ANNOUNCEMENT_NAMES[announcement];
}

enum presence_announcement presence_announcement_parse(struct slice name)
{
    for (int i = PRESENCE_ANNOUNCE_ONLINE; i < PRESENCE_ANNOUNCEMENTS; i++)
        if (slice_is(name, ANNOUNCEMENT_NAMES[i]))
            return (enum presence_announcement)i;
    return PRESENCE_ANNOUNCE_NOTHING;
}

const char *error_code_name(enum error_code code)
{
    return ERROR_NAMES[code];
}

const char *closing_reason_name(enum closing_reason reason)
{
    return CLOSING_NAMES[reason];
}

enum closing_reason closing_reason_parse(struct slice name)
{
    int reason = 0;
    while (reason < CLOSING_REASON_COUNT && !slice_is(name, CLOSING_NAMES[reason]))
        reason++;
    return (enum closing_reason)reason;
}

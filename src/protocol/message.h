/*
 * The decoded form of every message, from and to clients, whatever their dialect.
 *
 * A dialect (dialect.h) turns a frame's payload into a `struct message` and back; handlers, planes and
 * routing use only this struct. A message borrows all its bytes: a decoded one points into the payload and
 * the decoder's scratch and lasts until the next decode; one to be encoded points to its maker's memory. To
 * add a message: an entry here, its name in message.c, its fields below and in fields.c or fields_encode.c,
 * and a handler if clients send it.
 */
#ifndef ROLLCALL_PROTOCOL_MESSAGE_H
#define ROLLCALL_PROTOCOL_MESSAGE_H

#include "base/id_list.h"
#include "base/slice.h"
#include "protocol/presence.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum message_type {
    MESSAGE_INVALID,
    /* from clients */
    MESSAGE_HEARTBEAT,
    MESSAGE_SUBSCRIBE_PRESENCE,
    MESSAGE_UNSUBSCRIBE_PRESENCE,
    MESSAGE_QUERY_PRESENCE,
    MESSAGE_OPEN_CHAT,
    MESSAGE_CLOSE_CHAT,
    MESSAGE_TYPING_START,
    MESSAGE_TYPING_STOP,
    MESSAGE_SEND_MESSAGE,
    MESSAGE_ACK,
    MESSAGE_SYNC_REQUEST,
    MESSAGE_CALL_REQUEST,
    MESSAGE_CALL_ACCEPT,
    MESSAGE_CALL_REJECT,
    MESSAGE_CALL_END,
    MESSAGE_CALL_SIGNAL, /* also to clients */
    MESSAGE_REFRESH_TOKEN,
    MESSAGE_EVENT, /* of a name that is no command, for the application */
    /* from clients, in dialects that have these commands */
    MESSAGE_USER_CONNECT,
    MESSAGE_USER_DISCONNECT,
    MESSAGE_CALL_DECLARE_START,
    MESSAGE_CALL_DECLARE_END,
    /* to clients */
    MESSAGE_CONNECTION_ESTABLISHED,
    MESSAGE_HEARTBEAT_ACK,
    MESSAGE_OK,
    MESSAGE_ERROR,
    MESSAGE_PRESENCE_SNAPSHOT,
    MESSAGE_PRESENCE_CHANGED,
    MESSAGE_CHAT_SNAPSHOT,
    MESSAGE_TYPING_CHANGED,
    MESSAGE_MESSAGE_ACK,
    MESSAGE_MESSAGE,
    MESSAGE_SYNC_RESPONSE,
    MESSAGE_CALL_RINGING,
    MESSAGE_CALL_INCOMING,
    MESSAGE_CALL_ACCEPTED,
    MESSAGE_CALL_REJECTED,
    MESSAGE_CALL_ENDED,
    MESSAGE_CONTACT_REQUEST,
    MESSAGE_CONTACT_ACCEPTED,
    MESSAGE_CONTACT_REMOVED,
    MESSAGE_DELIVERY,
    MESSAGE_EVENT_ACK,
    MESSAGE_CONNECTION_CLOSING,
    MESSAGE_CONTACT_PRESENCE, /* for endpoints with `hears_sources` (routing/router.h) */
    MESSAGE_CHAT_PRESENCE,
    MESSAGE_RELAY, /* an event from the bus, its fields already JSON */
    MESSAGE_TYPE_COUNT
};

/* The names of events whose fields their makers write as JSON (MESSAGE_RELAY). docs/asyncapi.json describes them. */
#define RELAY_CHAT_ADDED SLICE("chat_added")
#define RELAY_CHAT_REMOVED SLICE("chat_removed")
#define RELAY_CHAT_CHANGED SLICE("chat_changed")
#define RELAY_CHAT_CLOSED SLICE("chat_closed")
#define RELAY_RECEIPT SLICE("receipt")
#define RELAY_MESSAGE_DELETED SLICE("message_deleted")
#define RELAY_SYNC_REQUIRED SLICE("sync_required")

enum error_code {
    ERROR_INVALID_MESSAGE,
    ERROR_MESSAGE_TOO_LARGE,
    ERROR_UNAUTHENTICATED,
    ERROR_FORBIDDEN,
    ERROR_NOT_FOUND,
    ERROR_RATE_LIMITED,
    ERROR_SERVER_BUSY,
    ERROR_SERVICE_UNAVAILABLE,
    ERROR_SLOW_CONSUMER,
    ERROR_SUBSCRIPTION_LIMIT,
    ERROR_CHAT_HALTED,
    ERROR_CALL_BUSY,
    ERROR_CALL_UNAVAILABLE,
    ERROR_CODE_COUNT
};

enum closing_reason {
    CLOSING_SLOW_CONSUMER,
    CLOSING_DRAINING,
    CLOSING_MAX_LIFETIME,
    CLOSING_MEMORY_PRESSURE,
    CLOSING_HEARTBEAT_TIMEOUT,
    CLOSING_TOKEN_EXPIRED,
    CLOSING_UPSTREAM_FAILURE,
    CLOSING_ADMIN,
    CLOSING_TOKEN_REVOKED,
    CLOSING_KEY_REMOVED,
    CLOSING_RATE_LIMITED,
    CLOSING_TOO_MANY_CONNECTIONS,
    CLOSING_REASON_COUNT
};

/* A heartbeat may report that the user is active or idle, or neither. */
enum activity { ACTIVITY_UNSPECIFIED, ACTIVITY_ACTIVE, ACTIVITY_IDLE };

struct connection_established {
    struct slice conn_id;
    struct slice server_id;
    struct slice user_id;
    int64_t heartbeat_interval_ms;
    int64_t expiry_window_ms;
    int64_t server_time_ms;
    struct slice display_name; /* empty: left out */
};

struct message_error {
    enum error_code code;
    const char *text;
    struct slice client_message_id; /* SLICE_NONE: not about a message */
    int64_t retry_after_ms;         /* < 0: left out */
    int64_t grace_period_ms;        /* < 0: left out */
};

/* The event that a change is for clients that get events rather than state (presence/announcement.h). */
enum presence_announcement {
    PRESENCE_ANNOUNCE_NOTHING,
    PRESENCE_ANNOUNCE_ONLINE, /* connected, possibly idle */
    PRESENCE_ANNOUNCE_OFFLINE,
    PRESENCE_ANNOUNCE_IN_CALL,
    PRESENCE_ANNOUNCE_OUT_OF_CALL,
    PRESENCE_ANNOUNCEMENTS
};

struct presence_change {
    struct presence presence;
    int64_t timestamp_ms;
    enum presence_announcement announcement;
};

/* Where to sync one chat from: everything up to this sequence was sent. */
struct sync_point {
    struct slice chat_id;
    int64_t sequence;
};

struct connection_closing {
    enum closing_reason reason;
    bool reconnect_allowed;
    int64_t reconnect_after_ms; /* < 0: left out */
    const struct sync_point *sync_from;
    size_t sync_from_count;
};

struct chat_snapshot {
    struct slice chat_id;
    const struct presence *presences;
    size_t presence_count;
    const struct slice *typing; /* users */
    size_t typing_count;
    int64_t latest_sequence;
};

struct typing_change {
    struct slice chat_id;
    struct slice user_id;
    bool typing;
};

struct send_message {
    struct slice chat_id;
    struct slice client_message_id;
    struct slice body;
};

struct message_ack {
    struct slice chat_id;
    struct slice client_message_id;
    struct slice message_id;
    int64_t sequence;
    bool duplicate;
    bool body_differs; /* the id was used before for another body; this is the first result */
};

/* A chat message as it is delivered and synced. */
struct chat_message {
    struct slice chat_id;
    struct slice message_id;
    int64_t sequence;
    struct slice sender_id; /* SLICE_NONE: the application, a system message */
    struct slice body;      /* empty: a tombstone, the message was deleted */
    int64_t sent_at_ms;
};

struct sync_request {
    struct slice chat_id;
    int64_t after_sequence;
    int64_t limit; /* 0: left out */
};

struct sync_response {
    struct slice chat_id;
    const struct chat_message *messages;
    size_t count;
    bool has_more;
    int64_t latest_sequence;
};

/* Commands and events about a call use some of these. */
struct call_fields {
    struct slice call_id; /* SLICE_NONE in call_request: the server makes one */
    struct slice to;
    struct slice from;
    struct slice data;  /* of a signal, raw JSON */
    const char *reason; /* of an end */
};

/* An event for the application. */
struct custom_event {
    struct slice name; /* as it came, of any length; SLICE_NONE: none, or not text */
    struct slice data; /* the first argument, raw JSON; SLICE_NONE: none */
    struct slice args; /* all arguments, raw JSON with commas between them; SLICE_NONE: none */
    const char *unknown_text; /* the error where no application is asked */
};

struct contact_fields {
    struct slice request_id;
    struct slice user_id;
};

struct message {
    enum message_type type;
    struct slice id; /* as the client gave it, raw JSON, echoed in the reply; or SLICE_NONE */
    union {
        enum activity heartbeat;
        struct id_list users; /* subscribe, unsubscribe, query */
        struct slice token;   /* refresh_token */
        struct slice chat_id; /* open_chat, close_chat, typing_start, typing_stop */
        struct send_message send;
        struct {
            struct slice chat_id;
            int64_t sequence;
        } ack;
        struct sync_request sync;
        struct call_fields call; /* all commands and events about calls */
        struct connection_established established;
        int64_t server_time_ms; /* heartbeat_ack */
        struct message_error error;
        struct {
            const struct presence *presences;
            size_t count;
        } snapshot;
        struct presence_change change;
        struct chat_snapshot chat_snapshot;
        struct typing_change typing;
        struct message_ack message_ack;
        struct chat_message chat_message;
        struct sync_response sync_response;
        struct contact_fields contact;
        struct {                     /* delivery, event_ack */
            struct slice data;       /* raw JSON */
            struct slice event_name; /* of a delivery; empty: it has none */
        };
        struct custom_event event;
        struct connection_closing closing;
        struct {
            struct slice name;    /* of the event's type */
            struct slice fields;  /* a JSON object */
            struct slice chat_id; /* of a chat message */
            int64_t sequence;     /* of a chat message; 0: it is none */
            uint64_t event_id;    /* the same on every gateway; 0: none */
        } relay;
    };
};

const char *message_type_name(enum message_type type);

/* The name of a message on the wire, also of a relayed one. */
struct slice message_name(const struct message *message);

/* Returns MESSAGE_INVALID when no client message has this name. */
enum message_type message_type_from_client(struct slice name);

/* The name between gateways; NULL for PRESENCE_ANNOUNCE_NOTHING. */
const char *presence_announcement_name(enum presence_announcement announcement);
enum presence_announcement presence_announcement_parse(struct slice name);

const char *error_code_name(enum error_code code);
const char *closing_reason_name(enum closing_reason reason);

/* Returns CLOSING_REASON_COUNT for an unknown name. */
enum closing_reason closing_reason_parse(struct slice name);

#endif

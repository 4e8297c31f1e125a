/*
 * The internal header of the client: its parts and who owns what. Not installed.
 *
 *   client.c             the interface for the application: opening, waiting, processing; events, state
 *   reconnect.c          how a connection begins and ends: back-off, fresh tokens, what is restored
 *   transport.c          the WebSocket: handshake, frames
 *   link.c, secure.c     its TCP connection, with or without TLS
 *   incoming.c           messages from the server, by type
 *   chats.c              chats that are followed or open
 *   outbox.c             messages that are not acknowledged yet
 *   commands.c           all other commands of the application
 *   token.c              when tokens are replaced
 *   repeated_command.c   commands that are repeated until they are answered
 *
 * Nothing here blocks (except name resolution), and only client_emit() calls the application. Every lost
 * connection goes through client_lost(). It frees no part that a caller still holds, because callbacks cannot
 * reach it.
 */
#ifndef ROLLCALL_CLIENTS_C_CLIENT_H
#define ROLLCALL_CLIENTS_C_CLIENT_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/random.h"
#include "link.h"
#include "protocol/websocket/websocket.h"
#include "protocol/websocket/websocket_encode.h"
#include "rollcall.h"

#define CLIENT_CALL_ID "call " /* the ids of commands about a call begin with it */

enum {
    CLIENT_HANDSHAKE_MS = 10000, /* from connect() to connection_established */
    CLIENT_CLOSE_MS = 2000,      /* for the server to answer our close */
    CLIENT_STABLE_MS = 10000,    /* a connection that lasts this long resets the back-off */
    CLIENT_REPLY_MS = 30000,     /* repeat a command without an answer after this time */
    CLIENT_RETRY_MIN_MS = 100,   /* never retry sooner, whatever the server says */
    CLIENT_WAIT_MAX_MS = 600000, /* never wait longer, whatever the server says */
    CLIENT_WHY_BYTES = 192,      /* the reason of a close frame, with its code */
    CLIENT_OUT_BYTES_MAX = 1 << 20,
    CLIENT_MESSAGE_BYTES_MAX = 8 << 20,
    CLIENT_SYNC_PAGE = 200,
    CLIENT_CHAT_COMMANDS_MAX =
        8, /* pending at once, so that many chats stay within the rate limit */
};

/* A page that did not fit would be requested again on every connection. An escaped byte takes six. */
_Static_assert(CLIENT_SYNC_PAGE *(6 * (ROLLCALL_BODY_BYTES_MAX + 3 * ROLLCALL_ID_BYTES_MAX) + 256) <
                   CLIENT_MESSAGE_BYTES_MAX,
               "a page of the longest messages fits");

/* A command that is repeated until the server answers it, with back-off while the server refuses it. */
struct repeated_command {
    bool wanted;
    unsigned number;   /* of the last one sent; 0: none, so an answer belongs to an earlier one */
    unsigned refusals; /* in a row */
    int64_t due_ms;    /* when to send it, or to repeat it */
};

/* A message that is not acknowledged yet. */
struct outgoing {
    struct outgoing *next;
    char *chat_id;
    char *client_message_id;
    char *body;
    struct repeated_command command;
};

struct chat {
    struct chat *next;
    bool followed;
    bool open;
    struct repeated_command opening;
    struct repeated_command syncing;
    int64_t requested_after; /* after_sequence of the last sync_request */
    int64_t sequence;        /* the last one given to the application */
    int64_t seen;            /* the highest one in any message of the server */
    char id[];
};

struct subscribed_user {
    struct subscribed_user *next;
    char user_id[];
};

struct rollcall {
    struct rollcall_options options;
    char *host;
    char *token;
    char *device_id;
    char *user_id; /* from connection_established; NULL before */
    enum rollcall_state state;
    void (*read_clock)(struct clock *clock); /* the system clock, or that of a test */
    struct clock clock;
    struct random random;
    bool in_callback;

    char *ca_file;
    struct link link;
    bool upgraded;                               /* the server has answered 101 */
    bool closing;                                /* the application has called rollcall_close() */
    char accept_key[WEBSOCKET_ACCEPT_BYTES + 1]; /* the expected answer of the server */
    struct websocket_decoder decoder;
    struct buffer in; /* the answer to the handshake */
    struct buffer out;
    size_t out_sent;

    unsigned attempts; /* failed ones since the last stable connection */
    int64_t retry_at_ms;
    int64_t server_retry_at_ms;      /* from connection_closing; < 0: none */
    int64_t not_before_ms;           /* from Retry-After of a 503 */
    int64_t established_ms;          /* < 0: not yet */
    const char *lost_code;           /* why the connection was lost: a code … */
    char lost_why[CLIENT_WHY_BYTES]; /* … and a text */
    bool stop_after;                 /* reconnecting is not allowed */
    bool refused;                    /* the server refused the token: 401, or a close with 4001 */
    bool at_once;                    /* it was a 401, so the next attempt does not wait */
    bool replaced;                   /* the token is a fresh one that no connection has used yet */
    int64_t deadline_ms;             /* of the handshake, or of the close */
    int64_t heartbeat_ms;
    int64_t expiry_ms;
    int64_t next_heartbeat_ms;
    int64_t last_received_ms; /* when the last bytes arrived */
    int activity;             /* -1 unknown, 0 idle, 1 active */

    struct outgoing *outbox;
    size_t outbox_count;
    bool outbox_limited; /* RATE_LIMITED: one message at a time, until all are acknowledged */
    struct chat *chats;
    size_t chat_count;
    struct subscribed_user *subscribed;
    size_t subscribed_count;
    struct repeated_command subscribing;
    int64_t skew_ms; /* the server's clock minus ours; the server's decides when a token expires */
    int64_t token_due_ms;    /* when to replace the token; INT64_MAX: not known */
    unsigned token_refusals; /* of a fresh token, in a row */
    unsigned last_number;    /* of a repeated command */
};

/* client.c */
void client_set_state(struct rollcall *client, enum rollcall_state state);
void client_emit(struct rollcall *client, const struct rollcall_event *event);
bool client_is_live(const struct rollcall *client);
/* Returns whether the text is a valid id: 1 to ROLLCALL_ID_BYTES_MAX bytes of UTF-8. */
bool client_is_id(const char *text);
void client_heartbeat(struct rollcall *client);

/* reconnect.c */
void client_connect(struct rollcall *client);
/* `why` is a text for people; borrowed. */
void client_lost(struct rollcall *client, const char *why);
/* Returns false when out of memory. */
bool client_established(struct rollcall *client, const char *user_id, double heartbeat_s,
                        double expiry_s, struct slice server_time);
/* connection_closing came: the server is about to close. after_ms < 0: it did not say when to reconnect. */
void client_note_closing(struct rollcall *client, bool reconnect_allowed, int64_t after_ms);

/* Returns the wait after this many failures: 1, 2, 4, 8, 16 s, each ±20 %. */
int64_t client_backoff_ms(struct rollcall *client, unsigned failures);
/* Converts seconds from the server to milliseconds; any value is safe. */
int64_t client_milliseconds(double seconds);

/* token.c */
/* Asks the application for a token. Returns false if it has none. */
bool token_fetch(struct rollcall *client);
/* Before a handshake. */
void token_replace_if_expired(struct rollcall *client);
/* Decides when the token is replaced; for a new connection, and after the server accepted one. */
void token_schedule(struct rollcall *client);
/* Sends the current token. Returns false if the output buffer is full. */
bool token_send(struct rollcall *client);
void token_flush(struct rollcall *client);
/* Returns whether the answer with this id is about a token. */
bool token_answered(struct rollcall *client, struct slice id, bool accepted, int64_t after_ms);

/* repeated_command.c */
void repeated_command_want(struct repeated_command *command, int64_t now_ms);
/* Numbers the command before it is sent. */
unsigned repeated_command_number(struct rollcall *client, struct repeated_command *command);
void repeated_command_reset(struct repeated_command *command, bool wanted);
bool repeated_command_is_due(const struct repeated_command *command, int64_t now_ms);
/* Sets when the command is repeated; `sent` is false if the output buffer was full. */
void repeated_command_sent(struct rollcall *client, struct repeated_command *command, bool sent);
void repeated_command_answered(struct repeated_command *command);
/* The server cannot serve the command now; after_ms 0: it did not say when it can. */
void repeated_command_refused(struct rollcall *client, struct repeated_command *command,
                              int64_t after_ms);

/* transport.c: the WebSocket */
void transport_connect(struct rollcall *client);
void transport_process(struct rollcall *client, short revents);
void transport_close(struct rollcall *client, unsigned code);
void transport_drop(struct rollcall *client);
bool transport_send(struct rollcall *client, struct slice json);

/* incoming.c: messages from the server. Returns false when out of memory: then a message is missing, and only a
 * new connection brings it. */
bool incoming_message(struct rollcall *client, char *json, size_t len);

/* chats.c: following, syncing, opening */
void chats_reset(struct rollcall *client);
bool chats_synced(const struct rollcall *client);
void chats_flush(struct rollcall *client);
int64_t chats_due_ms(const struct rollcall *client);
/* The server may have lost pushes to this device. */
void chats_sync_followed(struct rollcall *client);
void chats_message(struct rollcall *client, const struct rollcall_event *event);
/* A message of this client was acknowledged; the server never pushes it back. `body` NULL: the stored body may
 * differ. */
void chats_own(struct rollcall *client, const struct rollcall_event *ack, const char *body);
void chats_page(struct rollcall *client, struct slice chat_id, bool has_more);
void chats_opened(struct rollcall *client, struct slice chat_id);
void chats_closed(struct rollcall *client, struct slice chat_id);
/* The command with this id was refused, finally or for some time. Returns true if it belongs to a chat; chat_id
 * then holds a copy of its id, because the application may drop the chat. */
bool chats_refused(struct rollcall *client, struct slice id, bool for_good, int64_t after_ms,
                   char chat_id[ROLLCALL_ID_BYTES_MAX + 1]);
void chats_free(struct rollcall *client);

/* commands.c: commands that are sent once, and presence subscriptions */
void commands_reset(struct rollcall *client);
void commands_flush(struct rollcall *client);
/* The command with this id was answered: refused for some time, or (for_good) done. Returns whether it is one
 * that this library repeats. */
bool commands_answered(struct rollcall *client, struct slice id, bool for_good, int64_t after_ms);
void commands_free(struct rollcall *client);

/* outbox.c: messages that are not acknowledged yet */
void outbox_flush(struct rollcall *client);
void outbox_reset(struct rollcall *client);
int64_t outbox_due_ms(const struct rollcall *client);
/* Removes and returns the message; the caller frees it with outgoing_free(). NULL: there is none. */
struct outgoing *outbox_detach(struct rollcall *client, const char *client_message_id);
void outbox_refused(struct rollcall *client, const char *client_message_id, bool limited,
                    int64_t after_ms);
void outgoing_free(struct outgoing **message);
void outbox_free(struct rollcall *client);

#endif

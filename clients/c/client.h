/*
 * The inside of a client: its parts and who owns what. Not installed.
 *
 *   client.c      the application's side: opening, waiting, processing; events and the state
 *   reconnect.c   how a connection begins and ends: back-off, fresh tokens, what is made again
 *   transport.c   the socket, the handshake, frames
 *   incoming.c    what the server says, by type
 *   chats.c       chats that are followed or open
 *   outbox.c      messages until they are acknowledged
 *   commands.c    everything else the application may ask for
 *
 * Nothing here blocks (but for the resolution of a name) or calls the application from anywhere but
 * client_emit(). Whatever loses the connection goes through client_lost(); it frees no part that a
 * caller further up still holds, since callbacks cannot reach it.
 */
#ifndef ROLLCALL_CLIENTS_C_CLIENT_H
#define ROLLCALL_CLIENTS_C_CLIENT_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/random.h"
#include "protocol/websocket/websocket.h"
#include "protocol/websocket/websocket_encode.h"
#include "rollcall.h"

enum {
    CLIENT_HANDSHAKE_MS = 10000, /* from the first packet to connection_established */
    CLIENT_CLOSE_MS = 2000,      /* for the server to answer our close */
    CLIENT_HELD_MS = 10000,      /* a connection that held so long ends a series of failures */
    CLIENT_REPLY_MS = 30000,     /* what was not answered for so long is asked again */
    CLIENT_RETRY_MIN_MS = 100,   /* a server that says "in 1 ms" is asked no sooner than this */
    CLIENT_WAIT_MAX_MS = 600000, /* guards against an absurd figure from the server */
    CLIENT_WHY_BYTES = 192,      /* a close frame's reason, and what goes with it */
    CLIENT_OUT_BYTES_MAX = 1 << 20,
    CLIENT_MESSAGE_BYTES_MAX = 8 << 20,
    CLIENT_SYNC_PAGE = 200,
    CLIENT_CHAT_COMMANDS_MAX = 8, /* on their way at once, so that many chats keep within rates */
};

/* A page that did not fit would be asked for again on every connection. Escaped, a byte takes six. */
_Static_assert(CLIENT_SYNC_PAGE *(6 * (ROLLCALL_BODY_BYTES_MAX + 3 * ROLLCALL_ID_BYTES_MAX) + 256) <
                   CLIENT_MESSAGE_BYTES_MAX,
               "a page of the longest messages fits");

/* A command that is repeated until the server has answered it, later and later if it cannot. */
struct errand {
    bool wanted;
    unsigned number;   /* of what was sent last; 0: an answer that comes is to something before */
    unsigned refusals; /* in a row */
    int64_t due_ms;    /* when to send it, or to send it again */
};

/* A message that is not acknowledged yet. */
struct outgoing {
    struct outgoing *next;
    char *chat_id;
    char *client_message_id;
    char *body;
    struct errand errand;
};

struct chat {
    struct chat *next;
    bool followed;
    bool open;
    struct errand opening;
    struct errand syncing;
    int64_t asked_after; /* the sequence of the last sync_request */
    int64_t sequence;    /* the last one given out */
    int64_t seen;        /* the highest the server has spoken of */
    char id[];
};

struct watched {
    struct watched *next;
    char user_id[];
};

struct rollcall {
    struct rollcall_options options;
    char *host;
    char *token;
    char *device_id;
    char *user_id; /* who the server says we are; NULL before it has */
    enum rollcall_state state;
    void (*read_clock)(struct clock *clock); /* the system's; tests have their own */
    struct clock clock;
    struct random random;
    bool in_callback;

    int fd;
    bool connected;                              /* the TCP connection stands */
    bool upgraded;                               /* the 101 has come */
    bool closing;                                /* the application said goodbye */
    char accept_key[WEBSOCKET_ACCEPT_BYTES + 1]; /* what the server has to answer */
    struct websocket_decoder decoder;
    struct buffer in; /* of the handshake's answer */
    struct buffer out;
    size_t out_sent;

    unsigned attempts; /* since a connection last held */
    int64_t retry_at_ms;
    int64_t server_retry_at_ms;      /* what connection_closing asked for; < 0: nothing */
    int64_t not_before_ms;           /* what a 503 asked for */
    int64_t established_ms;          /* < 0: not yet */
    const char *lost_code;           /* why the connection was lost: for the program, … */
    char lost_why[CLIENT_WHY_BYTES]; /* … and in words */
    bool stop_after;                 /* reconnecting is not allowed */
    bool refused;                    /* the token was: by 401, or by closing with 4001 */
    bool at_once;                    /* it was 401: the next attempt need not wait */
    bool replaced;                   /* by a fresh one that no connection has proved good */
    int64_t deadline_ms;             /* of the handshake, or of our close */
    int64_t heartbeat_ms;
    int64_t expiry_ms;
    int64_t next_heartbeat_ms;
    int64_t heard_ms;
    int activity; /* -1 unsaid, 0 idle, 1 active */

    struct outgoing *outbox;
    size_t outbox_count;
    struct chat *chats;
    size_t chat_count;
    struct watched *watched;
    size_t watched_count;
    struct errand watching;
    unsigned last_number; /* of an errand */
};

/* client.c */
void client_set_state(struct rollcall *client, enum rollcall_state state);
void client_emit(struct rollcall *client, const struct rollcall_event *event);
bool client_is_live(const struct rollcall *client);
/* Whether a text can be an id: 1 to ROLLCALL_ID_BYTES_MAX bytes of UTF-8. */
bool client_is_id(const char *text);
void client_heartbeat(struct rollcall *client);

/* reconnect.c */
void client_connect(struct rollcall *client);
/* `why` in words; borrowed. */
void client_lost(struct rollcall *client, const char *why);
/* False when memory is short. */
bool client_established(struct rollcall *client, const char *user_id, double heartbeat_s,
                        double expiry_s);
void client_told_to_go(struct rollcall *client, bool reconnect_allowed, int64_t after_ms);

/* The wait after so many failures: 1, 2, 4, 8, 16 s, each a fifth more or less. */
int64_t client_backoff_ms(struct rollcall *client, unsigned failures);
/* A server's seconds as milliseconds, whatever it sent. */
int64_t client_milliseconds(double seconds);

/* errand.c */
void errand_want(struct errand *errand, int64_t now_ms);
/* Numbers what is about to be sent. */
unsigned errand_number(struct rollcall *client, struct errand *errand);
void errand_reset(struct errand *errand, bool wanted);
bool errand_is_due(const struct errand *errand, int64_t now_ms);
/* Sent, or not (the way out is full): either way it is due again when no answer comes. */
void errand_sent(struct rollcall *client, struct errand *errand, bool sent);
void errand_answered(struct errand *errand);
/* The server cannot now; after_ms 0: it did not say until when. */
void errand_refused(struct rollcall *client, struct errand *errand, int64_t after_ms);

/* transport.c: the socket, the handshake, frames */
void transport_connect(struct rollcall *client);
void transport_process(struct rollcall *client, short revents);
void transport_close(struct rollcall *client, unsigned code);
void transport_drop(struct rollcall *client);
bool transport_send(struct rollcall *client, struct slice json);

/* incoming.c: what the server says. False when memory was short: then something is missing, which
 * only a new connection makes up for. */
bool incoming_message(struct rollcall *client, char *json, size_t len);

/* chats.c: following, syncing, opening */
void chats_reset(struct rollcall *client);
bool chats_synced(const struct rollcall *client);
void chats_flush(struct rollcall *client);
int64_t chats_due_ms(const struct rollcall *client);
void chats_message(struct rollcall *client, const struct rollcall_event *event);
/* Our own message was acknowledged: it is never pushed to us. `body` NULL: what is stored may be
 * another body. */
void chats_own(struct rollcall *client, const struct rollcall_event *ack, const char *body);
void chats_page(struct rollcall *client, struct slice chat_id, bool has_more);
void chats_opened(struct rollcall *client, struct slice chat_id);
void chats_closed(struct rollcall *client, struct slice chat_id);
/* The command with this id was refused: for good, or until later. Answers whether it was a chat's;
 * chat_id is then whose, copied, since the application may let go of the chat. */
bool chats_refused(struct rollcall *client, struct slice id, bool for_good, int64_t after_ms,
                   char chat_id[ROLLCALL_ID_BYTES_MAX + 1]);
void chats_free(struct rollcall *client);

/* commands.c */
void commands_reset(struct rollcall *client);
void commands_flush(struct rollcall *client);
bool commands_refused(struct rollcall *client, struct slice id, bool for_good, int64_t after_ms);
void commands_free(struct rollcall *client);

/* outbox.c: messages until they are acknowledged */
void outbox_flush(struct rollcall *client);
void outbox_reset(struct rollcall *client);
int64_t outbox_due_ms(const struct rollcall *client);
/* Takes the message out; the caller frees it with outgoing_free(). NULL: there is none. */
struct outgoing *outbox_detach(struct rollcall *client, const char *client_message_id);
void outbox_refused(struct rollcall *client, const char *client_message_id, int64_t after_ms);
void outgoing_free(struct outgoing **message);
void outbox_free(struct rollcall *client);

#endif

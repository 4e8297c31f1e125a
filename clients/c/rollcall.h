/*
 * The client library of Rollcall for C: the connection of one user to a Rollcall server. It reconnects by itself
 * for as long as you keep it open.
 *
 * It has no threads and never blocks (except for name resolution). Your own loop waits on its descriptor:
 *
 *     struct rollcall *client = rollcall_open(&options);
 *     for (;;) {
 *         struct pollfd fd = {.fd = rollcall_fd(client), .events = rollcall_poll_events(client)};
 *         poll(&fd, 1, rollcall_wait_ms(client));      // fd.fd may be -1: then it only waits
 *         rollcall_process(client, fd.revents);
 *     }
 *
 * All events come through the `event` callback, which only rollcall_process() calls. The callback may call any
 * function of this header except rollcall_free() and rollcall_process().
 *
 *   DISCONNECTED ─process► CONNECTING ──connection_established──► SYNCING ──chats synced──► READY
 *                               │ failed                             │                      │
 *   BACKOFF ◄───────────────────┴────────────────────────────────────┴── lost or closed ────┘
 *      └── 1, 2, 4, 8, 16 s (± 20 %), or what the server asked for ──► CONNECTING
 *          (from 1 s again after a connection that lasted ten seconds)
 *   STOPPED: after rollcall_close(), when the server does not allow reconnecting, or when it refused the
 *            token and there is no fresh one, or refused that too
 *
 * What it does for you across reconnects:
 *   - it sends heartbeats and notices a dead server;
 *   - it restores presence subscriptions and open chats;
 *   - it sends your messages again with the same client_message_id until they are acknowledged or refused; one at
 *     a time per chat, so that they cannot overtake each other;
 *   - it gives you every message of the chats you follow, once and in order, your own included; it fetches
 *     messages that it missed.
 * It retries commands that the server cannot serve now (RATE_LIMITED, SERVER_BUSY, SERVICE_UNAVAILABLE) when the
 * server says so, or with back-off.
 *
 * Limits: ROLLCALL_OUTBOX_MAX pending messages, ROLLCALL_CHATS_MAX followed chats, ROLLCALL_SUBSCRIPTIONS_MAX
 * presence subscriptions, ids of 1 to ROLLCALL_ID_BYTES_MAX bytes. Beyond them a function returns false.
 *
 * Strings are UTF-8; a function returns false for an id or a body that is not. Arguments are copied; what an
 * event points to is valid during the callback.
 */
#ifndef ROLLCALL_H
#define ROLLCALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ROLLCALL_OUTBOX_MAX = 256,
    ROLLCALL_CHATS_MAX = 256,
    ROLLCALL_SUBSCRIPTIONS_MAX = 20,
    ROLLCALL_ID_BYTES_MAX = 128,
    ROLLCALL_BODY_BYTES_MAX = 4096,
};

enum rollcall_state {
    ROLLCALL_DISCONNECTED,
    ROLLCALL_CONNECTING,
    ROLLCALL_SYNCING,
    ROLLCALL_READY,
    ROLLCALL_BACKOFF,
    ROLLCALL_STOPPED,
};

enum rollcall_event_type {
    ROLLCALL_EVENT_STATE,   /* state; with BACKOFF: wait_ms; with BACKOFF and STOPPED: code, text */
    ROLLCALL_EVENT_MESSAGE, /* chat_id, message_id, sequence, user_id (the sender), body */
    ROLLCALL_EVENT_SENT,    /* chat_id, client_message_id, message_id, sequence, duplicate */
    ROLLCALL_EVENT_REFUSED, /* of a message, for good: chat_id, client_message_id, code, text */
    ROLLCALL_EVENT_PRESENCE, /* user_id, status, version; json has the rest */
    ROLLCALL_EVENT_ERROR, /* any other error: code, text; chat_id if following or opening it failed, call_id if it
                             is about a call; wait_ms: how long to wait before you try again, 0 if unknown */
    ROLLCALL_EVENT_OTHER, /* any other message of the server: name, json; with "ok" and the rest about a call: call_id */
};

/* Texts are terminated and never NULL; those that do not apply are "". `code` comes from the server, except with a
 * state: DISCONNECTED (the connection was lost or failed), UNAUTHENTICATED (the token was refused) or CLOSED (by
 * rollcall_close(), or by a server that does not allow reconnecting). `text` explains it for people. */
struct rollcall_event {
    enum rollcall_event_type type;
    enum rollcall_state state;
    int64_t wait_ms;
    const char *
        name; /* the server's type: "typing_changed", "chat_added", "receipt", "call_incoming", … */
    const char *chat_id;
    const char *message_id;
    const char *client_message_id;
    const char *user_id;
    const char *call_id;
    const char *id; /* of the command that this answers, if you gave it one as a string */
    const char *status;
    const char *body;
    size_t body_len; /* a body may contain '\0' */
    const char *code;
    const char *text;
    int64_t sequence;
    int64_t version; /* of a user's presence; ignore it if you have seen a higher one */
    bool duplicate;
    /* The object as the server sent it; each item of a page or a snapshot is one. "" for states and for your own
     * messages, which the server only acknowledges. */
    const char *json;
    size_t json_len;
};

struct rollcall;

struct rollcall_options {
    const char *host; /* a name is resolved when connecting, which blocks; an address is not */
    uint16_t port;
    const char *token;
    const char *device_id; /* NULL: the server chooses one for every connection */
    void (*event)(void *arg, const struct rollcall_event *event);
    /* Returns a fresh token: before the last one expires, and after the server has refused it. The client copies it.
     * The function may be NULL or return NULL; then the client stops when the server refuses the last one. It must
     * not call the library. */
    const char *(*fresh_token)(void *arg);
    void *arg;
    bool tls;            /* TLS 1.2 or newer; the certificate must be valid for `host` */
    const char *ca_file; /* with the certificates that are trusted (PEM); NULL: the system's */
    uint32_t hurry;      /* divides all back-off waits, for tests; 0 and 1: no division */
};

/* Starts to connect. Returns NULL when out of memory. */
struct rollcall *rollcall_open(const struct rollcall_options *options);

/* Closes the connection in order; rollcall_process() reaches STOPPED within two seconds. Messages that are not
 * acknowledged by then are lost. */
void rollcall_close(struct rollcall *client);

/* Closes at once and nulls the pointer. Do not call it from the callback. */
void rollcall_free(struct rollcall **client);

/* For your loop: the descriptor to wait on (-1: none; it changes with each reconnect), the poll() events, and for
 * how long (-1: for ever, the client has stopped). Call them before every wait. */
int rollcall_fd(const struct rollcall *client);
short rollcall_poll_events(const struct rollcall *client);
int rollcall_wait_ms(const struct rollcall *client);

/* Does the pending work. `revents` is the result of poll() for the descriptor; 0 after a timeout. Do not call it
 * from the callback. */
void rollcall_process(struct rollcall *client, short revents);
enum rollcall_state rollcall_get_state(const struct rollcall *client);

/* Sets whether the user is active on this device; sent at once on a change, and with heartbeats. */
void rollcall_set_active(struct rollcall *client, bool active);

/* Sends a new token on the current connection, and keeps it for the next one. */
bool rollcall_refresh_token(struct rollcall *client, const char *token);

/* Subscribes to a user's presence: one event with the current state, then one for every change. */
bool rollcall_subscribe(struct rollcall *client, const char *user_id);
bool rollcall_unsubscribe(struct rollcall *client, const char *user_id);

/* Follows a chat from the message after `after_sequence` on. Messages of chats that you do not follow arrive as
 * the server pushes them, without these guarantees. */
bool rollcall_follow(struct rollcall *client, const char *chat_id, int64_t after_sequence);
bool rollcall_unfollow(struct rollcall *client, const char *chat_id);

/* Acknowledges the chat up to this sequence, which moves the user's read mark: others who have the chat open get the
 * event "receipt" (ROLLCALL_EVENT_OTHER). Returns false while there is no connection. */
bool rollcall_ack(struct rollcall *client, const char *chat_id, int64_t sequence);

/* Sends a message. `client_message_id` NULL: the library chooses one. A SENT or REFUSED event follows later.
 * Returns false and keeps nothing if the outbox is full, a text is too long, empty or not UTF-8, a message with
 * this id is pending, or the client has stopped. */
bool rollcall_send(struct rollcall *client, const char *chat_id, const char *client_message_id,
                   const char *body);

/* Opens or closes a chat. While it is open, the server sends its members' presence and typing: one PRESENCE event for
 * each member now, then "chat_snapshot" (ROLLCALL_EVENT_OTHER), then the changes. */
bool rollcall_open_chat(struct rollcall *client, const char *chat_id);
bool rollcall_close_chat(struct rollcall *client, const char *chat_id);
bool rollcall_typing(struct rollcall *client, const char *chat_id, bool typing);

/* Sends an event of the application to its server: "event_ack" (ROLLCALL_EVENT_OTHER) has the answer in `json`, or an
 * ERROR follows; both have the `id` that you give here (1 to ROLLCALL_ID_BYTES_MAX bytes). `data_json` is any JSON value.
 * Returns false while there is no connection. */
bool rollcall_send_event(struct rollcall *client, const char *id, const char *name,
                         const char *data_json);

/* Voice and video calls: request one with `to`, then use its id. `call_id` NULL: the library chooses one, and the
 * event "call_ringing" has it. The server answers each command with an event that has the call_id: "call_ringing",
 * "ok" (not for signals) or an ERROR. `data_json` is any JSON value. They return false while there is no
 * connection, and for an id that is none. */
bool rollcall_call_request(struct rollcall *client, const char *to, const char *call_id);
bool rollcall_call_accept(struct rollcall *client, const char *call_id);
bool rollcall_call_reject(struct rollcall *client, const char *call_id);
bool rollcall_call_end(struct rollcall *client, const char *call_id);
bool rollcall_call_signal(struct rollcall *client, const char *call_id, const char *data_json);

/* Sends any other command, as a JSON object. Returns false while there is no connection; it is not kept. */
bool rollcall_command(struct rollcall *client, const char *json);

const char *rollcall_state_name(enum rollcall_state state);

#ifdef __cplusplus
}
#endif

#endif

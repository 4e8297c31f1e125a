/*
 * Rollcall's client library for C: one user's connection to a Rollcall server, kept for as long as you
 * want it, over as many sockets as that takes.
 *
 * It has no threads and never blocks (but to resolve a name). Your own loop waits on its descriptor:
 *
 *     struct rollcall *client = rollcall_open(&options);
 *     for (;;) {
 *         struct pollfd fd = {.fd = rollcall_fd(client), .events = rollcall_poll_events(client)};
 *         poll(&fd, 1, rollcall_wait_ms(client));      // fd.fd may be -1: then it only waits
 *         rollcall_process(client, fd.revents);
 *     }
 *
 * Everything that happens comes through the `event` callback, from inside rollcall_process() and only
 * from there; it may call any function of this header but rollcall_free() and rollcall_process().
 *
 *   DISCONNECTED ─process► CONNECTING ──connection_established──► SYNCING ──chats synced──► READY
 *                               │ failed                             │                      │
 *   BACKOFF ◄───────────────────┴────────────────────────────────────┴── lost or closed ────┘
 *      └── 1, 2, 4, 8, 16 s (± 20 %), or what the server asked for ──► CONNECTING
 *          (from 1 s again after a connection that held ten seconds)
 *   STOPPED: rollcall_close(), the server said that reconnecting is not allowed, or it refused the
 *            token and there is no other, or the fresh one too
 *
 * What it keeps for you over reconnects:
 *   - heartbeats, and noticing that the server has gone;
 *   - presence subscriptions, open chats: made again;
 *   - messages you sent: sent again under the same client_message_id until they are acknowledged or
 *     refused; one at a time per chat, so that they cannot overtake each other;
 *   - chats you follow: every message is given to you once and in order, your own among them, fetched
 *     where it was missed.
 * What the server cannot do now (RATE_LIMITED, SERVER_BUSY, SERVICE_UNAVAILABLE) is tried again by
 * itself, when the server said or with back-off.
 *
 * Bounds: ROLLCALL_OUTBOX_MAX messages waiting, ROLLCALL_CHATS_MAX chats followed,
 * ROLLCALL_SUBSCRIPTIONS_MAX users watched, ids of 1 to ROLLCALL_ID_BYTES_MAX bytes; what passes them is
 * refused with false.
 *
 * Strings are UTF-8; an id or a body that is not is refused with false. What you pass is copied; what an
 * event points to lasts for the callback.
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
    ROLLCALL_EVENT_STATE,   /* state; of BACKOFF: wait_ms; of BACKOFF and STOPPED why: code, text */
    ROLLCALL_EVENT_MESSAGE, /* chat_id, message_id, sequence, user_id (the sender), body */
    ROLLCALL_EVENT_SENT,    /* chat_id, client_message_id, message_id, sequence, duplicate */
    ROLLCALL_EVENT_REFUSED, /* a message, for good: chat_id, client_message_id, code, text */
    ROLLCALL_EVENT_PRESENCE, /* user_id, status, version; json has the rest */
    ROLLCALL_EVENT_ERROR, /* any other error: code, text; chat_id if following or opening it failed */
    ROLLCALL_EVENT_OTHER, /* everything else the server said: name, json */
};

/* Texts are terminated and never NULL; those that do not apply are "". `code` is the server's, but for a
 * state: DISCONNECTED (the connection was lost, or not made), UNAUTHENTICATED (the token was refused) or
 * CLOSED (by rollcall_close(), or by a server that does not want this client back); `text` says it in
 * words, for people. */
struct rollcall_event {
    enum rollcall_event_type type;
    enum rollcall_state state;
    int64_t wait_ms;
    const char *name; /* the server's type: "typing_changed", "call_incoming", … */
    const char *chat_id;
    const char *message_id;
    const char *client_message_id;
    const char *user_id;
    const char *status;
    const char *body;
    size_t body_len; /* a body may hold '\0' */
    const char *code;
    const char *text;
    int64_t sequence;
    int64_t version; /* of a user's presence; a lower one than you know is old news */
    bool duplicate;
    const char
        *json; /* the object as the server sent it, of a page or a snapshot each of its own; "" for
                       * states and for your own messages, which the server only acknowledges */
    size_t json_len;
};

struct rollcall;

struct rollcall_options {
    const char *host; /* a name is resolved when connecting, which blocks; an address is not */
    uint16_t port;
    const char *token;
    const char *device_id; /* NULL: the server makes one up for every connection */
    void (*event)(void *arg, const struct rollcall_event *event);
    /* A fresh token for the next connection, asked for when the server refused the last one; may be
     * NULL, as may the token it returns (then the client stops). Copied. It must not call back. */
    const char *(*fresh_token)(void *arg);
    void *arg;
    uint32_t hurry; /* divides all back-off waits: for tests; 0 and 1 mean the contract's own */
};

/* Starts to connect. NULL when memory is short. */
struct rollcall *rollcall_open(const struct rollcall_options *options);

/* Says goodbye and stops; rollcall_process() brings it to STOPPED, within two seconds. Messages that
 * are not acknowledged by then are lost. */
void rollcall_close(struct rollcall *client);

/* Ends it at once and nulls the pointer. Not from inside the callback. */
void rollcall_free(struct rollcall **client);

/* For your loop: what to wait on (-1: nothing; another one after each reconnect), for which poll()
 * events, and for how long (-1: for ever, it has stopped). Ask anew before every wait. */
int rollcall_fd(const struct rollcall *client);
short rollcall_poll_events(const struct rollcall *client);
int rollcall_wait_ms(const struct rollcall *client);

/* Does what is due. `revents` is what poll() said of the descriptor; 0 when it timed out. Not from inside
 * the callback. */
void rollcall_process(struct rollcall *client, short revents);
enum rollcall_state rollcall_get_state(const struct rollcall *client);

/* Whether the user is at the device; sent with the next heartbeat, and at once when it changed. */
void rollcall_set_active(struct rollcall *client, bool active);

/* Gives the server another token on the living connection, and keeps it for the next. */
bool rollcall_refresh_token(struct rollcall *client, const char *token);

/* Watches users' presence: an event with how things stand, then one for every change. */
bool rollcall_subscribe(struct rollcall *client, const char *user_id);
bool rollcall_unsubscribe(struct rollcall *client, const char *user_id);

/* Follows a chat from the message after `after_sequence` on. Messages of chats that you do not follow
 * are given to you as they come, without these promises. */
bool rollcall_follow(struct rollcall *client, const char *chat_id, int64_t after_sequence);
bool rollcall_unfollow(struct rollcall *client, const char *chat_id);

/* Tells the server up to where this device has got. False while there is no connection. */
bool rollcall_ack(struct rollcall *client, const char *chat_id, int64_t sequence);

/* Sends a message. `client_message_id` NULL: one is made. Answered by SENT or REFUSED, some time.
 * False, and nothing is kept, when the outbox is full, a text is too long, empty or no UTF-8, that id waits
 * already, or the client has stopped. */
bool rollcall_send(struct rollcall *client, const char *chat_id, const char *client_message_id,
                   const char *body);

/* Opens and closes a chat (its presence and typing are pushed while it is open). */
bool rollcall_open_chat(struct rollcall *client, const char *chat_id);
bool rollcall_close_chat(struct rollcall *client, const char *chat_id);
bool rollcall_typing(struct rollcall *client, const char *chat_id, bool typing);

/* Calls: request with `to`, the others with the call's id; `data_json` is any JSON value. */
bool rollcall_call_request(struct rollcall *client, const char *to, const char *call_id);
bool rollcall_call_accept(struct rollcall *client, const char *call_id);
bool rollcall_call_reject(struct rollcall *client, const char *call_id);
bool rollcall_call_end(struct rollcall *client, const char *call_id);
bool rollcall_call_signal(struct rollcall *client, const char *call_id, const char *data_json);

/* Any other command, as a JSON object. False while there is no connection: it is not kept. */
bool rollcall_command(struct rollcall *client, const char *json);

const char *rollcall_state_name(enum rollcall_state state);

#ifdef __cplusplus
}
#endif

#endif

/*
 * Connection state recovery: a Socket.IO client that was cut off comes back as the same session and gets the events
 * it missed.
 *
 *   CONNECT ──► a public id, and a private id that is sent to this client only
 *   events sent ──► the session's backlog (backlog.h), each with an offset that the client remembers
 *   cut ──socketio_recovery_park()──► store/recovery_store.h, where delivery adds later events
 *   CONNECT with pid and offset ──► a lease, so that events reach this gateway
 *       ──socketio_recovery_take()──► the same ids, the missed events, and the same subscriptions, whose replies
 *       contain the current states
 *
 * An event may come twice, among the missed ones and by itself: the second copy is dropped. Offsets grow along a
 * connection and from one connection to the next, on any gateway: missed events get new offsets beyond all
 * that the client may have seen.
 *
 * Only events that are owed are kept: messages, deliveries, contact and call events. States (presence, typing) are
 * read again instead. A session can be recovered if its connection broke, fell silent, or was closed by the client
 * without leaving the namespace; also if its gateway drains and the store outlives the gateway. A client that
 * left, or was closed by the server for another reason, starts anew. Presence does not wait: the user goes offline
 * at once.
 *
 * The private id is a secret followed by the device id that was made for a client that named none. So a client that
 * comes back, recovered or not, is the same device from the start, including its lease: its calls and cursors go on.
 *
 * All of this is off when the context has no recovery store.
 */
#ifndef ROLLCALL_SOCKETIO_SOCKETIO_RECOVERY_H
#define ROLLCALL_SOCKETIO_SOCKETIO_RECOVERY_H

#include "socketio/backlog.h"
#include "socketio/socketio_session.h"

enum { SOCKETIO_PID_TEXT_MAX = 64 };

/* The session that a CONNECT asks to recover; pid_len 0: none. */
struct socketio_return {
    uint64_t offset;
    struct ulid device; /* from the private id; used if the client names no device */
    size_t pid_len;
    char pid[SOCKETIO_PID_TEXT_MAX];
};

/* A session taken from the store. */
struct socketio_recovered;

/* Reads pid and offset from a CONNECT's fields. Malformed ones are ignored. */
void socketio_return_read(const struct fields_scratch *scratch, struct socketio_return *out);

/* Appends the private id as text, as it is sent to the client. */
void socketio_pid_write(const struct socketio_session *socketio, struct buffer *out);

/* Takes over `recovered`; NULL: there is nothing to recover. */
typedef void (*socketio_recovery_done)(void *arg, struct socketio_recovered *recovered);

/* Takes a session from the store; `done` runs exactly once, possibly before this function returns. */
void socketio_recovery_take(struct session_context *context, struct slice user_id,
                            const struct socketio_return *wanted, socketio_recovery_done done,
                            void *arg);

void socketio_recovered_free(struct socketio_recovered **recovered);

/* Gives a session that is being connected its ids: those of `recovered`, or new ones if it is NULL. */
void socketio_recovery_name(struct socketio_session *socketio,
                            const struct socketio_recovered *recovered);

/* Sends the missed events and subscribes as before. */
void socketio_recovery_resume(struct socketio_session *socketio,
                              struct socketio_recovered *recovered);

/* session_hooks.on_event: keeps an event that was queued; NULL: it could not be queued. */
void socketio_recovery_note(struct session *session, struct blob *blob, uint64_t id);

/* session_hooks.has_event: whether this event was queued lately. */
bool socketio_recovery_has(const struct session *session, uint64_t id);

/* The connection of a session has ended: parks the session if it may be recovered. */
void socketio_recovery_park(struct socketio_session *socketio);

/* The user has left and the connection stays: drops the backlog, so that the next user does not get it. */
void socketio_recovery_forget(struct socketio_session *socketio);

/* Drops old events from the backlog. */
void socketio_recovery_tick(struct socketio_session *socketio);

#endif

/*
 * Connection state recovery: a Socket.IO client that was cut off comes back as the one it was, and gets
 * what it missed.
 *
 *   CONNECT ──► a public id, and a private one that only the client is told
 *   owed events ──► the session's backlog (backlog.h), each with an offset the client remembers
 *   cut ──socketio_recovery_park()──► store/recovery_store.h, where delivery adds what comes meanwhile
 *   CONNECT with pid and offset ──► a lease, so that events find the way here
 *       ──socketio_recovery_take()──► the same ids, what was missed, and the subscriptions made again, whose
 *       answers say how things are now
 *
 * An event may so come twice, among what was missed and by itself: the second is passed over. Offsets grow
 * along a connection and from one to the next, wherever it is: what was missed gets new ones, beyond all that
 * the client may have seen.
 *
 * Kept are events that are owed: messages, deliveries, what concerns contacts and calls. States (presence,
 * typing) are not replayed but asked for anew. What can be recovered: a connection that broke, fell silent
 * or was closed by its client without leaving the namespace; and one that is told to go elsewhere since its
 * gateway drains, where the store outlives that. Who left, or was closed by the server for another reason,
 * starts anew. The presence of a user does not wait: offline is told at once.
 *
 * The private id is a secret and, behind it, the id of the device that was made for who named none. So who comes
 * back, recovered or not, is that device from the start, its lease included: its calls and cursors go on.
 *
 * All of it is off where the context has no recovery store.
 */
#ifndef ROLLCALL_SOCKETIO_SOCKETIO_RECOVERY_H
#define ROLLCALL_SOCKETIO_SOCKETIO_RECOVERY_H

#include "socketio/backlog.h"
#include "socketio/socketio_session.h"

enum { SOCKETIO_PID_TEXT_MAX = 64 };

/* What a CONNECT asks to recover; pid_len 0: nothing. */
struct socketio_return {
    uint64_t offset;
    struct ulid device; /* that it says it was; for who names none */
    size_t pid_len;
    char pid[SOCKETIO_PID_TEXT_MAX];
};

/* A session given back. */
struct socketio_recovered;

/* Reads pid and offset of a CONNECT's fields. What is not understood asks for nothing. */
void socketio_return_read(const struct fields_scratch *scratch, struct socketio_return *out);

/* Appends the private id as its client is told it. */
void socketio_pid_write(const struct socketio_session *socketio, struct buffer *out);

/* Looks for it; `done` runs once, also before this returns, and owns what it gets; NULL: nothing to
 * recover. */
void socketio_recovery_take(struct session_context *context, struct slice user_id,
                            const struct socketio_return *wanted,
                            void (*done)(void *arg, struct socketio_recovered *recovered),
                            void *arg);

void socketio_recovered_free(struct socketio_recovered **recovered);

/* Gives a session that is being connected its ids: new ones, or those it had (NULL: none). */
void socketio_recovery_name(struct socketio_session *socketio,
                            const struct socketio_recovered *recovered);

/* Sends what was missed and subscribes as before. */
void socketio_recovery_resume(struct socketio_session *socketio,
                              struct socketio_recovered *recovered);

/* An owed event was queued, or found no room (NULL); `id` as in backlog.h. */
void socketio_recovery_note(struct session *session, struct blob *blob, uint64_t id);

/* Whether this event was queued lately. */
bool socketio_recovery_has(const struct session *session, uint64_t id);

/* The connection of a session has ended: keeps it, if it was cut. */
void socketio_recovery_park(struct socketio_session *socketio);

/* The user has left and the connection stays: what was owed to them is not owed to who connects next. */
void socketio_recovery_forget(struct socketio_session *socketio);

void socketio_recovery_tick(struct socketio_session *socketio);

#endif

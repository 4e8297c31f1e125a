/*
 * A pending reply: a session owes it to its client from the moment a command waits for a completion until
 * its one reply.
 *
 * A session has at most max_queue_depth pending replies; more commands are refused with SERVER_BUSY. When
 * the session ends first, its pending replies are orphaned: their completions find no session and only end
 * them.
 */
#ifndef ROLLCALL_SESSION_PENDING_REPLY_H
#define ROLLCALL_SESSION_PENDING_REPLY_H

#include "session/session.h"

struct pending_reply {
    struct pending_reply *next;
    struct session *session; /* NULL: orphaned */
    enum message_type type;
    bool cancelled;       /* by a later command of the client */
    struct slice id;      /* of the command; points behind the struct */
    struct slice chat_id; /* of a command that may be cancelled; borrowed from its handler */
};

/* Opens a pending reply to `message`. Returns NULL after telling the client why it is refused. */
struct pending_reply *pending_reply_open(struct session *session, const struct message *message);

/* Sends the reply (its id is filled in) and ends the pending reply. */
void pending_reply_send(struct pending_reply **pending, struct message *reply);
void pending_reply_error(struct pending_reply **pending, enum error_code code, const char *text);

/* Sends the error that belongs to a ledger status other than OK. */
void pending_reply_ledger_error(struct pending_reply **pending, enum ledger_status status);

/* Cancels the client's waiting commands of this type on this chat; their handlers check `cancelled` when they
 * continue. */
void pending_reply_cancel(struct session *session, enum message_type type, struct slice chat_id);

/* Ends it without a reply, for commands that are answered by their effect. */
void pending_reply_end(struct pending_reply **pending);

/* Orphans all pending replies: the session ends. */
void pending_reply_orphan_all(struct session *session);

#endif

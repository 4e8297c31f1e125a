/*
 * A request is an answer that is owed: from a command that needs others until its one reply.
 *
 * A session has at most max_queue_depth of them; more are refused with
 * SERVER_BUSY. When the session goes first, its requests are orphaned: their completions find no
 * session and merely end them.
 */
#ifndef ROLLCALL_SESSION_PENDING_REPLY_H
#define ROLLCALL_SESSION_PENDING_REPLY_H

#include "session/session.h"

struct pending_reply {
    struct pending_reply *next;
    struct session *session; /* NULL: orphaned */
    enum message_type type;
    bool taken_back;    /* a later command of the client's made it pointless */
    struct slice id;    /* points behind the struct */
    struct slice about; /* a chat, of what may be taken back; borrowed from whoever waits with it */
};

/* Owes an answer to `message`. NULL: the client was told why not. */
struct pending_reply *pending_reply_open(struct session *session, const struct message *message);

/* Gives the answer (its id is filled in) and ends the request. */
void pending_reply_reply(struct pending_reply **request, struct message *answer);
void pending_reply_error(struct pending_reply **request, enum error_code code, const char *text);

/* The error that goes with a ledger status other than OK. */
void pending_reply_ledger_error(struct pending_reply **request, enum ledger_status status);

/* The client takes back what it asked of this type about this: whoever waits sees it when it goes on. */
void pending_reply_take_back(struct session *session, enum message_type type, struct slice about);

/* Ends it without a word: a command that is answered by what it does. */
void pending_reply_end(struct pending_reply **request);

/* The session goes. */
void pending_reply_orphan_all(struct session *session);

#endif

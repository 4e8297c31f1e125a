/*
 * A mailbox takes mail from any thread and opens it on its owner's loop.
 *
 * Posting appends under a short lock and wakes the loop once; the owner splices the whole list out
 * under the lock and opens each mail outside it, at most MAILBOX_OPENED_PER_TURN a turn. Mail of one
 * sender arrives in order. The box is bounded: it is emptied only when the last lot has been opened, and
 * mailbox_post() says no while MAILBOX_MAIL_MAX wait in it; the sender then keeps the mail.
 *
 * Mail belongs to the box from a successful post until `open` is called with it, which then owns it.
 */
#ifndef ROLLCALL_NET_MAILBOX_H
#define ROLLCALL_NET_MAILBOX_H

#include "net/loop.h"

#include <pthread.h>
#include <stdbool.h>

enum { MAILBOX_MAIL_MAX = 1 << 16, MAILBOX_OPENED_PER_TURN = 4096 };

struct mail {
    struct mail *next;
    void (*open)(struct mail *mail, void *owner);
};

struct mailbox {
    struct loop_source source; /* an event descriptor */
    struct loop_task more;     /* goes on with what one turn left */
    struct loop *loop;
    void *owner;
    pthread_mutex_t lock;
    struct mail *posted; /* under the lock, with posted_end, count and awake */
    struct mail **posted_end;
    unsigned count;
    bool awake;
    struct mail *opened; /* spliced out, the owner's alone */
};

bool mailbox_init(struct mailbox *mailbox, struct loop *loop, void *owner);

/* Opens what is left, so that its owner can free it, and closes. Nobody may post any more, and the loop
 * makes no more turns. */
void mailbox_free(struct mailbox *mailbox);

/* From any thread. False when the box is full; the mail is then still the caller's. */
bool mailbox_post(struct mailbox *mailbox, struct mail *mail);

/* Whether nothing waits to be opened. Of the owner alone. */
bool mailbox_is_empty(struct mailbox *mailbox);

#endif

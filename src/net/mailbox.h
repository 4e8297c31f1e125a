/*
 * A mailbox hands work from any thread to one loop: the only list of this program that threads share with
 * a loop. Workers send each other events and connections through it; the ledger sends requests and their
 * answers through it (ledger/ledger_request_inbox.h).
 *
 * mailbox_post() appends under a short lock and wakes the loop once per batch. The loop takes the whole
 * list out under the lock and calls `on_open` for each mail outside it, at most MAILBOX_OPENED_PER_TURN per
 * turn. Mail from one thread arrives in order.
 *
 * The mailbox is bounded: the loop takes the next batch only after it has opened the last one, and
 * mailbox_post() refuses while `mail_max` wait; the sender then keeps the mail. A mailbox whose senders
 * limit themselves is MAILBOX_UNBOUNDED and never refuses. Posting allocates nothing.
 *
 * Mail belongs to the mailbox from a successful post until `on_open` is called with it, which then owns it.
 */
#ifndef ROLLCALL_NET_MAILBOX_H
#define ROLLCALL_NET_MAILBOX_H

#include "net/loop.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

enum { MAILBOX_MAIL_MAX = 1 << 16, MAILBOX_OPENED_PER_TURN = 4096 };

#define MAILBOX_UNBOUNDED UINT_MAX

struct mail {
    struct mail *next;
    void (*on_open)(struct mail *mail, void *owner);
};

struct mailbox {
    struct loop_source source; /* an eventfd */
    struct loop_task more;     /* opens the rest of a batch */
    struct loop *loop;
    void *owner;
    unsigned mail_max;
    pthread_mutex_t lock;
    struct mail *posted; /* under the lock, with posted_end, count and awake */
    struct mail **posted_end;
    unsigned count;
    bool awake;          /* the loop was woken for the posted mail */
    struct mail *opened; /* the batch that the loop took out; only the loop's thread uses it */
};

/* Returns false, with errno, when there is no eventfd for it. */
bool mailbox_init(struct mailbox *mailbox, struct loop *loop, unsigned mail_max, void *owner);

/* Opens all mail, also what is posted meanwhile, for a loop that makes no more turns. */
void mailbox_drain(struct mailbox *mailbox);

/* Opens the remaining mail, so that its owner can free it, and closes. No thread may post after that, and
 * the loop makes no more turns. */
void mailbox_free(struct mailbox *mailbox);

/* From any thread. Returns false when the mailbox is full; the caller then still owns the mail. */
bool mailbox_post(struct mailbox *mailbox, struct mail *mail);

/* Whether no mail waits to be opened. On the loop's thread only. */
bool mailbox_is_empty(struct mailbox *mailbox);

#endif

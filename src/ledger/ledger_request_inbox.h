/*
 * An inbox where any thread leaves ledger requests for one loop: the way into a backend that runs on a
 * loop, and the way back to a client on a loop. It is a mailbox (net/mailbox.h) without a bound:
 * posting allocates nothing and never fails; a caller that needs a bound counts before it posts.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_REQUEST_INBOX_H
#define ROLLCALL_LEDGER_LEDGER_REQUEST_INBOX_H

#include "ledger/ledger_request.h"
#include "net/mailbox.h"

/* Receives a posted chain on the loop, or NULL after a wake. */
typedef void (*ledger_request_inbox_hook)(void *arg, struct ledger_request *chain);

struct ledger_request_inbox {
    struct mailbox mailbox;
    struct mail wake_mail;
    ledger_request_inbox_hook on_requests;
    void *arg;
};

/* `on_requests` runs on the loop with each posted chain, in the order of posting, and with NULL after a wake.
 * Returns false, with errno, when there is no eventfd for it. */
bool ledger_request_inbox_init(struct ledger_request_inbox *inbox, struct loop *loop,
                               ledger_request_inbox_hook on_requests, void *arg);

/* Passes on all posted chains, also those posted meanwhile, for a loop that makes no more turns. */
void ledger_request_inbox_drain(struct ledger_request_inbox *inbox);

/* Passes the posted chains on and closes. No thread posts and the loop makes no turn from then on. */
void ledger_request_inbox_free(struct ledger_request_inbox *inbox);

/* From any thread. Takes the chain. `arg` is the inbox: this is a ledger_client's `post`. */
void ledger_request_inbox_post(void *arg, struct ledger_request *chain);

/* From any thread, once at most in the inbox's life: calls `on_requests` with NULL. */
void ledger_request_inbox_wake(struct ledger_request_inbox *inbox);

#endif

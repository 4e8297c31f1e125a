/*
 * Where any thread leaves requests for one loop: the way into a backend that lives on a loop, and the way
 * back to one who asks from a loop. Never out of memory, since the requests themselves are the links; who
 * needs a bound keeps count before posting.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_REQUEST_INBOX_H
#define ROLLCALL_LEDGER_LEDGER_REQUEST_INBOX_H

#include "ledger/ledger_request.h"
#include "net/loop.h"

#include <pthread.h>

struct ledger_request_inbox {
    struct loop_source source; /* an event descriptor */
    struct loop *loop;
    void (*taken)(void *arg, struct ledger_request *chain);
    void *arg;
    pthread_mutex_t lock;
    struct ledger_request *first; /* under the lock, with `end` */
    struct ledger_request **end;
};

/* `taken` gets whole chains on the loop, in the order they came; NULL when it was only woken. False, with
 * errno, when the system gives no descriptor. */
bool ledger_request_inbox_init(struct ledger_request_inbox *inbox, struct loop *loop,
                               void (*taken)(void *arg, struct ledger_request *chain), void *arg);

/* Gives out what is left and closes. Nobody may post any more, and the loop makes no more turns. */
void ledger_request_inbox_free(struct ledger_request_inbox *inbox);

/* From any thread. Takes the chain. `arg` is the inbox: this is a ledger_client's `post`. */
void ledger_request_inbox_post(void *arg, struct ledger_request *chain);

/* From any thread: has `taken` called. */
void ledger_request_inbox_wake(struct ledger_request_inbox *inbox);

#endif

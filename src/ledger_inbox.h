/*
 * Where the ledger's threads put what they finished for one worker, and from where the worker's loop
 * takes it: the other half of `struct ledger_client`. Never full and never out of memory, since the
 * requests themselves are the links.
 */
#ifndef ROLLCALL_LEDGER_INBOX_H
#define ROLLCALL_LEDGER_INBOX_H

#include "ledger/ledger.h"
#include "socket/loop.h"

#include <pthread.h>

struct ledger_inbox {
    struct loop_source source; /* an event descriptor */
    struct loop *loop;
    pthread_mutex_t lock;
    struct ledger_request *done; /* under the lock */
};

bool ledger_inbox_init(struct ledger_inbox *inbox, struct loop *loop);

/* After ledger_close(): completes what is left and closes. */
void ledger_inbox_free(struct ledger_inbox *inbox);

/* ledger_client.post */
void ledger_inbox_post(void *arg, struct ledger_request *done);

#endif

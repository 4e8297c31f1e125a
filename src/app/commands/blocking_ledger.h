/*
 * A blocking client of the ledger, for commands that do one operation and end.
 *
 * The command starts an operation on `client`; blocking_ledger_wait() runs its completion on the calling thread
 * and then returns. Only for programs that have nothing else to do.
 */
#ifndef ROLLCALL_APP_COMMANDS_BLOCKING_LEDGER_H
#define ROLLCALL_APP_COMMANDS_BLOCKING_LEDGER_H

#include "ledger/ledger.h"

#include <pthread.h>

struct blocking_ledger {
    struct ledger *ledger;
    struct ledger_client client;
    struct clock clock;
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    struct ledger_request *done; /* under the mutex */
};

/* Opens the ledger that `url` names (sqlite:PATH, which must exist, or dynamodb://REGION). On failure returns false and prints the
 * reason to standard error, in the name of `command`. */
bool blocking_ledger_open(struct blocking_ledger *blocking, const char *command, const char *url);

/* Waits until all operations are complete. */
void blocking_ledger_wait(struct blocking_ledger *blocking);

void blocking_ledger_close(struct blocking_ledger *blocking);

#endif

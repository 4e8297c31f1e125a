/*
 * A ledger for a command: opened, asked one thing at a time, waited for, closed.
 *
 * The completion of a call is the command's own; blocking_ledger_wait() returns after it has run, on the
 * calling thread. Only for programs that have nothing else to do.
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

/* Opens what `url` names (sqlite:PATH, which must exist). False after saying why on stderr, as
 * `command`. */
bool blocking_ledger_open(struct blocking_ledger *errand, const char *command, const char *url);

/* Waits until the call that was made is answered. */
void blocking_ledger_wait(struct blocking_ledger *errand);

void blocking_ledger_close(struct blocking_ledger *errand);

#endif

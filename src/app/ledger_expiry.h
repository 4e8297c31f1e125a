/*
 * Expires the pending ledger requests of a worker at their time limit, at most a twentieth of it too late.
 */
#ifndef ROLLCALL_APP_LEDGER_EXPIRY_H
#define ROLLCALL_APP_LEDGER_EXPIRY_H

#include "ledger/ledger.h"
#include "net/loop.h"

struct ledger_expiry {
    struct loop *loop; /* borrowed, like the client */
    struct ledger_client *client;
    struct wheel_timer timer;
};

/* Starts the timer; it runs as long as the loop turns. */
void ledger_expiry_start(struct ledger_expiry *expiry, struct loop *loop,
                         struct ledger_client *client);

#endif

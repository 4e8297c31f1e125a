/*
 * A ledger whose answers a test makes up, with a worker that asks it: for tests of what stands on the
 * ledger's port.
 *
 * Each request is given to `answer`, which fills in the outcome (LEDGER_OK and zeroes before). Answers
 * wait until script_ledger_turn(), as they do in a loop; while `holding`, requests wait before they are
 * answered at all. One thread.
 */
#ifndef ROLLCALL_TESTS_SCRIPT_LEDGER_H
#define ROLLCALL_TESTS_SCRIPT_LEDGER_H

#include "ledger/ledger_messages.h"
#include "ledger/ledger_request.h"

struct script_ledger {
    struct ledger ledger;
    struct ledger_client client;
    struct clock clock;
    void (*answer)(void *arg, struct ledger_request *request); /* NULL: `status` is all there is */
    void *arg;
    enum ledger_status status;
    bool holding;
    struct ledger_request *held;
    struct ledger_request *posted;
    unsigned asked[LEDGER_OPERATION_COUNT];
};

void script_ledger_init(struct script_ledger *script);

/* Answers what is held, then completes all there is until nothing more comes. */
void script_ledger_turn(struct script_ledger *script);

#endif

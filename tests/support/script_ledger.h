/*
 * A ledger whose answers a test scripts, with one client: for tests of code that uses the ledger's port.
 *
 * `answer` fills in the outcome of each request, which is LEDGER_OK and zero before. Answers wait until
 * script_ledger_turn(), as they would in a loop. While `holding`, requests wait before they are answered.
 * One thread.
 */
#ifndef ROLLCALL_TESTS_SCRIPT_LEDGER_H
#define ROLLCALL_TESTS_SCRIPT_LEDGER_H

#include "ledger/ledger_messages.h"
#include "ledger/ledger_request.h"

struct script_ledger {
    struct ledger ledger;
    struct ledger_client client;
    struct clock clock;
    void (*answer)(void *arg, struct ledger_request *request); /* NULL: only `status` is set */
    void *arg;
    enum ledger_status status;
    bool holding;
    struct ledger_request *held;
    struct ledger_request *posted;
    unsigned submitted[LEDGER_OPERATION_COUNT]; /* requests, by operation */
};

void script_ledger_init(struct script_ledger *script);

/* Answers the held requests, then completes requests until none are left. */
void script_ledger_turn(struct script_ledger *script);

#endif

/*
 * The conformance suite of the ledger: what every backend promises (ledger.h). A backend's test passes a
 * factory and runs the suite; each test gets an empty ledger.
 */
#ifndef ROLLCALL_TESTS_LEDGER_SUITE_H
#define ROLLCALL_TESTS_LEDGER_SUITE_H

#include "ledger/ledger.h"

struct ledger_suite_factory {
    const char *name;
    void *context;
    /* Opens an empty ledger; never returns NULL. */
    struct ledger *(*open)(void *context);
    /* Removes what `open` left behind, after the ledger was closed. */
    void (*clean)(void *context);
};

/* Runs all tests. Returns how many failed. */
int ledger_suite_run(const struct ledger_suite_factory *factory);

#endif

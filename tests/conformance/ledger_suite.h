/*
 * What every backend of the ledger must do, whatever it is made of. A backend's test gives a factory
 * and runs the suite; each test gets an empty ledger.
 */
#ifndef ROLLCALL_TESTS_LEDGER_SUITE_H
#define ROLLCALL_TESTS_LEDGER_SUITE_H

#include "ledger/ledger.h"

struct ledger_suite_factory {
    const char *name;
    void *context;
    /* An empty ledger; never NULL. */
    struct ledger *(*open)(void *context);
    /* Undoes what `open` left behind, after the ledger was closed. */
    void (*clean)(void *context);
};

/* Runs all tests; the number of those that failed. */
int ledger_suite_run(const struct ledger_suite_factory *factory);

#endif

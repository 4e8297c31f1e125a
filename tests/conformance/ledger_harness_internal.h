/* Shared by the files of the ledger's harness: each answer becomes one line of text. */
#ifndef ROLLCALL_TESTS_LEDGER_HARNESS_INTERNAL_H
#define ROLLCALL_TESTS_LEDGER_HARNESS_INTERNAL_H

#include "conformance/ledger_harness.h"

/* Begins the line of an answer with its status. Returns whether more is to be written. */
bool harness_begin(struct harness *harness, enum ledger_status status);

void harness_add(struct harness *harness, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Waits for the answer. Returns its line, which lasts until the next one. */
const char *harness_line(struct harness *harness);

/* The completion of operations whose outcome is only whether something changed. */
void harness_write_change(void *arg, const struct ledger_change_outcome *outcome);

/* The completion of operations that list ids. */
void harness_write_ids(void *arg, const struct ledger_ids_outcome *outcome);

/* Splits a list at its commas. Returns the number of items. */
size_t harness_split(const char *list, struct slice *ids, size_t count_max);

#endif

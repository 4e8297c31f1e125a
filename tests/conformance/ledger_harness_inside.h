/* What the rooms of the ledger's harness share: one line of text for every answer. */
#ifndef ROLLCALL_TESTS_LEDGER_HARNESS_INSIDE_H
#define ROLLCALL_TESTS_LEDGER_HARNESS_INSIDE_H

#include "conformance/ledger_harness.h"

/* Begins the line of an answer with its status; whether there is more to write. */
bool harness_begin(struct harness *harness, enum ledger_status status);

void harness_add(struct harness *harness, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Waits for the answer; its line, which lasts until the next. */
const char *harness_line(struct harness *harness);

/* For all that is answered with whether something changed. */
void harness_write_change(void *arg, const struct ledger_change_outcome *outcome);

/* The items of a list with commas; how many. */
size_t harness_split(const char *list, struct slice *ids, size_t count_max);

#endif

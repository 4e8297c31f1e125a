/*
 * Administration of the tables, for commands and tests: it waits for the answers, on a loop of its own.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_ADMIN_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_ADMIN_H

#include <stdbool.h>

enum { DYNAMODB_ADMIN_ERROR_MAX = 512, DYNAMODB_ADMIN_TIME_LIMIT_MS = 120 * 1000 };

/* Makes the tables of a ledger's URL that do not exist, and returns when all can be used: on-demand capacity, deletion protection,
 * point-in-time recovery, removal of expired items. On failure returns false and explains in `error`. */
bool dynamodb_admin_create_tables(const char *url, char error[DYNAMODB_ADMIN_ERROR_MAX]);

#endif

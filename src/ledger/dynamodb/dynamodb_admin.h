/*
 * Administration of the tables, for commands and tests: it waits for the answers, on a loop of its own.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_ADMIN_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_ADMIN_H

#include <stdbool.h>
#include <stddef.h>

enum { DYNAMODB_ADMIN_ERROR_MAX = 512, DYNAMODB_ADMIN_TIME_LIMIT_MS = 120 * 1000 };

/* Makes the tables of a ledger's URL that do not exist, and returns when all can be used: on-demand capacity, deletion
 * protection, point-in-time recovery where the endpoint has it, removal of expired items. What is missing at a table that
 * exists is added, apart from what cannot be changed or costs money (key, capacity). On failure returns false and explains
 * in `error`. */
bool dynamodb_admin_create_tables(const char *url, char error[DYNAMODB_ADMIN_ERROR_MAX]);

/* Takes a difference between a table, by its full name, and its description; both borrowed. */
typedef void (*dynamodb_admin_difference_hook)(void *arg, const char *table,
                                               const char *difference);

/* Tells each difference. On failure returns false and explains in `error`. */
bool dynamodb_admin_check_tables(const char *url, dynamodb_admin_difference_hook on_difference,
                                 void *arg, char error[DYNAMODB_ADMIN_ERROR_MAX]);

#endif

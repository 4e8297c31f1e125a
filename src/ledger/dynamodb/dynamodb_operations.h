/*
 * The operations of the DynamoDB ledger: one file per subject, one function per operation of the port.
 *
 * An operation runs on a fiber: its reads and writes (dynamodb_read.h, dynamodb_write.h) wait for their answers. It fills in its
 * field of the request's outcome and returns the status; for any status but LEDGER_OK the caller clears the outcome.
 * An operation need not check for failures: they are sticky in the task, and the caller then answers UNAVAILABLE, or
 * TIMEOUT when the time was up, whatever the operation returned.
 *
 * What one operation writes is one transaction. What it decides on is read before, so the transaction's conditions repeat
 * whatever the decision rests on; when one no longer holds, the operation reads and decides again, at most
 * DYNAMODB_DECISIONS_MAX times.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_OPERATIONS_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_OPERATIONS_H

#include "ledger/dynamodb/dynamodb_read.h"
#include "ledger/dynamodb/dynamodb_write.h"

typedef enum ledger_status (*dynamodb_operation)(struct dynamodb_task *task);

/* Executes the task's request and completes its outcome, also when it fails. */
void dynamodb_operations_execute(struct dynamodb_task *task);

/* Completes the outcome of a request of this task: `status`, or what a failure of the task makes of it. */
void dynamodb_operations_complete(struct dynamodb_task *task, struct ledger_request *request,
                                  enum ledger_status status);

/* ---- dynamodb_users.c ---- */

enum ledger_status dynamodb_users_settings_get(struct dynamodb_task *task);

#endif

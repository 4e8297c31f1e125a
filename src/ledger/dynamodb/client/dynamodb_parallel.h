/*
 * A task in parts that wait for DynamoDB at the same time: the pages of a large batch, the updates of many users.
 *
 * Parts are taken in order by the task's own fiber and by up to DYNAMODB_HELPERS_MAX - 1 others, as many as are free; without a
 * free one the task does them all itself, one after the other. So parts never wait for fibers that wait for parts.
 *
 * Threading: the ledger's own thread; only parts of one task, which do not overlap in memory, run alternately.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_PARALLEL_H
#define ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_PARALLEL_H

#include "ledger/dynamodb/client/dynamodb_client.h"

enum {
    DYNAMODB_HELPERS_MAX = 16,      /* fibers for one task */
    DYNAMODB_HELPERS_ALL_MAX = 128, /* for all tasks of a ledger */
};

/* Does one part. `part` is a task for its calls, with the memory of the whole task's request. */
typedef void (*dynamodb_part)(struct dynamodb_task *part, size_t at, void *arg);

/* Does the parts 0 to count - 1 and returns when all have ended. After a failure no further ones begin, and the task has
 * failed. */
void dynamodb_parallel(struct dynamodb_task *task, size_t count, dynamodb_part run, void *arg);

#endif

/*
 * One call of DynamoDB: signed, bounded in time, tried again by the failure table of docs/FAILURES.md.
 *
 *   answer                                   what happens
 *   throttled                                tried again, retry.max_attempts in all, exponentially 100 ms to 5 s
 *   conflict with another transaction        tried again, transaction_conflict.max_attempts in all, jittered 50 to 500 ms
 *   a condition failed                       DYNAMODB_REFUSED, with the reasons: the operation decides
 *   none, cut off, or an internal error      the outcome is unknown: the same bytes, with the same token, are sent again
 *   unavailable, or an error in the request  DYNAMODB_FAILED at once
 *
 * Nothing is tried beyond the task's deadline. A task runs on a fiber (fiber/fiber.h); a call suspends it until the
 * answer is there. The answer lies in the memory of the task's request.
 *
 * Failures are sticky in the task: after one, calls return DYNAMODB_FAILED at once, and the operation's answer is UNAVAILABLE
 * whatever the operation returns. So operations look only at what they need to know.
 *
 * Threading: the ledger's own thread.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_CLIENT_H
#define ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_CLIENT_H

#include "aws/aws_credentials.h"
#include "base/buffer.h"
#include "base/random.h"
#include "config/config.h"
#include "fiber/fiber.h"
#include "http_client/http_client.h"
#include "ledger/dynamodb/client/dynamodb_error.h"
#include "ledger/ledger_request.h"
#include "net/loop.h"

enum {
    DYNAMODB_ANSWER_BYTES_MAX = 20 << 20, /* BatchGetItem returns up to 16 MB */
    DYNAMODB_UNKNOWN_ATTEMPTS_MAX = 3,    /* of a call whose outcome is unknown */
    DYNAMODB_CONFLICT_WAIT_MAX_MS = 500,
    DYNAMODB_TOKEN_CHARACTERS = 32,
};

struct dynamodb_client {
    struct loop *loop;
    struct http_client *http;
    struct aws_credentials *credentials;
    struct random *random;
    struct ledger_metrics *metrics;
    struct fiber_pool *helpers;      /* dynamodb_parallel.h; NULL: none */
    struct config_dynamodb settings; /* how often and how long to try */
    const char *url;
    const char *scope; /* of the signature: "aws:amz:REGION:dynamodb" */
    const char *table_prefix;
    const char *ca_file; /* NULL: the system's certificates */
};

/* An operation under way. */
struct dynamodb_task {
    struct dynamodb_client *client;
    struct fiber *fiber;
    struct ledger_request *request; /* whose memory the task uses */
    int64_t deadline_ms;            /* by the loop's clock */
    struct buffer body;             /* of the call that is being made or was made last */
    unsigned conflicts;             /* with transactions of others, so far */
    bool failed;
    bool invalid; /* a text that DynamoDB cannot store: not UTF-8 */
    bool late;    /* it failed because its time was up */
    /* For administration: an error in the request is DYNAMODB_REFUSED, with `error_name`. */
    bool takes_errors;
    /* ---- the call under way ---- */
    bool was_unsent; /* no connection was made */
    char error_name[DYNAMODB_ERROR_NAME_MAX];
    unsigned http_status;
    struct slice answer;
};

enum dynamodb_outcome { DYNAMODB_DONE, DYNAMODB_REFUSED, DYNAMODB_FAILED };

/* Makes a call of DynamoDB with `task->body`. For DONE and REFUSED `task->answer` is the answer, which may be changed in
 * place. */
enum dynamodb_outcome dynamodb_client_call(struct dynamodb_task *task, const char *target);

/* Suspends the task for this long, at most until its deadline. */
void dynamodb_client_wait(struct dynamodb_task *task, int64_t wait_ms);

/* Frees what the task holds besides its request. */
void dynamodb_task_end(struct dynamodb_task *task);

#endif

/*
 * The ledger on DynamoDB: tables that any number of processes share.
 *
 *     workers ──submit──▶ inbox ──▶ lanes (fair among users) ──▶ fibers on one loop ──▶ calls over HTTP ──▶ post
 *
 * A thread of its own runs one loop. Each request runs on a fiber, DYNAMODB_LEDGER_FIBERS_MAX at a time; the others wait in
 * lanes (ledger_lane.h), messages in one of their own. A request has LEDGER_TIME_LIMIT_MS in all, from its arrival.
 *
 * Messages of one chat are gathered: while one transaction is under way, further ones wait and are written together in the next.
 * Two transactions of a process for one chat therefore never meet; those of different processes may, and are tried again.
 *
 * `metrics.available` is false from a failed call until the next answer.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_LEDGER_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_LEDGER_H

#include "config/config.h"
#include "ledger/ledger.h"

enum {
    DYNAMODB_LEDGER_FIBERS_MAX = 256,
    DYNAMODB_LEDGER_CALLS_MAX = 512, /* in flight; a large write makes several at a time */
    DYNAMODB_LEDGER_ERROR_TEXT_MAX = 512,
};

/* Opens the ledger of a URL dynamodb://REGION[?endpoint=URL&prefix=NAME&ca=FILE]. Without `ca`, AWS_CA_BUNDLE or SSL_CERT_FILE
 * may name the certificates to trust. The tables must exist (`rollcall tables`);
 * whether they do is not looked at here. On failure returns NULL and explains in `error`. Free it with
 * ledger_close(). */
struct ledger *dynamodb_ledger_open(const char *url, const struct config_dynamodb *settings,
                                    char error[DYNAMODB_LEDGER_ERROR_TEXT_MAX]);

#endif

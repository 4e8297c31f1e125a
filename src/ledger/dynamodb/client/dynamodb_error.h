/* What an answer of DynamoDB means for the caller, by its status and the names in it. Pure functions. */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_ERROR_H
#define ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_ERROR_H

#include "base/slice.h"

#include <stdbool.h>

enum dynamodb_error {
    DYNAMODB_ERROR_NONE,
    DYNAMODB_ERROR_CONDITION,   /* a condition failed: nothing was written */
    DYNAMODB_ERROR_THROTTLED,   /* nothing was written */
    DYNAMODB_ERROR_CONFLICT,    /* with another transaction: nothing was written */
    DYNAMODB_ERROR_UNKNOWN,     /* it may have been executed */
    DYNAMODB_ERROR_CREDENTIALS, /* the keys are not accepted (any more) */
    DYNAMODB_ERROR_UNAVAILABLE,
    DYNAMODB_ERROR_INVALID, /* the request itself is wrong: a bug, or a missing table */
};

enum { DYNAMODB_ERROR_NAME_MAX = 64 };

/* `name` becomes the error's name as DynamoDB calls it, for the log; empty without one. */
enum dynamodb_error dynamodb_error_of(unsigned http_status, struct slice answer,
                                      char name[DYNAMODB_ERROR_NAME_MAX]);

#endif

#include "ledger/dynamodb/client/dynamodb_error.h"

#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>

enum { HTTP_OK = 200, HTTP_UNAVAILABLE = 503 };

struct error_meaning {
    const char *name;
    enum dynamodb_error error;
};

/* Errors of a call, and the reasons for which the parts of a transaction are cancelled. */
static const struct error_meaning meanings[] = {
    {"ConditionalCheckFailedException", DYNAMODB_ERROR_CONDITION},
    {"ConditionalCheckFailed", DYNAMODB_ERROR_CONDITION},
    {"ProvisionedThroughputExceededException", DYNAMODB_ERROR_THROTTLED},
    {"ProvisionedThroughputExceeded", DYNAMODB_ERROR_THROTTLED},
    {"ThrottlingException", DYNAMODB_ERROR_THROTTLED},
    {"ThrottlingError", DYNAMODB_ERROR_THROTTLED},
    {"RequestLimitExceeded", DYNAMODB_ERROR_THROTTLED},
    {"TransactionConflictException", DYNAMODB_ERROR_CONFLICT},
    {"TransactionConflict", DYNAMODB_ERROR_CONFLICT},
    {"TransactionInProgressException", DYNAMODB_ERROR_CONFLICT},
    {"ReplicatedWriteConflictException", DYNAMODB_ERROR_CONFLICT},
    {"InternalServerError", DYNAMODB_ERROR_UNKNOWN},
    {"InternalFailure", DYNAMODB_ERROR_UNKNOWN},
    {"ExpiredTokenException", DYNAMODB_ERROR_CREDENTIALS},
    {"UnrecognizedClientException", DYNAMODB_ERROR_CREDENTIALS},
    {"IncompleteSignatureException", DYNAMODB_ERROR_CREDENTIALS},
    {"InvalidSignatureException", DYNAMODB_ERROR_CREDENTIALS},
    {"MissingAuthenticationToken", DYNAMODB_ERROR_CREDENTIALS},
    {"MissingAuthenticationTokenException", DYNAMODB_ERROR_CREDENTIALS},
    {"AccessDeniedException", DYNAMODB_ERROR_CREDENTIALS},
    {"ServiceUnavailable", DYNAMODB_ERROR_UNAVAILABLE},
};

static enum dynamodb_error find_error_meaning(struct slice name, enum dynamodb_error otherwise)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (slice_is(name, meanings[i].name))
            return meanings[i].error;
    return otherwise;
}

/* A failed condition decides over the others, since no retry would make it hold; so does an invalid part. */
static enum dynamodb_error worse_error(enum dynamodb_error a, enum dynamodb_error b)
{
    static const int weights[] = {
        [DYNAMODB_ERROR_NONE] = 0,        [DYNAMODB_ERROR_CONFLICT] = 1,
        [DYNAMODB_ERROR_THROTTLED] = 2,   [DYNAMODB_ERROR_CONDITION] = 3,
        [DYNAMODB_ERROR_UNKNOWN] = 4,     [DYNAMODB_ERROR_CREDENTIALS] = 4,
        [DYNAMODB_ERROR_UNAVAILABLE] = 4, [DYNAMODB_ERROR_INVALID] = 5,
    };
    return weights[a] >= weights[b] ? a : b;
}

static enum dynamodb_error read_cancellation_code(struct json *json)
{
    enum dynamodb_error error = DYNAMODB_ERROR_NONE;
    struct slice key, code;
    json_object(json);
    while (json_member(json, &key)) {
        if (slice_is(key, "Code") && json_string(json, &code))
            error = slice_is(code, "None") ? DYNAMODB_ERROR_NONE
                                           : find_error_meaning(code, DYNAMODB_ERROR_INVALID);
        else if (!slice_is(key, "Code"))
            json_skip(json);
    }
    return error;
}

static enum dynamodb_error read_cancellation_reasons(struct json *json)
{
    enum dynamodb_error error = DYNAMODB_ERROR_NONE;
    json_array(json);
    while (json_element(json))
        error = worse_error(error, read_cancellation_code(json));
    return error;
}

/* "com.amazonaws.dynamodb.v20120810#ThrottlingException" is known by its end. */
static struct slice strip_error_namespace(struct slice type)
{
    struct slice head, tail = slice_split(type, '#', &head);
    return tail.data ? tail : type;
}

static enum dynamodb_error read_error(struct json *json, unsigned http_status,
                                      char name[DYNAMODB_ERROR_NAME_MAX])
{
    enum dynamodb_error error =
        http_status >= 500 ? DYNAMODB_ERROR_UNAVAILABLE : DYNAMODB_ERROR_INVALID;
    enum dynamodb_error reasons = DYNAMODB_ERROR_NONE;
    struct slice key, type;
    json_object(json);
    while (json_member(json, &key)) {
        if (slice_is(key, "__type") && json_string(json, &type)) {
            type = strip_error_namespace(type);
            snprintf(name, DYNAMODB_ERROR_NAME_MAX, "%.*s", SLICE_FORMAT(type));
            error = find_error_meaning(type, error);
        } else if (slice_is(key, "CancellationReasons")) {
            reasons = read_cancellation_reasons(json);
        } else if (!slice_is(key, "__type")) {
            json_skip(json);
        }
    }
    return reasons != DYNAMODB_ERROR_NONE ? reasons : error;
}

enum dynamodb_error dynamodb_error_of(unsigned http_status, struct slice answer,
                                      char name[DYNAMODB_ERROR_NAME_MAX])
{
    name[0] = '\0';
    if (http_status == 0)
        return DYNAMODB_ERROR_UNKNOWN;
    if (http_status == HTTP_OK)
        return DYNAMODB_ERROR_NONE;
    struct json json;
    char *copy =
        malloc(answer.len + 1); /* parsing changes the text, which the caller reads again */
    if (!copy)
        return DYNAMODB_ERROR_UNAVAILABLE;
    memcpy(copy, answer.data ? answer.data : "", answer.len);
    json_init(&json, copy, answer.len);
    enum dynamodb_error error = read_error(&json, http_status, name);
    /* An answer that is not DynamoDB's comes from something between: its outcome is unknown if that had trouble. */
    if (!json_done(&json) && http_status >= 500 && http_status != HTTP_UNAVAILABLE)
        error = DYNAMODB_ERROR_UNKNOWN;
    free(copy);
    return error;
}

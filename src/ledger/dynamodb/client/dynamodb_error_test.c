/* What each answer of DynamoDB means: the left column of the failure table. */
#include "ledger/dynamodb/client/dynamodb_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NAMESPACE "com.amazonaws.dynamodb.v20120810#"
#define ERROR(name) "{\"__type\":\"" NAMESPACE name "\",\"message\":\"why\"}"
#define CANCELLED(...)                                                                             \
    "{\"CancellationReasons\":[" __VA_ARGS__ "],\"__type\":\"" NAMESPACE                           \
    "TransactionCanceledException\",\"Message\":\"why\"}"
#define REASON(code) "{\"Code\":\"" code "\",\"Message\":\"why\",\"Item\":{\"Code\":{\"S\":\"x\"}}}"

struct row {
    unsigned status;
    const char *answer;
    enum dynamodb_error expected;
};

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[DYNAMODB_ERROR_NAME_MAX];
        enum dynamodb_error error =
            dynamodb_error_of(rows[i].status, slice_of(rows[i].answer), name);
        if (error != rows[i].expected)
            print_error("%u %s: %d\n", rows[i].status, rows[i].answer, (int)error);
        assert_int_equal(error, rows[i].expected);
    }
}

static void test_errors_are_known_by_their_names(void **state)
{
    static const struct row rows[] = {
        {200, "{}", DYNAMODB_ERROR_NONE},
        {400, ERROR("ConditionalCheckFailedException"), DYNAMODB_ERROR_CONDITION},
        {400, ERROR("ProvisionedThroughputExceededException"), DYNAMODB_ERROR_THROTTLED},
        {400, ERROR("ThrottlingException"), DYNAMODB_ERROR_THROTTLED},
        {400, ERROR("RequestLimitExceeded"), DYNAMODB_ERROR_THROTTLED},
        {400, ERROR("TransactionConflictException"), DYNAMODB_ERROR_CONFLICT},
        {400, ERROR("TransactionInProgressException"), DYNAMODB_ERROR_CONFLICT},
        {400, ERROR("ReplicatedWriteConflictException"), DYNAMODB_ERROR_CONFLICT},
        {500, ERROR("InternalServerError"), DYNAMODB_ERROR_UNKNOWN},
        {500, ERROR("InternalFailure"), DYNAMODB_ERROR_UNKNOWN},
        {503, ERROR("ServiceUnavailable"), DYNAMODB_ERROR_UNAVAILABLE},
        {503, ERROR("ServiceUnavailableException"), DYNAMODB_ERROR_UNAVAILABLE},
        {400, ERROR("ValidationException"), DYNAMODB_ERROR_INVALID},
        {400, ERROR("ResourceNotFoundException"), DYNAMODB_ERROR_INVALID},
        {400, ERROR("IdempotentParameterMismatchException"), DYNAMODB_ERROR_INVALID},
        {400, ERROR("ItemCollectionSizeLimitExceededException"), DYNAMODB_ERROR_INVALID},
        {400, ERROR("LimitExceededException"), DYNAMODB_ERROR_INVALID},
        {400, ERROR("ResourceInUseException"), DYNAMODB_ERROR_INVALID},
        {400, ERROR("AccessDeniedException"), DYNAMODB_ERROR_CREDENTIALS},
        {400, ERROR("ExpiredTokenException"), DYNAMODB_ERROR_CREDENTIALS},
        {400, ERROR("IncompleteSignatureException"), DYNAMODB_ERROR_CREDENTIALS},
        {400, ERROR("MissingAuthenticationToken"), DYNAMODB_ERROR_CREDENTIALS},
        {400, ERROR("MissingAuthenticationTokenException"), DYNAMODB_ERROR_CREDENTIALS},
        {400, ERROR("UnrecognizedClientException"), DYNAMODB_ERROR_CREDENTIALS},
        {400, ERROR("InvalidSignatureException"), DYNAMODB_ERROR_CREDENTIALS},
        {400, "{\"__type\":\"ThrottlingException\"}", DYNAMODB_ERROR_THROTTLED},
    };
    (void)state;
    expect_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_reasons_of_a_cancelled_transaction_decide(void **state)
{
    static const struct row rows[] = {
        {400, CANCELLED(REASON("None") "," REASON("TransactionConflict")), DYNAMODB_ERROR_CONFLICT},
        {400, CANCELLED(REASON("ConditionalCheckFailed") "," REASON("None")),
         DYNAMODB_ERROR_CONDITION},
        {400, CANCELLED(REASON("ThrottlingError")), DYNAMODB_ERROR_THROTTLED},
        {400, CANCELLED(REASON("ProvisionedThroughputExceeded")), DYNAMODB_ERROR_THROTTLED},
        {400, CANCELLED(REASON("ValidationError")), DYNAMODB_ERROR_INVALID},
        /* a condition that failed fails again; a conflict does not */
        {400, CANCELLED(REASON("TransactionConflict") "," REASON("ConditionalCheckFailed")),
         DYNAMODB_ERROR_CONDITION},
    };
    (void)state;
    expect_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_answers_that_are_not_dynamodbs(void **state)
{
    static const struct row rows[] = {
        {0, "", DYNAMODB_ERROR_UNKNOWN},
        {500, "<html>", DYNAMODB_ERROR_UNKNOWN},
        {500, "", DYNAMODB_ERROR_UNKNOWN},
        {502, "<html>bad gateway</html>", DYNAMODB_ERROR_UNKNOWN},
        {504, "", DYNAMODB_ERROR_UNKNOWN},
        {500, "{\"__type\":\"Internal", DYNAMODB_ERROR_UNKNOWN},
        {302, "<html>elsewhere</html>", DYNAMODB_ERROR_INVALID},
        {400, "\xff\xfe{}", DYNAMODB_ERROR_INVALID},
        {400, CANCELLED("7"), DYNAMODB_ERROR_INVALID},
        {400, CANCELLED(""), DYNAMODB_ERROR_INVALID},
        {503, "<html>busy</html>", DYNAMODB_ERROR_UNAVAILABLE},
        {400, "", DYNAMODB_ERROR_INVALID},
        {400, "[]", DYNAMODB_ERROR_INVALID},
        {400, "{\"__type\":7}", DYNAMODB_ERROR_INVALID},
        {404, "not found", DYNAMODB_ERROR_INVALID},
    };
    (void)state;
    expect_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_name_is_told_and_bounded(void **state)
{
    static char answer[400];
    char name[DYNAMODB_ERROR_NAME_MAX];
    (void)state;
    dynamodb_error_of(400, SLICE(ERROR("ThrottlingException")), name);
    assert_string_equal(name, "ThrottlingException");
    snprintf(answer, sizeof(answer), "{\"__type\":\"x#%0300d\"}", 7);
    dynamodb_error_of(400, slice_of(answer), name);
    assert_int_equal(strlen(name), DYNAMODB_ERROR_NAME_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_are_known_by_their_names),
        cmocka_unit_test(test_reasons_of_a_cancelled_transaction_decide),
        cmocka_unit_test(test_answers_that_are_not_dynamodbs),
        cmocka_unit_test(test_name_is_told_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

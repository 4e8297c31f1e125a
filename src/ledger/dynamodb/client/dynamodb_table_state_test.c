/* What DynamoDB says about a table, compared with what we need. The answers are those of DynamoDB and DynamoDB Local. */
#include "ledger/dynamodb/client/dynamodb_table_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MESSAGES                                                                                     \
    "{\"Table\":{\"AttributeDefinitions\":[{\"AttributeName\":\"chat_id\",\"AttributeType\":\"S\"}," \
    "{\"AttributeName\":\"sequence\",\"AttributeType\":\"N\"}],\"TableName\":\"rollcall-messages\"," \
    "\"KeySchema\":[{\"AttributeName\":\"chat_id\",\"KeyType\":\"HASH\"},"                           \
    "{\"AttributeName\":\"sequence\",\"KeyType\":\"RANGE\"}],\"TableStatus\":\"ACTIVE\","            \
    "\"ProvisionedThroughput\":{\"ReadCapacityUnits\":0},\"BillingModeSummary\":"                    \
    "{\"BillingMode\":\"PAY_PER_REQUEST\",\"LastUpdateToPayPerRequestDateTime\":1.7E9},"             \
    "\"DeletionProtectionEnabled\":true}}"

#define RECOVERY(status)                                                                           \
    "{\"ContinuousBackupsDescription\":{\"ContinuousBackupsStatus\":\"ENABLED\","                  \
    "\"PointInTimeRecoveryDescription\":{\"PointInTimeRecoveryStatus\":\"" status "\"}}}"

struct told {
    size_t count;
    char last[DYNAMODB_DIFFERENCE_MAX];
};

static void on_told(void *arg, const char *difference)
{
    struct told *told = arg;
    told->count++;
    snprintf(told->last, sizeof(told->last), "%s", difference);
}

static bool read_with(bool (*read)(struct dynamodb_table_state *, char *, size_t),
                      struct dynamodb_table_state *state, const char *answer)
{
    static char copy[4096];
    snprintf(copy, sizeof(copy), "%s", answer);
    return read(state, copy, strlen(copy));
}

static struct dynamodb_table_state good_messages(void)
{
    struct dynamodb_table_state state = {0};
    assert_true(read_with(dynamodb_table_state_read_table, &state, MESSAGES));
    assert_true(read_with(dynamodb_table_state_read_recovery, &state, RECOVERY("ENABLED")));
    assert_true(read_with(dynamodb_table_state_read_expiry, &state,
                          "{\"TimeToLiveDescription\":{\"TimeToLiveStatus\":\"DISABLED\"}}"));
    return state;
}

static struct told compare(const struct dynamodb_table_state *state, enum dynamodb_table table)
{
    struct told told = {0};
    size_t count = dynamodb_table_state_compare(state, &dynamodb_tables[table], on_told, &told);
    assert_int_equal(count, told.count);
    return told;
}

static void test_table_as_described_has_no_difference(void **state)
{
    struct dynamodb_table_state table = good_messages();
    (void)state;
    assert_int_equal(compare(&table, DYNAMODB_MESSAGES).count, 0);
}

static void test_each_difference_is_told(void **state)
{
    struct dynamodb_table_state table = {0};
    (void)state;
    assert_string_equal(compare(&table, DYNAMODB_MESSAGES).last, "it does not exist");
    table = good_messages();
    strcpy(table.status, "CREATING");
    assert_string_equal(compare(&table, DYNAMODB_MESSAGES).last,
                        "its status is CREATING, expected ACTIVE");
    table = good_messages();
    strcpy(table.sort.type, "S");
    assert_string_equal(compare(&table, DYNAMODB_MESSAGES).last,
                        "the key is (chat_id S, sequence S), expected (chat_id S, sequence N)");
    table = good_messages();
    assert_string_equal(compare(&table, DYNAMODB_CHAT_COUNTERS).last,
                        "the key is (chat_id S, sequence N), expected (chat_id S)");
    table.is_on_demand = false;
    assert_string_equal(compare(&table, DYNAMODB_MESSAGES).last,
                        "its capacity is provisioned, expected on demand");
    table = good_messages();
    table.is_protected = false;
    assert_string_equal(compare(&table, DYNAMODB_MESSAGES).last,
                        "it is not protected from deletion");
    table = good_messages();
    assert_true(read_with(dynamodb_table_state_read_recovery, &table, RECOVERY("DISABLED")));
    assert_string_equal(compare(&table, DYNAMODB_MESSAGES).last, "point-in-time recovery is off");
    table.knows_recovery = false;
    assert_int_equal(compare(&table, DYNAMODB_MESSAGES).count, 0);
}

static void test_expiry_is_compared_with_its_attribute(void **state)
{
    struct dynamodb_table_state table = good_messages();
    struct dynamodb_table_description expected = dynamodb_tables[DYNAMODB_MESSAGES];
    struct told told = {0};
    (void)state;
    assert_true(
        read_with(dynamodb_table_state_read_expiry, &table,
                  "{\"TimeToLiveDescription\":{\"AttributeName\":\"ends\",\"TimeToLiveStatus\":"
                  "\"ENABLING\"}}"));
    assert_string_equal(compare(&table, DYNAMODB_MESSAGES).last,
                        "items are removed by the attribute ends, expected never");
    expected.expires = "expires_at_s";
    dynamodb_table_state_compare(&table, &expected, on_told, &told);
    assert_string_equal(told.last,
                        "items are removed by the attribute ends, expected by expires_at_s");
    expected.expires = "ends";
    assert_int_equal(dynamodb_table_state_compare(&table, &expected, on_told, &told), 0);
    table.expires[0] = '\0';
    dynamodb_table_state_compare(&table, &expected, on_told, &told);
    assert_string_equal(told.last, "expired items are not removed, expected by the attribute ends");
}

static void test_malformed_answers_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{\"Table\":{}}",
                                      "{\"Table\":7}",
                                      "{\"Table\":{\"TableStatus\":\"ACTIVE\"}"};
    struct dynamodb_table_state table;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        table = (struct dynamodb_table_state){0};
        assert_false(read_with(dynamodb_table_state_read_table, &table, bad[i]));
        assert_false(table.exists);
        assert_false(read_with(dynamodb_table_state_read_recovery, &table, bad[i]));
        assert_false(read_with(dynamodb_table_state_read_expiry, &table, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_as_described_has_no_difference),
        cmocka_unit_test(test_each_difference_is_told),
        cmocka_unit_test(test_expiry_is_compared_with_its_attribute),
        cmocka_unit_test(test_malformed_answers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

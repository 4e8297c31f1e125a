/* The envelope of the native dialect: type and id, and their faults. */
#include "protocol/dialect.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct fields_scratch scratch;

/* Decodes an exact copy, which the message borrows from; the caller frees *copy. */
static const char *decode(const char *text, struct message *message, char **copy)
{
    const char *problem = NULL;
    *copy = exact_copy(slice_of(text));
    memset(message, 0x5a, sizeof(*message)); /* previous content must not matter */
    return DIALECT_TABLE_NATIVE.decode(&scratch, *copy, strlen(text), message, &problem) ? NULL
                                                                                         : problem;
}

static void expect_command(const char *text, enum message_type type, const char *id)
{
    struct message message;
    char *copy;
    const char *problem = decode(text, &message, &copy);
    if (problem)
        fail_msg("%s: %s", text, problem);
    assert_int_equal(message.type, type);
    if (id)
        assert_true(slice_is(message.id, id));
    else
        assert_null(message.id.data);
    free(copy);
}

/* The message is refused, and its id was read (NULL: it was not). */
static void expect_problem(const char *text, const char *problem, const char *id)
{
    struct message message;
    char *copy;
    const char *found = decode(text, &message, &copy);
    if (!found)
        fail_msg("%s: accepted", text);
    assert_string_equal(found, problem);
    if (id)
        assert_true(slice_is(message.id, id));
    else
        assert_null(message.id.data);
    free(copy);
}

static void client_types_and_only_those_have_a_name(void **state)
{
    (void)state;
    for (int type = 0; type < MESSAGE_TYPE_COUNT; type++) {
        const char *name = message_type_name((enum message_type)type);
        bool from_client = type >= MESSAGE_HEARTBEAT && type <= MESSAGE_EVENT;
        assert_non_null(name);
        assert_int_equal(message_type_from_client(slice_of(name)),
                         from_client ? type : MESSAGE_INVALID);
    }
    assert_int_equal(message_type_from_client(SLICE("")), MESSAGE_INVALID);
    assert_int_equal(message_type_from_client(SLICE("heartbeats")), MESSAGE_INVALID);
    assert_int_equal(message_type_from_client(SLICE("Heartbeat")), MESSAGE_INVALID);
}

static void id_is_kept_as_written(void **state)
{
    (void)state;
    expect_command("{\"type\":\"heartbeat\"}", MESSAGE_HEARTBEAT, NULL);
    expect_command("{\"type\":\"heartbeat\",\"id\":7}", MESSAGE_HEARTBEAT, "7");
    expect_command("{\"id\":\"\\u0041\\n\",\"type\":\"heartbeat\"}", MESSAGE_HEARTBEAT,
                   "\"\\u0041\\n\"");
    expect_command("{\"id\": -1.50e3 ,\"type\":\"heart\\u0062eat\"}", MESSAGE_HEARTBEAT, "-1.50e3");
    expect_command("{\"id\":1,\"id\":null,\"type\":\"heartbeat\"}", MESSAGE_HEARTBEAT, "null");
    expect_command(" {\"type\":\"refresh_token\",\"token\":\"t\",\"more\":[{}]} ",
                   MESSAGE_REFRESH_TOKEN, NULL);
}

static void problem_comes_with_the_id_if_there_is_one(void **state)
{
    (void)state;
    expect_problem("{\"type\":\"shout\",\"id\":7}", "unknown type", "7");
    expect_problem("{\"type\":\"ok\",\"id\":7}", "unknown type", "7");
    expect_problem("{\"id\":7}", "type must be a string", "7");
    expect_problem("{\"id\":7,\"type\":1}", "type must be a string", "7");
    expect_problem("{\"type\":\"query_presence\",\"id\":\"q\"}",
                   "user_ids must be a list of user ids (strings of 1 to 128 bytes)", "\"q\"");
    expect_problem("", "expected a JSON object", NULL);
    expect_problem("[1]", "expected a JSON object", NULL);
    expect_problem("{\"type\":\"heartbeat\",\"id\":7", "expected a JSON object", NULL);
    expect_problem("{\"type\":\"heartbeat\",\"id\":7} {}",
                   "expected one JSON object and nothing after it", NULL);
}

static void ids_must_be_short_scalars(void **state)
{
    (void)state;
    const char *problem = "id must be a string or a number of at most 256 bytes";
    char text[512] = "{\"type\":\"heartbeat\",\"id\":\"";
    size_t at = strlen(text);
    memset(text + at, 'i', 254);
    strcpy(text + at + 254, "\"}");
    struct message message;
    char *copy;
    assert_null(decode(text, &message, &copy));
    assert_int_equal(message.id.len, 256);
    free(copy);
    strcpy(text + at + 254, "i\"}");
    expect_problem(text, problem, NULL);
    expect_problem("{\"type\":\"heartbeat\",\"id\":{}}", problem, NULL);
    expect_problem("{\"type\":\"heartbeat\",\"id\":[7]}", problem, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_types_and_only_those_have_a_name),
        cmocka_unit_test(id_is_kept_as_written),
        cmocka_unit_test(problem_comes_with_the_id_if_there_is_one),
        cmocka_unit_test(ids_must_be_short_scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

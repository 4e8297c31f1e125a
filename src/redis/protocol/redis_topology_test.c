#include "redis/protocol/redis_topology.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static bool read_table(struct redis_topology *out, struct slice text)
{
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    size_t len;
    char *copy = exact_copy(text);
    assert_int_equal(resp_parse(&parser, (struct slice){copy, text.len}, &reply, &len),
                     RESP_COMPLETE);
    bool read = redis_topology_read(out, reply, "asked");
    resp_parser_free(&parser);
    free(copy);
    return read;
}

static bool redirect(const char *text, uint16_t *slot, struct redis_address *address)
{
    struct slice error = slice_of(text);
    char *copy = exact_copy(error);
    bool parsed = redis_topology_redirect((struct slice){copy, error.len}, "asked", slot, address);
    free(copy);
    return parsed;
}

static void table_is_read(void **state)
{
    struct redis_topology *topology = *state;
    assert_true(read_table(
        topology,
        SLICE(
            "*3\r\n"
            "*4\r\n:0\r\n:99\r\n*4\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n*0\r\n*3\r\n$1\r\nr\r\n:9\r\n$1\r\ni\r\n"
            "*3\r\n:100\r\n:199\r\n*3\r\n$0\r\n\r\n:2\r\n$2\r\nid\r\n"
            "*3\r\n:16383\r\n:16383\r\n*3\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n")));
    assert_int_equal(topology->master_count, 2);
    assert_string_equal(topology->masters[0].host, "a");
    assert_string_equal(topology->masters[1].host, "asked");
    assert_int_equal(topology->masters[1].port, 2);
    assert_int_equal(topology->owner[0], 0);
    assert_int_equal(topology->owner[99], 0);
    assert_int_equal(topology->owner[100], 1);
    assert_int_equal(topology->owner[200], REDIS_NO_OWNER);
    assert_int_equal(topology->owner[16383], 0);
    assert_int_equal(topology->replica_count, 1);
    assert_string_equal(topology->replicas[0].host, "r");
}

static void host_null_means_the_asked_host(void **state)
{
    struct redis_topology *topology = *state;
    assert_true(read_table(topology, SLICE("*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n_\r\n:7\r\n")));
    assert_string_equal(topology->masters[0].host, "asked");
    assert_true(read_table(topology, SLICE("*0\r\n")));
    assert_int_equal(topology->master_count, 0);
}

static void malformed_table_is_refused(void **state)
{
    struct redis_topology *topology = *state;
    static const char *const wrong[] = {
        "+OK\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n+a\r\n:1\r\n",
        "*1\r\n*3\r\n:2\r\n:1\r\n*2\r\n+a\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n+a\r\n:1\r\n",
        "*1\r\n*3\r\n+0\r\n:1\r\n*2\r\n+a\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n+a\r\n:0\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n+a\r\n:65536\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n+a\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:1\r\n:1\r\n",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(read_table(topology, slice_of(wrong[i])));
}

static void too_many_masters_are_refused(void **state)
{
    struct redis_topology *topology = *state;
    for (int masters = REDIS_NODES_MAX; masters <= REDIS_NODES_MAX + 1; masters++) {
        struct buffer text = BUFFER_INIT;
        buffer_printf(&text, "*%d\r\n", masters);
        for (int i = 0; i < masters; i++)
            buffer_printf(&text, "*3\r\n:%d\r\n:%d\r\n*2\r\n+h%d\r\n:1\r\n", i, i, i);
        assert_int_equal(read_table(topology, buffer_slice(&text)), masters == REDIS_NODES_MAX);
        buffer_free(&text);
    }
}

static void redirections_are_parsed(void **state)
{
    (void)state;
    struct redis_address address;
    uint16_t slot;
    assert_true(redirect("MOVED 3999 127.0.0.1:6381", &slot, &address));
    assert_int_equal(slot, 3999);
    assert_string_equal(address.host, "127.0.0.1");
    assert_int_equal(address.port, 6381);
    assert_true(redirect("ASK 0 ::1:6381", &slot, &address));
    assert_string_equal(address.host, "::1");
    assert_true(redirect("MOVED 1 :6381", &slot, &address));
    assert_string_equal(address.host, "asked");
    static const char *const wrong[] = {"MOVED",          "MOVED 1",      "MOVED 1 a",
                                        "MOVED x a:1",    "MOVED 1 a:",   "MOVED 1 a:0",
                                        "MOVED 1 a:b",    "MOVED -1 a:1", "MOVED 16384 a:1",
                                        "MOVED 1 a:99999"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(redirect(wrong[i], &slot, &address));
}

static int set_up(void **state)
{
    *state = malloc(sizeof(struct redis_topology));
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_read),
        cmocka_unit_test(host_null_means_the_asked_host),
        cmocka_unit_test(malformed_table_is_refused),
        cmocka_unit_test(too_many_masters_are_refused),
        cmocka_unit_test(redirections_are_parsed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

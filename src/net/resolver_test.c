#include "net/resolver.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct result {
    unsigned times;
    size_t count;
    int family;
    uint16_t port;
    bool has_error;
};

static void on_resolved(void *arg, const struct resolver_address *addresses, size_t count,
                        const char *error)
{
    struct result *result = arg;
    result->times++;
    result->count = count;
    result->has_error = error != NULL;
    if (count == 0)
        return;
    result->family = addresses[0].storage.ss_family;
    result->port = ntohs(((const struct sockaddr_in *)&addresses[0].storage)->sin_port);
}

static void await_result(struct loop *loop, const struct result *result)
{
    for (int turns = 0; turns < 100 && result->times == 0; turns++)
        loop_turn(loop, 100);
}

static void numeric_addresses_need_no_lookup(void **state)
{
    (void)state;
    struct resolver_address address;
    assert_true(resolver_numeric("127.0.0.1", 6379, &address));
    assert_int_equal(address.storage.ss_family, AF_INET);
    assert_true(resolver_numeric("::1", 6379, &address));
    assert_int_equal(address.storage.ss_family, AF_INET6);
    assert_false(resolver_numeric("localhost", 6379, &address));
}

static void name_is_resolved_asynchronously(void **state)
{
    struct loop *loop = *state;
    struct result result = {0};
    assert_non_null(resolver_start(loop, "localhost", 6379, on_resolved, &result));
    assert_int_equal(result.times, 0);
    await_result(loop, &result);
    assert_int_equal(result.times, 1);
    assert_true(result.count > 0);
    assert_int_equal(result.port, 6379);
    assert_false(result.has_error);
}

static void failed_lookup_reports_an_error(void **state)
{
    struct loop *loop = *state;
    struct result result = {0};
    assert_non_null(resolver_start(loop, "not a name", 1, on_resolved, &result));
    await_result(loop, &result);
    assert_int_equal(result.times, 1);
    assert_int_equal(result.count, 0);
    assert_true(result.has_error);
}

static void cancelled_lookup_never_completes(void **state)
{
    struct loop *loop = *state;
    struct result result = {0};
    for (int i = 0; i < 10; i++) {
        struct resolver_lookup *lookup = resolver_start(loop, "localhost", 1, on_resolved, &result);
        assert_non_null(lookup);
        resolver_cancel(&lookup);
        assert_null(lookup);
    }
    loop_turn(loop, 50);
    assert_int_equal(result.times, 0);
}

static void too_long_name_is_refused(void **state)
{
    struct result result = {0};
    char host[RESOLVER_HOST_MAX + 2];
    memset(host, 'a', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    assert_null(resolver_start(*state, host, 1, on_resolved, &result));
}

static int set_up(void **state)
{
    static struct loop loop;
    *state = &loop;
    return loop_init(&loop) ? 0 : -1;
}

static int tear_down(void **state)
{
    loop_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numeric_addresses_need_no_lookup),
        cmocka_unit_test(name_is_resolved_asynchronously),
        cmocka_unit_test(failed_lookup_reports_an_error),
        cmocka_unit_test(cancelled_lookup_never_completes),
        cmocka_unit_test(too_long_name_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

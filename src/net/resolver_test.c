#include "net/resolver.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct answer {
    unsigned times;
    size_t count;
    int family;
    uint16_t port;
    bool explained;
};

static void take(void *arg, const struct resolver_address *addresses, size_t count,
                 const char *error)
{
    struct answer *answer = arg;
    answer->times++;
    answer->count = count;
    answer->explained = error != NULL;
    if (count == 0)
        return;
    answer->family = addresses[0].storage.ss_family;
    answer->port = ntohs(((const struct sockaddr_in *)&addresses[0].storage)->sin_port);
}

static void wait_for(struct loop *loop, const struct answer *answer)
{
    for (int turns = 0; turns < 100 && answer->times == 0; turns++)
        loop_turn(loop, 100);
}

static void numbers_need_no_name_service(void **state)
{
    (void)state;
    struct resolver_address address;
    assert_true(resolver_numeric("127.0.0.1", 6379, &address));
    assert_int_equal(address.storage.ss_family, AF_INET);
    assert_true(resolver_numeric("::1", 6379, &address));
    assert_int_equal(address.storage.ss_family, AF_INET6);
    assert_false(resolver_numeric("localhost", 6379, &address));
}

static void a_name_is_looked_up_off_the_loop(void **state)
{
    struct loop *loop = *state;
    struct answer answer = {0};
    assert_non_null(resolver_start(loop, "localhost", 6379, take, &answer));
    assert_int_equal(answer.times, 0);
    wait_for(loop, &answer);
    assert_int_equal(answer.times, 1);
    assert_true(answer.count > 0);
    assert_int_equal(answer.port, 6379);
    assert_false(answer.explained);
}

static void a_name_without_address_is_explained(void **state)
{
    struct loop *loop = *state;
    struct answer answer = {0};
    assert_non_null(resolver_start(loop, "not a name", 1, take, &answer));
    wait_for(loop, &answer);
    assert_int_equal(answer.times, 1);
    assert_int_equal(answer.count, 0);
    assert_true(answer.explained);
}

static void a_cancelled_lookup_is_never_heard_of(void **state)
{
    struct loop *loop = *state;
    struct answer answer = {0};
    for (int i = 0; i < 10; i++) {
        struct resolver_lookup *lookup = resolver_start(loop, "localhost", 1, take, &answer);
        assert_non_null(lookup);
        resolver_cancel(&lookup);
        assert_null(lookup);
    }
    loop_turn(loop, 50);
    assert_int_equal(answer.times, 0);
}

static void a_name_too_long_is_refused(void **state)
{
    struct answer answer = {0};
    char host[RESOLVER_HOST_MAX + 2];
    memset(host, 'a', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    assert_null(resolver_start(*state, host, 1, take, &answer));
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
        cmocka_unit_test(numbers_need_no_name_service),
        cmocka_unit_test(a_name_is_looked_up_off_the_loop),
        cmocka_unit_test(a_name_without_address_is_explained),
        cmocka_unit_test(a_cancelled_lookup_is_never_heard_of),
        cmocka_unit_test(a_name_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Connections of a trusted proxy when out of memory: each is served or closed, none stays behind, and nothing leaks. */
#include "http/proxy_preface.h"

#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

static struct world world;

static unsigned request_through_proxy(const char *header)
{
    int pair[2];
    struct ip_address proxy = {0};
    struct client client = {.world = &world};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    client.fd = pair[0];
    proxy_preface_accept(&world.rest->listener, pair[1], &proxy);
    world_settle(&world);
    client_print(&client, "%sGET /healthz HTTP/1.1\r\nHost: test\r\n\r\n", header);
    unsigned status = client_response(&client);
    assert_true(status || client.ended);
    client_hang_up(&client);
    return status;
}

static size_t request_without_memory(alloc_fault_start fail_at, size_t n)
{
    static const char *const headers[] = {"PROXY TCP4 192.0.2.1 192.0.2.2 1000 2000\r\n", ""};
    size_t failed = 0;
    for (int i = 0; i < 2; i++) {
        fail_at(n);
        unsigned status = request_through_proxy(headers[i]);
        size_t failed_now = alloc_fault_off();
        assert_true(status == 200 || failed_now);
        failed += failed_now;
        assert_int_equal(world.rest->listener.preface_count, 0);
        assert_int_equal(request_through_proxy(headers[i]), 200);
    }
    fail_at(1);
    assert_true(request_through_proxy("PROXY nonsense\r\n") != 200);
    alloc_fault_off();
    assert_int_equal(request_through_proxy("PROXY nonsense\r\n"), 400);
    return failed;
}

static void connection_of_a_proxy_is_served_or_closed_when_out_of_memory(void **state)
{
    (void)state;
    world_open(&world, WORLD_DEFAULTS);
    struct client_addresses *addresses = client_addresses_make(0, NULL, 0, 7);
    world.rest->listener.addresses = addresses;
    assert_true(alloc_fault_sweep(alloc_fault_after, request_without_memory) > 2);
    assert_true(alloc_fault_sweep(alloc_fault_from, request_without_memory) > 2);
    world_close(&world);
    client_addresses_free(&addresses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection_of_a_proxy_is_served_or_closed_when_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

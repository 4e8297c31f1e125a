#include "config/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void expect_parsed(const char *text, const char *host, uint16_t port, bool is_loopback)
{
    struct address address;
    assert_true(address_parse(slice_of(text), &address));
    assert_true(slice_is(address.host, host));
    assert_int_equal(address.port, port);
    assert_int_equal(address_is_loopback(&address), is_loopback);
}

static void host_and_port_are_parsed(void **state)
{
    (void)state;
    expect_parsed("127.0.0.1:8080", "127.0.0.1", 8080, true);
    expect_parsed("127.1.2.3:1", "127.1.2.3", 1, true);
    expect_parsed("localhost:0", "localhost", 0, true);
    expect_parsed("LocalHost:65535", "LocalHost", 65535, true);
    expect_parsed("0.0.0.0:80", "0.0.0.0", 80, false);
    expect_parsed("128.0.0.1:80", "128.0.0.1", 80, false);
    expect_parsed("gw-001.example.org:80", "gw-001.example.org", 80, false);
    expect_parsed("localhost.example.org:80", "localhost.example.org", 80, false);
    expect_parsed("[::1]:8080", "::1", 8080, true);
    expect_parsed("[0:0:0:0:0:0:0:1]:8080", "0:0:0:0:0:0:0:1", 8080, true);
    expect_parsed("[::]:8080", "::", 8080, false);
    expect_parsed("[2001:db8::7]:443", "2001:db8::7", 443, false);
}

static void invalid_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",           ":80",         "host",         "host:",       "host:65536",
        "host:99999", "host:-1",     "host:8 0",     "host:0x50",   "a:b:80",
        "::1:80",     "[::1]",       "[::1]80",      "[::1]:",      "[]:80",
        "[host]:80",  "[::1",        "[::1]:123456", "ho st:80",    "http://h:80",
        "h/x:80",     "[1.2.3.4]:1", "host:80:",     "[::1%lo]:80", "[:::1]:80",
    };
    struct address address;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (address_parse(slice_of(texts[i]), &address))
            fail_msg("accepted: %s", texts[i]);
}

static bool is_any(const char *text)
{
    struct address address;
    return address_parse(slice_of(text), &address) && address_is_any(&address);
}

static void any_address_is_recognised(void **state)
{
    (void)state;
    assert_true(is_any("0.0.0.0:1"));
    assert_true(is_any("[::]:1"));
    assert_false(is_any("0.0.0.1:1"));
    assert_false(is_any("[::1]:1"));
    assert_false(is_any("localhost:1"));
}

static void host_length_is_bounded(void **state)
{
    (void)state;
    char text[ADDRESS_HOST_MAX + 4];
    struct address address;
    memset(text, 'a', sizeof(text));
    memcpy(text + ADDRESS_HOST_MAX, ":80", 3);
    assert_true(address_parse((struct slice){text, ADDRESS_HOST_MAX + 3}, &address));
    memcpy(text + ADDRESS_HOST_MAX, "a:80", 4);
    assert_false(address_parse((struct slice){text, ADDRESS_HOST_MAX + 4}, &address));
}

static void loopback_names_of_hosts_and_origins(void **state)
{
    (void)state;
    static const char *const local[] = {"localhost",   "LOCALHOST:80", "127.0.0.1",
                                        "127.9.9.9:1", "[::1]",        "[::1]:8080"};
    static const char *const remote[] = {"",
                                         "example.org",
                                         "localhost.example.org",
                                         "10.0.0.1",
                                         "[::2]",
                                         "127.0.0.1.nip.io",
                                         "localhost@example.org",
                                         "0.0.0.0",
                                         "localhost:80:80"};
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        assert_true(address_names_loopback(slice_of(local[i])));
    for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
        assert_false(address_names_loopback(slice_of(remote[i])));
    assert_false(address_names_loopback(SLICE_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_and_port_are_parsed),
        cmocka_unit_test(invalid_addresses_are_refused),
        cmocka_unit_test(any_address_is_recognised),
        cmocka_unit_test(host_length_is_bounded),
        cmocka_unit_test(loopback_names_of_hosts_and_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

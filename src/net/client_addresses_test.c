#include "net/client_addresses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct ip_address address_of(const char *text)
{
    struct ip_address address;
    assert_true(ip_address_parse(slice_of(text), &address));
    return address;
}

static struct client_addresses *make_addresses(uint32_t max, const char *trusted)
{
    struct ip_network network = {0};
    if (trusted)
        assert_true(ip_network_parse(slice_of(trusted), &network));
    struct client_addresses *addresses = client_addresses_make(max, &network, trusted ? 1 : 0, 1);
    assert_non_null(addresses);
    return addresses;
}

static bool assign(struct client_addresses *addresses, int fd, const char *text)
{
    struct ip_address address = address_of(text);
    return client_addresses_assign(addresses, fd, &address);
}

static void address_has_at_most_its_connections(void **unused)
{
    (void)unused;
    struct client_addresses *addresses = make_addresses(2, NULL);
    assert_true(assign(addresses, 5, "192.0.2.1"));
    assert_true(assign(addresses, 5000, "192.0.2.1"));
    assert_false(assign(addresses, 6, "192.0.2.1"));
    assert_true(assign(addresses, 6, "192.0.2.2"));
    client_addresses_release(addresses, 5000);
    client_addresses_release(addresses, 5000);
    client_addresses_release(addresses, 7);
    assert_true(assign(addresses, 8, "192.0.2.1"));
    assert_false(assign(addresses, 9, "192.0.2.1"));
    assert_true(assign(addresses, 5, "192.0.2.1")); /* it is counted already */
    assert_int_equal(client_addresses_count(addresses), 2);
    for (int fd = 5; fd < 10; fd++)
        client_addresses_release(addresses, fd);
    assert_int_equal(client_addresses_count(addresses), 0);
    client_addresses_free(&addresses);
}

static void descriptor_counts_for_its_newest_address(void **unused)
{
    (void)unused;
    struct client_addresses *addresses = make_addresses(1, NULL);
    assert_true(assign(addresses, 5, "2001:db8::1"));
    assert_false(assign(addresses, 6, "2001:db8::ffff:2"));
    assert_true(assign(addresses, 5, "2001:db8:0:1::1"));
    assert_true(assign(addresses, 6, "2001:db8::ffff:2"));
    assert_false(assign(addresses, 6, "2001:db8:0:1::1"));
    assert_true(assign(addresses, 7, "2001:db8::3")); /* 6 has lost its place */
    client_addresses_free(&addresses);
}

static void expect_forwarded(const char *header, const char *expected)
{
    struct client_addresses *addresses = make_addresses(0, "10.0.0.0/8");
    struct ip_address found;
    char text[IP_ADDRESS_TEXT_MAX];
    bool is_named = client_addresses_forwarded(addresses, slice_of(header), &found);
    assert_int_equal(is_named, expected != NULL);
    if (is_named)
        assert_string_equal(ip_address_write(text, &found), expected);
    client_addresses_free(&addresses);
}

static void last_forwarded_address_that_is_not_trusted_counts(void **unused)
{
    (void)unused;
    expect_forwarded("192.0.2.1", "192.0.2.1");
    expect_forwarded("198.51.100.1, 192.0.2.1", "192.0.2.1");
    expect_forwarded("198.51.100.1,192.0.2.1 ,\t10.1.2.3", "192.0.2.1");
    expect_forwarded("10.0.0.1, 10.0.0.2", "10.0.0.1");
    expect_forwarded("nonsense, 192.0.2.1, 10.0.0.1", "192.0.2.1");
    expect_forwarded("192.0.2.1, nonsense, 10.0.0.1", NULL);
    expect_forwarded("192.0.2.1,", NULL);
    expect_forwarded("", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address_has_at_most_its_connections),
        cmocka_unit_test(descriptor_counts_for_its_newest_address),
        cmocka_unit_test(last_forwarded_address_that_is_not_trusted_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/ip_address.h"

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

static void expect_forwarded(const char *text, const char *expected)
{
    struct ip_address address;
    char out[IP_ADDRESS_TEXT_MAX];
    bool parsed = ip_address_parse_forwarded(slice_of(text), &address);
    assert_int_equal(parsed, expected != NULL);
    if (parsed)
        assert_string_equal(ip_address_write(out, &address), expected);
}

static void forwarded_address_may_have_brackets_and_a_port(void **unused)
{
    (void)unused;
    expect_forwarded("192.0.2.1", "192.0.2.1");
    expect_forwarded("192.0.2.1:4711", "192.0.2.1");
    expect_forwarded("2001:db8::1", "2001:db8::1");
    expect_forwarded("[2001:db8::1]", "2001:db8::1");
    expect_forwarded("[2001:db8::1]:4711", "2001:db8::1");
    expect_forwarded("::ffff:192.0.2.1", "192.0.2.1");
    expect_forwarded("", NULL);
    expect_forwarded("unknown", NULL);
    expect_forwarded("192.0.2", NULL);
    expect_forwarded("192.0.2.256", NULL);
    expect_forwarded("[2001:db8::1", NULL);
}

static bool network_has(const char *network_text, const char *address_text)
{
    struct ip_network network;
    struct ip_address address = address_of(address_text);
    assert_true(ip_network_parse(slice_of(network_text), &network));
    return ip_network_contains(&network, &address);
}

static void network_contains_the_addresses_with_its_prefix(void **unused)
{
    (void)unused;
    assert_true(network_has("10.0.0.0/8", "10.255.1.2"));
    assert_false(network_has("10.0.0.0/8", "11.0.0.1"));
    assert_true(network_has("10.0.0.128/25", "10.0.0.200"));
    assert_false(network_has("10.0.0.128/25", "10.0.0.100"));
    assert_true(network_has("192.0.2.7", "192.0.2.7"));
    assert_false(network_has("192.0.2.7", "192.0.2.8"));
    assert_true(network_has("0.0.0.0/0", "192.0.2.8"));
    assert_false(network_has("0.0.0.0/0", "2001:db8::1"));
    assert_true(network_has("2001:db8::/32", "2001:db8:7::1"));
    assert_true(network_has("::/0", "192.0.2.8"));
    assert_true(network_has("127.0.0.0/8", "::ffff:127.0.0.1"));
}

static void malformed_network_is_refused(void **unused)
{
    (void)unused;
    static const char *const bad[] = {"",          "10.0.0.0/",   "10.0.0.0/33", "10.0.0.1/8",
                                      "::/129",    "10.0.0.0/-1", "10.0.0.0/08", "2001:db8::1/32",
                                      "localhost", "10.0.0.0/8 ", "10.0.0.0/8/8"};
    struct ip_network network;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(ip_network_parse(slice_of(bad[i]), &network));
}

static void client_is_an_ipv4_address_or_64_bits_of_ipv6(void **unused)
{
    (void)unused;
    struct ip_address one = address_of("2001:db8:1:2:3::4"), other = address_of("2001:db8:1:2::9");
    struct ip_address third = address_of("2001:db8:1:3::9"), v4 = address_of("192.0.2.1");
    struct ip_address client = ip_address_of_client(&one), same = ip_address_of_client(&other);
    struct ip_address another = ip_address_of_client(&third), same_v4 = ip_address_of_client(&v4);
    assert_true(ip_address_equal(&client, &same));
    assert_false(ip_address_equal(&client, &another));
    assert_true(ip_address_equal(&same_v4, &v4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forwarded_address_may_have_brackets_and_a_port),
        cmocka_unit_test(network_contains_the_addresses_with_its_prefix),
        cmocka_unit_test(malformed_network_is_refused),
        cmocka_unit_test(client_is_an_ipv4_address_or_64_bits_of_ipv6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

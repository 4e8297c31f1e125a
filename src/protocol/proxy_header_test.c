#include "protocol/proxy_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define V2 "\r\n\r\n\0\r\nQUIT\n"
#define BYTES(text) ((struct slice){(text), sizeof(text) - 1})

/* Every shorter piece of a header must be incomplete. */
static void expect_client(struct slice header, const char *expected)
{
    struct proxy_header parsed;
    char text[IP_ADDRESS_TEXT_MAX], bytes[PROXY_HEADER_BYTES_MAX + 3];
    for (size_t len = 0; len < header.len; len++)
        assert_int_equal(proxy_header_parse(slice_first(header, len), &parsed), PROXY_INCOMPLETE);
    memcpy(bytes, header.data, header.len);
    memcpy(bytes + header.len, "GET", 3);
    assert_int_equal(proxy_header_parse((struct slice){bytes, header.len + 3}, &parsed),
                     PROXY_COMPLETE);
    assert_int_equal(parsed.len, header.len);
    assert_int_equal(parsed.names_client, expected != NULL);
    if (expected)
        assert_string_equal(ip_address_write(text, &parsed.from), expected);
}

static void header_names_the_client(void **unused)
{
    (void)unused;
    expect_client(BYTES("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n"), "192.0.2.1");
    expect_client(BYTES("PROXY TCP6 2001:db8::1 2001:db8::2 0 65535\r\n"), "2001:db8::1");
    expect_client(BYTES(V2 "\x21\x11\0\x0c\xc0\0\x02\x01\x0a\0\0\x01\x10\0\x01\xbb"), "192.0.2.1");
    expect_client(BYTES(V2 "\x21\x21\0\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
                           "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\x10\0\x01\xbb"),
                  "2001:db8::1");
    expect_client(BYTES(V2 "\x21\x11\0\x0f\xc0\0\x02\x01\x0a\0\0\x01\x10\0\x01\xbb\x04\0\0"),
                  "192.0.2.1");
}

static void header_without_a_client_is_complete(void **unused)
{
    (void)unused;
    expect_client(BYTES("PROXY UNKNOWN\r\n"), NULL);
    expect_client(BYTES("PROXY UNKNOWN ffff:f ignored 1 2 3\r\n"), NULL);
    expect_client(BYTES(V2 "\x20\x00\0\0"), NULL);
    expect_client(BYTES(V2 "\x20\x11\0\x02\x01\x02"), NULL);
    expect_client(BYTES(V2 "\x21\x00\0\0"), NULL);
}

static void other_bytes_are_no_header(void **unused)
{
    (void)unused;
    struct proxy_header parsed;
    assert_int_equal(proxy_header_parse(BYTES("GET / HTTP/1.1\r\n"), &parsed), PROXY_ABSENT);
    assert_int_equal(proxy_header_parse(BYTES("PROXYTCP4"), &parsed), PROXY_ABSENT);
    assert_int_equal(proxy_header_parse(BYTES("\x16\x03\x01"), &parsed), PROXY_ABSENT);
    assert_int_equal(proxy_header_parse(BYTES("\r\n\r\nGET"), &parsed), PROXY_ABSENT);
}

static void deviating_header_is_malformed(void **unused)
{
    (void)unused;
    static const struct slice bad[] = {
        BYTES("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\n"),
        BYTES("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\rx"),
        BYTES("PROXY TCP4 192.0.2.1 198.51.100.7 56324\r\n"),
        BYTES("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443 \r\n"),
        BYTES("PROXY TCP4 192.0.2.1  198.51.100.7 56324 443\r\n"),
        BYTES("PROXY TCP4 192.0.2.1 198.51.100.7 056324 443\r\n"),
        BYTES("PROXY TCP4 192.0.2.1 198.51.100.7 65536 443\r\n"),
        BYTES("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n"),
        BYTES("PROXY TCP6 192.0.2.1 198.51.100.7 1 2\r\n"),
        BYTES("PROXY UDP4 192.0.2.1 198.51.100.7 1 2\r\n"),
        BYTES("PROXY tcp4 192.0.2.1 198.51.100.7 1 2\r\n"),
        BYTES("PROXY \r\n"),
        BYTES(
            "PROXY UNKNOWN xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
            "xxxxxxxxxxxxxxxxxxxxxxx"),
        BYTES(V2 "\x11\x11\0\x0c"),
        BYTES(V2 "\x22\x11\0\x0c"),
        BYTES(V2 "\x21\x12\0\x0c"),
        BYTES(V2 "\x21\x11\0\x0b"),
        BYTES(V2 "\x21\x21\0\x0c"),
        BYTES(V2 "\x21\x11\xff\xff"),
    };
    struct proxy_header parsed;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(proxy_header_parse(bad[i], &parsed), PROXY_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_names_the_client),
        cmocka_unit_test(header_without_a_client_is_complete),
        cmocka_unit_test(other_bytes_are_no_header),
        cmocka_unit_test(deviating_header_is_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

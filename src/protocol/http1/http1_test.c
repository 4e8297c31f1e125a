#include "protocol/http1/http1.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define HOST "Host: a\r\n"
#define END "\r\n"

static struct http1_head head;

/* Parses exact copies, so that the sanitizer finds any read outside them. The slices in `head` are invalid
 * afterwards. */
static enum http1_result parse_pieces(struct slice text, size_t piece_bytes)
{
    size_t scanned = 0;
    enum http1_result result = HTTP1_INCOMPLETE;
    for (size_t len = 0; len < text.len && result == HTTP1_INCOMPLETE;) {
        len = len + piece_bytes < text.len ? len + piece_bytes : text.len;
        char *copy = exact_copy(slice_first(text, len));
        result = http1_parse((struct slice){copy, len}, &scanned, &head);
        free(copy);
    }
    return result;
}

static void expect_refused(struct slice text, unsigned status)
{
    size_t pieces[] = {text.len, 1, 2, 3, 7};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        assert_int_equal(parse_pieces(text, pieces[i]), HTTP1_REFUSED);
        assert_int_equal(head.error_status, status);
        assert_non_null(head.error_reason);
    }
}

static void expect_complete(struct slice text)
{
    size_t pieces[] = {1, 2, 3, 7, text.len};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        assert_int_equal(parse_pieces(text, pieces[i]), HTTP1_COMPLETE);
        assert_int_equal(head.len, text.len);
    }
    size_t scanned = 0;
    assert_int_equal(http1_parse(text, &scanned, &head), HTTP1_COMPLETE);
}

static void assert_slice(struct slice actual, const char *expected)
{
    assert_int_equal(actual.len, strlen(expected));
    assert_memory_equal(actual.data, expected, actual.len);
}

static void plain_request_is_parsed(void **unused)
{
    (void)unused;
    expect_complete(SLICE("GET /v1/ws?device_id=d&x=%20 HTTP/1.1\r\n"
                          "Host: example.org:8080\r\n"
                          "X-Empty:\r\n"
                          "x-blanks: \t a b \t\r\n" END));
    assert_int_equal(head.method, HTTP1_GET);
    assert_slice(head.method_text, "GET");
    assert_slice(head.target_text, "/v1/ws?device_id=d&x=%20");
    assert_slice(head.target.path, "/v1/ws");
    assert_slice(head.target.query, "device_id=d&x=%20");
    assert_slice(head.host, "example.org:8080");
    assert_int_equal(head.version_minor, 1);
    assert_int_equal(head.header_count, 3);
    assert_slice(http1_header(&head, SLICE("X-BLANKS")), "a b");
    assert_non_null(http1_header(&head, SLICE("x-empty")).data);
    assert_int_equal(http1_header(&head, SLICE("x-empty")).len, 0);
    assert_null(http1_header(&head, SLICE("x-emptx")).data);
    assert_true(head.keep_alive);
    assert_false(head.chunked || head.has_content_length || head.expect_continue ||
                 head.upgrade_websocket);
}

static void head_ends_where_the_body_begins(void **unused)
{
    (void)unused;
    size_t scanned = 0;
    const struct slice text = SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n" END);
    struct slice with_body =
        SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n" END "\n\n\r\n");
    assert_int_equal(http1_parse(with_body, &scanned, &head), HTTP1_COMPLETE);
    assert_int_equal(head.len, text.len);
    assert_int_equal(head.content_length, 4);
    assert_true(head.has_content_length);
}

static void one_empty_line_before_the_request_is_ignored(void **unused)
{
    (void)unused;
    expect_complete(SLICE("\r\nGET / HTTP/1.1\r\n" HOST END));
    expect_refused(SLICE("\r\n\r\nGET / HTTP/1.1\r\n" HOST END), 400);
    expect_refused(SLICE("\nGET / HTTP/1.1\r\n" HOST END), 400);
}

static void methods_are_recognised(void **unused)
{
    (void)unused;
    static const char *const names[] = {"GET",   "HEAD",   "POST",    "PUT",
                                        "PATCH", "DELETE", "OPTIONS", "BREW"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[100];
        int len = snprintf(text, sizeof text, "%s / HTTP/1.1\r\n" HOST END, names[i]);
        expect_complete((struct slice){text, (size_t)len});
        assert_int_equal(head.method, i);
        assert_slice(head.method_text, names[i]);
    }
    expect_complete(SLICE("get / HTTP/1.1\r\n" HOST END));
    assert_int_equal(head.method, HTTP1_OTHER_METHOD);
}

static void bad_request_lines_are_refused(void **unused)
{
    (void)unused;
    static const struct slice lines[] = {
        SLICE(" GET / HTTP/1.1"),
        SLICE("GET  / HTTP/1.1"),
        SLICE("GET / HTTP/1.1 "),
        SLICE("GET /  HTTP/1.1"),
        SLICE("GET /"),
        SLICE("GET"),
        SLICE("G(T / HTTP/1.1"),
        SLICE("G\0T / HTTP/1.1"),
        SLICE("GET\t/ HTTP/1.1"),
        SLICE("GET / http/1.1"),
        SLICE("GET / HTTP/1.10"),
        SLICE("GET / HTTP/1"),
        SLICE("GET / HTTP/a.1"),
        SLICE("GET /\r HTTP/1.1"),
        SLICE("GET /a#b HTTP/1.1"),
        SLICE("GET /\x7f HTTP/1.1"),
        SLICE("GET /\xc3\xa9 HTTP/1.1"),
        SLICE("GET /<script> HTTP/1.1"),
        SLICE("GET a HTTP/1.1"),
        SLICE("GET * HTTP/1.1"),
        SLICE("GET example.org:80 HTTP/1.1"),
        SLICE("CONNECT example.org:80 HTTP/1.1"),
        SLICE("CONNECT / HTTP/1.1"),
        SLICE("GET ftp://a/ HTTP/1.1"),
        SLICE("GET http:///a HTTP/1.1"),
        SLICE("GET http://:80/ HTTP/1.1"),
        SLICE("GET http://user@a/ HTTP/1.1"),
        SLICE("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1"),
        SLICE("\x16\x03\x01\x02"),
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[200];
        memcpy(text, lines[i].data, lines[i].len);
        memcpy(text + lines[i].len, "\r\n" HOST END, sizeof "\r\n" HOST END);
        expect_refused((struct slice){text, lines[i].len + sizeof "\r\n" HOST END - 1}, 400);
        /* The line alone is enough for the decision. */
        expect_refused((struct slice){text, lines[i].len + 2}, 400);
    }
}

static void garbage_is_refused_before_any_line_ends(void **unused)
{
    (void)unused;
    expect_refused(SLICE("\x16\x03\x01\x02"), 400);
    expect_refused(SLICE("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG"), 400);
    expect_refused(SLICE("\rG"), 400);
}

static void only_http_1_0_and_1_1_are_accepted(void **unused)
{
    (void)unused;
    expect_refused(SLICE("GET / HTTP/2.0\r\n" HOST END), 505);
    expect_refused(SLICE("PRI * HTTP/2.0\r\n"), 505);
    expect_refused(SLICE("GET / HTTP/1.2\r\n" HOST END), 505);
    expect_refused(SLICE("GET / HTTP/0.9\r\n" HOST END), 505);
    expect_complete(SLICE("GET / HTTP/1.0\r\n" END));
    assert_int_equal(head.version_minor, 0);
}

static void bad_headers_are_refused(void **unused)
{
    (void)unused;
    static const struct slice lines[] = {
        SLICE("X : 1\r\n"),
        SLICE("X\t: 1\r\n"),
        SLICE(" X: 1\r\n"),
        SLICE("X: 1\r\n folded\r\n"),
        SLICE("X: 1\r\n\tfolded\r\n"),
        SLICE(": 1\r\n"),
        SLICE("X\r\n"),
        SLICE("X: 1\n"),
        SLICE("X: 1\rY: 2\r\n"),
        SLICE("X: 1\r\r\n"),
        SLICE("X: a\0b\r\n"),
        SLICE("X: a\x01"
              "b\r\n"),
        SLICE("X: a\x7f"
              "b\r\n"),
        SLICE("X\x80: 1\r\n"),
        SLICE("X(: 1\r\n"),
        SLICE("Host: b\r\n"),
        SLICE("Host: a\r\n"),
        SLICE("Content-Length: \r\n"),
        SLICE("Content-Length: +1\r\n"),
        SLICE("Content-Length: -1\r\n"),
        SLICE("Content-Length: 0x1\r\n"),
        SLICE("Content-Length: 1 1\r\n"),
        SLICE("Content-Length: 1, 1\r\n"),
        SLICE("Content-Length: 18446744073709551617\r\n"),
        SLICE("Content-Length: 1\r\nContent-Length: 2\r\n"),
        SLICE("Content-Length: 1\r\nContent-Length: 1\r\n"),
        SLICE("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
        SLICE("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"),
        SLICE("Transfer-Encoding: chunked, gzip\r\n"),
        SLICE("Transfer-Encoding: chunked, chunked\r\n"),
        SLICE("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        SLICE("Transfer-Encoding:\r\n"),
        SLICE("Transfer-Encoding: ,\r\n"),
        SLICE("Transfer-Encoding: ,chunked\r\n"),
        SLICE("Transfer-Encoding: chunked,\r\n"),
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[300] = "POST / HTTP/1.1\r\n" HOST;
        size_t start = strlen(text);
        memcpy(text + start, lines[i].data, lines[i].len);
        memcpy(text + start + lines[i].len, "\r\n", 2);
        expect_refused((struct slice){text, start + lines[i].len + 2}, 400);
    }
}

static void unknown_transfer_coding_is_refused(void **unused)
{
    (void)unused;
    expect_refused(SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n" END), 501);
    expect_refused(SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n" END),
                   501);
    expect_refused(SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n" END), 501);
    expect_refused(SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked;a=b\r\n" END), 501);
    expect_refused(SLICE("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n" END), 400);
}

static void body_framing_is_parsed(void **unused)
{
    (void)unused;
    expect_complete(SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n" END));
    assert_true(head.chunked);
    assert_false(head.has_content_length);
    expect_complete(SLICE("POST / HTTP/1.1\r\n" HOST "CONTENT-LENGTH:999999999999999999\r\n" END));
    assert_true(head.content_length == UINT64_C(999999999999999999));
}

static void exactly_one_valid_host_is_required(void **unused)
{
    (void)unused;
    expect_refused(SLICE("GET / HTTP/1.1\r\n" END), 400);
    expect_refused(SLICE("GET / HTTP/1.0\r\n" HOST HOST END), 400);
    expect_refused(SLICE("GET / HTTP/1.1\r\nHost: a b\r\n" END), 400);
    expect_refused(SLICE("GET / HTTP/1.1\r\nHost: a/b\r\n" END), 400);
    expect_refused(SLICE("GET / HTTP/1.1\r\nHost: u@b\r\n" END), 400);
    expect_complete(SLICE("GET / HTTP/1.1\r\nHost:\r\n" END));
    assert_int_equal(head.host.len, 0);
    expect_complete(SLICE("GET / HTTP/1.1\r\nHost: [::1]:80\r\n" END));
    assert_slice(head.host, "[::1]:80");
}

static void target_forms_are_split(void **unused)
{
    (void)unused;
    expect_complete(SLICE("GET HTTP://b:81/x/y?q HTTP/1.1\r\n" HOST END));
    assert_slice(head.target.path, "/x/y");
    assert_slice(head.target.query, "q");
    assert_slice(head.host, "b:81");
    expect_complete(SLICE("GET https://b?q HTTP/1.1\r\n" HOST END));
    assert_slice(head.target.path, "/");
    assert_slice(head.target.query, "q");
    expect_complete(SLICE("GET http://b HTTP/1.1\r\n" HOST END));
    assert_slice(head.target.path, "/");
    assert_null(head.target.query.data);
    expect_complete(SLICE("OPTIONS * HTTP/1.1\r\n" HOST END));
    assert_slice(head.target.path, "*");
    expect_complete(SLICE("GET //a/../b?x?y HTTP/1.1\r\n" HOST END));
    assert_slice(head.target.path, "//a/../b");
    assert_slice(head.target.query, "x?y");
}

static void keep_alive_follows_version_and_connection(void **unused)
{
    (void)unused;
    expect_complete(SLICE("GET / HTTP/1.1\r\n" HOST "Connection: x, Close\r\n" END));
    assert_false(head.keep_alive);
    expect_complete(SLICE("GET / HTTP/1.0\r\n" HOST END));
    assert_false(head.keep_alive);
    expect_complete(SLICE("GET / HTTP/1.0\r\n" HOST "Connection: Keep-Alive\r\n" END));
    assert_true(head.keep_alive);
    expect_complete(SLICE("GET / HTTP/1.0\r\n"
                          "Connection: keep-alive\r\nConnection: close\r\n" END));
    assert_false(head.keep_alive);
}

static void websocket_upgrade_needs_both_fields_and_http_1_1(void **unused)
{
    (void)unused;
    expect_complete(SLICE("GET / HTTP/1.1\r\n" HOST
                          "Connection: keep-alive, Upgrade\r\nUpgrade: h2c, WebSocket\r\n" END));
    assert_true(head.upgrade_websocket);
    expect_complete(SLICE("GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n" END));
    assert_false(head.upgrade_websocket);
    expect_complete(SLICE("GET / HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: h2c\r\n" END));
    assert_false(head.upgrade_websocket);
    expect_complete(
        SLICE("GET / HTTP/1.0\r\n" HOST "Connection: upgrade\r\nUpgrade: websocket\r\n" END));
    assert_false(head.upgrade_websocket);
}

static void expect_continue_needs_http_1_1(void **unused)
{
    (void)unused;
    expect_complete(SLICE("PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\n" END));
    assert_true(head.expect_continue);
    expect_complete(SLICE("PUT / HTTP/1.0\r\n" HOST "Expect: 100-continue\r\n" END));
    assert_false(head.expect_continue);
}

static void token_lists_are_split(void **unused)
{
    (void)unused;
    struct slice list = SLICE(" a ,, b c,\td");
    struct slice token;
    assert_true(http1_token_next(&list, &token));
    assert_slice(token, "a");
    assert_true(http1_token_next(&list, &token));
    assert_slice(token, "b c");
    assert_true(http1_token_next(&list, &token));
    assert_slice(token, "d");
    assert_false(http1_token_next(&list, &token));
    expect_complete(SLICE("GET / HTTP/1.1\r\n" HOST "P: one\r\nP: two, Three\r\n" END));
    assert_true(http1_header_has_token(&head, SLICE("p"), SLICE("three")));
    assert_true(http1_header_has_token(&head, SLICE("p"), SLICE("one")));
    assert_false(http1_header_has_token(&head, SLICE("p"), SLICE("thre")));
    assert_slice(http1_header_token_starting(&head, SLICE("p"), SLICE("Thr")), "Three");
    assert_null(http1_header_token_starting(&head, SLICE("p"), SLICE("Threes")).data);
}

/* Makes "GET /aaa... HTTP/1.1" with a target of `bytes` bytes. */
static size_t write_long_target(char *out, size_t target_bytes)
{
    memcpy(out, "GET /", 5);
    memset(out + 5, 'a', target_bytes - 1);
    memcpy(out + 4 + target_bytes, " HTTP/1.1\r\n" HOST END, sizeof " HTTP/1.1\r\n" HOST END - 1);
    return 4 + target_bytes + sizeof " HTTP/1.1\r\n" HOST END - 1;
}

static void too_long_target_is_refused(void **unused)
{
    (void)unused;
    static char text[HTTP1_HEAD_BYTES_MAX];
    size_t scanned = 0;
    size_t len = write_long_target(text, HTTP1_TARGET_BYTES_MAX);
    assert_int_equal(http1_parse((struct slice){text, len}, &scanned, &head), HTTP1_COMPLETE);
    len = write_long_target(text, HTTP1_TARGET_BYTES_MAX + 1);
    assert_int_equal(parse_pieces((struct slice){text, len}, len), HTTP1_REFUSED);
    assert_int_equal(head.error_status, 414);
    /* It is refused before its line ends. */
    write_long_target(text, 9000);
    assert_int_equal(parse_pieces((struct slice){text, 9000}, 1000), HTTP1_REFUSED);
    assert_int_equal(head.error_status, 414);
}

static size_t write_headers(char *out, size_t count, size_t value_bytes)
{
    size_t len = (size_t)sprintf(out, "GET / HTTP/1.1\r\n" HOST);
    for (size_t i = 1; i < count; i++)
        len += (size_t)sprintf(out + len, "X-%zu: %0*d\r\n", i, (int)value_bytes, 0);
    return len + (size_t)sprintf(out + len, END);
}

static void too_many_headers_are_refused(void **unused)
{
    (void)unused;
    static char text[HTTP1_HEAD_BYTES_MAX];
    size_t len = write_headers(text, HTTP1_HEADERS_MAX, 1);
    expect_complete((struct slice){text, len});
    assert_int_equal(head.header_count, HTTP1_HEADERS_MAX);
    len = write_headers(text, HTTP1_HEADERS_MAX + 1, 1);
    expect_refused((struct slice){text, len}, 431);
}

static void too_long_head_is_refused(void **unused)
{
    (void)unused;
    static char text[2 * HTTP1_HEAD_BYTES_MAX];
    size_t len = write_headers(text, 2, HTTP1_HEAD_BYTES_MAX - 34);
    assert_int_equal(len, HTTP1_HEAD_BYTES_MAX);
    assert_int_equal(parse_pieces((struct slice){text, len}, 1000), HTTP1_COMPLETE);
    len = write_headers(text, 2, HTTP1_HEAD_BYTES_MAX - 33);
    assert_int_equal(parse_pieces((struct slice){text, len}, len), HTTP1_REFUSED);
    assert_int_equal(head.error_status, 431);
    assert_int_equal(parse_pieces((struct slice){text, len - 1}, 1000), HTTP1_REFUSED);
    assert_int_equal(head.error_status, 431);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_request_is_parsed),
        cmocka_unit_test(head_ends_where_the_body_begins),
        cmocka_unit_test(one_empty_line_before_the_request_is_ignored),
        cmocka_unit_test(methods_are_recognised),
        cmocka_unit_test(bad_request_lines_are_refused),
        cmocka_unit_test(garbage_is_refused_before_any_line_ends),
        cmocka_unit_test(only_http_1_0_and_1_1_are_accepted),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(unknown_transfer_coding_is_refused),
        cmocka_unit_test(body_framing_is_parsed),
        cmocka_unit_test(exactly_one_valid_host_is_required),
        cmocka_unit_test(target_forms_are_split),
        cmocka_unit_test(keep_alive_follows_version_and_connection),
        cmocka_unit_test(websocket_upgrade_needs_both_fields_and_http_1_1),
        cmocka_unit_test(expect_continue_needs_http_1_1),
        cmocka_unit_test(token_lists_are_split),
        cmocka_unit_test(too_long_target_is_refused),
        cmocka_unit_test(too_many_headers_are_refused),
        cmocka_unit_test(too_long_head_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

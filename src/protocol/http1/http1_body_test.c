#include "protocol/http1/http1_body.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BYTES_MAX 100

static const struct http1_head chunked = {.chunked = true};

/* A decoded body, and how much of the input follows it. */
struct outcome {
    enum http1_body_event event;
    unsigned error_status;
    char bytes[8192];
    size_t len;
    size_t left;
};

/* Decodes exact copies of pieces of `piece_bytes`. */
static void decode(const struct http1_head *head, struct slice text, size_t piece_bytes,
                   struct outcome *outcome)
{
    struct http1_body body;
    struct slice data;
    http1_body_start(&body, head, BYTES_MAX);
    *outcome = (struct outcome){.event = HTTP1_BODY_NEED_MORE, .left = text.len};
    while (outcome->event == HTTP1_BODY_NEED_MORE) {
        struct slice piece = slice_first(text, piece_bytes);
        char *copy = exact_copy(piece);
        piece.data = copy;
        text = slice_after(text, piece_bytes);
        while ((outcome->event = http1_body_decode(&body, &piece, &data)) == HTTP1_BODY_DATA) {
            assert_true(data.len > 0);
            memcpy(outcome->bytes + outcome->len, data.data, data.len);
            outcome->len += data.len;
        }
        outcome->left = text.len + piece.len;
        free(copy);
        if (text.len == 0)
            break;
    }
    outcome->error_status = body.error_status;
}

static void expect_body(const struct http1_head *head, struct slice text, const char *expected,
                        size_t left)
{
    for (size_t piece_bytes = 1; piece_bytes <= text.len + 1; piece_bytes++) {
        struct outcome outcome;
        decode(head, text, piece_bytes, &outcome);
        assert_int_equal(outcome.event, HTTP1_BODY_END);
        assert_int_equal(outcome.len, strlen(expected));
        assert_memory_equal(outcome.bytes, expected, outcome.len);
        assert_int_equal(outcome.left, left);
    }
}

static void expect_error(struct slice text, unsigned status)
{
    const size_t pieces[] = {1, 2, 3, text.len};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct outcome outcome;
        decode(&chunked, text, pieces[i], &outcome);
        assert_int_equal(outcome.event, HTTP1_BODY_ERROR);
        assert_int_equal(outcome.error_status, status);
    }
}

static void head_without_length_has_no_body(void **unused)
{
    (void)unused;
    const struct http1_head none = {0};
    expect_body(&none, SLICE("GET"), "", 3);
}

static void fixed_body_is_decoded(void **unused)
{
    (void)unused;
    const struct http1_head five = {.has_content_length = true, .content_length = 5};
    expect_body(&five, SLICE("helloGET"), "hello", 3);
}

static void too_large_content_length_is_refused(void **unused)
{
    (void)unused;
    const struct http1_head most = {.has_content_length = true, .content_length = BYTES_MAX};
    const struct http1_head more = {.has_content_length = true, .content_length = BYTES_MAX + 1};
    struct outcome outcome;
    decode(&more, SLICE_NONE, 1, &outcome);
    assert_int_equal(outcome.event, HTTP1_BODY_ERROR);
    assert_int_equal(outcome.error_status, 413);
    decode(&most, SLICE_NONE, 1, &outcome);
    assert_int_equal(outcome.event, HTTP1_BODY_NEED_MORE);
}

static void chunked_body_is_decoded(void **unused)
{
    (void)unused;
    expect_body(&chunked, SLICE("5\r\nhello\r\n0\r\n\r\nGET"), "hello", 3);
    expect_body(&chunked, SLICE("0\r\n\r\n"), "", 0);
    expect_body(&chunked, SLICE("1\r\na\r\n0000A\r\n0123456789\r\n00\r\n\r\n"), "a0123456789", 0);
}

static void extensions_and_trailers_are_discarded(void **unused)
{
    (void)unused;
    expect_body(&chunked, SLICE("2;a=\"b c\";d\r\nhi\r\n0;\r\nX: y\r\nZ:\r\n\r\nG"), "hi", 1);
}

static void bad_chunks_are_refused(void **unused)
{
    (void)unused;
    static const struct slice bad[] = {
        SLICE("\r\n"),
        SLICE(";a\r\n"),
        SLICE("g\r\n"),
        SLICE("-1\r\n"),
        SLICE("0x1\r\n"),
        SLICE("1 \r\na\r\n"),
        SLICE("1\na\n"),
        SLICE("1\r\nab"),
        SLICE("1\r\na\n"),
        SLICE("1\r\na\r1"),
        SLICE("1;a\n"),
        SLICE("1;a\rb"),
        SLICE("1;\x01\r\n"),
        SLICE("0\r\n\n"),
        SLICE("0\r\n\rX"),
        SLICE("0\r\n folded\r\n"),
        SLICE("0\r\nX\r\n"),
        SLICE("0\r\nX y: z\r\n"),
        SLICE("0\r\nX: \x7f\r\n"),
        SLICE("0\r\nX: y\n"),
        SLICE("0\r\nX: y\rz"),
        SLICE("00000000000000001\r\n"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(bad[i], 400);
}

static void chunks_count_together_for_the_bound(void **unused)
{
    (void)unused;
    expect_error(SLICE("65"), 413);
    expect_error(SLICE("ffffffffffffffff"), 413);
    char text[200] = "64\r\n";
    memset(text + 4, 'x', 100);
    memcpy(text + 104, "\r\n1", 3);
    expect_error((struct slice){text, 107}, 413);
    memcpy(text + 104, "\r\n0\r\n\r\n", 8);
    struct outcome outcome;
    decode(&chunked, (struct slice){text, 111}, 10, &outcome);
    assert_int_equal(outcome.event, HTTP1_BODY_END);
    assert_int_equal(outcome.len, 100);
}

static void discarded_bytes_are_bounded(void **unused)
{
    (void)unused;
    static char text[HTTP1_BODY_DISCARDED_BYTES_MAX + 20];
    memset(text, 'x', sizeof text);
    memcpy(text, "0;", 2);
    expect_error((struct slice){text, HTTP1_BODY_DISCARDED_BYTES_MAX + 3}, 413);
    memcpy(text, "0\r\nX:", 5);
    expect_error((struct slice){text, HTTP1_BODY_DISCARDED_BYTES_MAX + 6}, 413);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_without_length_has_no_body),
        cmocka_unit_test(fixed_body_is_decoded),
        cmocka_unit_test(too_large_content_length_is_refused),
        cmocka_unit_test(chunked_body_is_decoded),
        cmocka_unit_test(extensions_and_trailers_are_discarded),
        cmocka_unit_test(bad_chunks_are_refused),
        cmocka_unit_test(chunks_count_together_for_the_bound),
        cmocka_unit_test(discarded_bytes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

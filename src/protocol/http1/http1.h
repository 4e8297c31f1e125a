/*
 * The head of an HTTP/1 request (RFC 9112): request line and header fields, up to the blank line.
 *
 * The parser works on the whole head in one contiguous piece of at most HTTP1_HEAD_BYTES_MAX.
 * Nothing is copied or allocated: every slice in the result points into the input and lasts as long
 * as it. While the head is incomplete the caller keeps what arrived and calls again with all of it;
 * a resumption offset makes that cheap however small the pieces are, and what can already be
 * refused (a bad request line, a line that ends in a bare LF, a head that is too long) is refused
 * at once.
 *
 * It is strict, because leniency is how requests are smuggled: no bare CR or LF, no folded lines,
 * no control characters, no blank before the colon, exactly one Host in HTTP/1.1, Content-Length
 * once and in digits, never together with Transfer-Encoding, and "chunked" as the only coding.
 *
 * The body that follows is http1_body.h; the parts of the target, http1_target.h. Pure functions.
 * Any thread.
 */
#ifndef ROLLCALL_PROTOCOL_HTTP1_HTTP1_H
#define ROLLCALL_PROTOCOL_HTTP1_HTTP1_H

#include "base/slice.h"
#include "protocol/http1/http1_target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP1_HEAD_BYTES_MAX 16384
#define HTTP1_HEADERS_MAX 100
#define HTTP1_TARGET_BYTES_MAX 8192
#define HTTP1_METHOD_BYTES_MAX 32

enum http1_method {
    HTTP1_GET,
    HTTP1_HEAD,
    HTTP1_POST,
    HTTP1_PUT,
    HTTP1_PATCH,
    HTTP1_DELETE,
    HTTP1_OPTIONS,
    HTTP1_OTHER_METHOD, /* a valid token; see method_text */
};

enum http1_result { HTTP1_INCOMPLETE, HTTP1_COMPLETE, HTTP1_REFUSED };

struct http1_header {
    struct slice name;
    struct slice value; /* without blanks around it; may be empty, data is never NULL */
};

struct http1_head {
    /* REFUSED: what to answer before closing. */
    unsigned error_status; /* 400, 414, 431, 501 or 505 */
    const char *error_reason;

    /* COMPLETE: */
    size_t len; /* of the head with its blank line; the body begins there */
    enum http1_method method;
    struct slice method_text;
    struct slice target_text; /* as sent */
    struct http1_target target;
    struct slice host; /* authority of an absolute target, else the Host field; may be empty */
    unsigned version_minor;
    bool keep_alive; /* the peer lets the connection go on after the answer */
    bool chunked;
    bool has_content_length;
    bool expect_continue;   /* waits for "100 Continue" before it sends the body */
    bool upgrade_websocket; /* Connection: upgrade and Upgrade: websocket; the method is not checked
                             */
    uint64_t content_length;
    size_t header_count;
    struct http1_header headers[HTTP1_HEADERS_MAX];
};

/* Parses the head that `input` begins with. *scanned is the caller's resumption offset: 0 for a new
 * head, then left alone between calls whose input only grows. `head` is valid as the result tells.
 */
enum http1_result http1_parse(struct slice input, size_t *scanned, struct http1_head *head);

/* The value of the first field with that name, in any case; data is NULL when there is none. */
struct slice http1_header(const struct http1_head *head, struct slice name);

/* How many fields have that name. */
size_t http1_header_count(const struct http1_head *head, struct slice name);

/* Whether any field with that name lists `token`, in any case. */
bool http1_header_has_token(const struct http1_head *head, struct slice name, struct slice token);

/* The first element that begins with `prefix` in any field with that name; data is NULL when there is none. */
struct slice http1_header_token_starting(const struct http1_head *head, struct slice name,
                                         struct slice prefix);

/* Takes the next element off a comma-separated list, without blanks around it. False at the end.
 * Empty elements are passed over. Knows no quoted strings. */
bool http1_token_next(struct slice *list, struct slice *token);

#endif

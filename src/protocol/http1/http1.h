/*
 * The head of an HTTP/1 request (RFC 9112): request line and header fields, up to the blank line.
 *
 * The parser works on the whole head in one contiguous piece of at most HTTP1_HEAD_BYTES_MAX. It copies and
 * allocates nothing: every slice in the result points into the input and lasts as long as the input. While the
 * head is incomplete, the caller keeps the bytes and calls again with all of them. A resumption offset makes
 * that cheap however small the pieces are. A fault that is already visible (a bad request line, a line that
 * ends in a bare LF, a head that is too long) is refused at once.
 *
 * The parser is strict, because leniency allows request smuggling: no bare CR or LF, no folded lines, no
 * control characters, no blank before the colon, exactly one Host in HTTP/1.1, Content-Length once and in
 * digits, never together with Transfer-Encoding, and "chunked" as the only coding.
 *
 * http1_body.h decodes the body that follows, http1_target.h the parts of the target. Pure functions. Any
 * thread.
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
    struct slice value; /* trimmed; may be empty, data is never NULL */
};

struct http1_head {
    /* REFUSED: the response before closing. */
    unsigned error_status; /* 400, 414, 431, 501 or 505 */
    const char *error_reason;

    /* COMPLETE: */
    size_t len; /* of the head with its blank line; the body follows */
    enum http1_method method;
    struct slice method_text;
    struct slice target_text; /* as sent */
    struct http1_target target;
    struct slice host; /* authority of an absolute target, else the Host field; may be empty */
    unsigned version_minor;
    bool keep_alive; /* the client allows further requests on the connection */
    bool chunked;
    bool has_content_length;
    bool expect_continue;   /* the client waits for "100 Continue" before it sends the body */
    bool upgrade_websocket; /* Connection: upgrade, Upgrade: websocket; any method */
    uint64_t content_length;
    size_t header_count;
    struct http1_header headers[HTTP1_HEADERS_MAX];
};

/* Parses the head at the start of `input`. *scanned is the resumption offset: the caller sets it to 0 for a
 * new head and leaves it alone while only the input grows. The comments above name the valid
 * fields of `head` for each result. */
enum http1_result http1_parse(struct slice input, size_t *scanned, struct http1_head *head);

/* The value of the last field with that name, ignoring case; data is NULL when there is none. */
struct slice http1_header_last(const struct http1_head *head, struct slice name);

/* The value of the first field with that name, ignoring case; data is NULL when there is none. */
struct slice http1_header(const struct http1_head *head, struct slice name);

/* How many fields have that name. */
size_t http1_header_count(const struct http1_head *head, struct slice name);

/* Whether any field with that name lists `token`, ignoring case. */
bool http1_header_has_token(const struct http1_head *head, struct slice name, struct slice token);

/* The first element that begins with `prefix` in any field with that name; data is NULL when there is none. */
struct slice http1_header_token_starting(const struct http1_head *head, struct slice name,
                                         struct slice prefix);

/* Takes the next element, trimmed, off a comma-separated list. Returns false at the end. Skips empty elements.
 * Does not support quoted strings. */
bool http1_token_next(struct slice *list, struct slice *token);

#endif

/*
 * The body of an HTTP/1 request (RFC 9112, 6 and 7): by Content-Length, in chunks, or none.
 *
 * The decoder takes bytes as they arrive and gives out the body's bytes where they stand; it keeps
 * nothing but where it is. Chunk extensions and trailers are checked, counted and thrown away.
 *
 *   SIZE ──digit──► SIZE_DIGITS ──';'──► EXTENSION
 *    ▲                 │ CR                 │ CR
 *    │                 ▼                    │
 *    │              SIZE_LF ◄───────────────┘
 *    │                 │ LF ──── size 0 ────────► TRAILER_START ──CR──► END_LF ──LF──► ENDED
 *    │                 ▼                           │         ▲
 *    │               DATA                     name │         │ LF
 *    │                 │ all of it                 ▼         │
 *    │                 ▼                     TRAILER_NAME   TRAILER_LF
 *    └─LF─ DATA_LF ◄─CR─ DATA_CR                   │ ':'     ▲
 *                                                  ▼         │ CR
 *                                            TRAILER_VALUE ──┘
 *
 * A Content-Length body is the one state FIXED. ENDED and FAILED are final.
 *
 * Bounds: the body as a whole (`bytes_max`; more is refused with 413 as soon as it is declared), a
 * chunk size's digits, and all extensions and trailers of a request together. Nothing is allocated.
 * One thread at a time.
 */
#ifndef ROLLCALL_PROTOCOL_HTTP1_HTTP1_BODY_H
#define ROLLCALL_PROTOCOL_HTTP1_HTTP1_BODY_H

#include "base/slice.h"
#include "protocol/http1/http1.h"

#define HTTP1_BODY_SIZE_DIGITS_MAX 16
#define HTTP1_BODY_DISCARDED_BYTES_MAX 4096

enum http1_body_event {
    HTTP1_BODY_NEED_MORE, /* the input is used up */
    HTTP1_BODY_DATA,
    HTTP1_BODY_END,   /* what is left of the input belongs to the next request */
    HTTP1_BODY_ERROR, /* answer `error_status` and close: the next request cannot be found */
};

struct http1_body {
    uint64_t bytes_left; /* that may still come before `bytes_max` is passed */
    uint64_t remaining;  /* of the fixed body or the current chunk */
    uint16_t discarded_bytes;
    uint16_t error_status; /* 400 or 413 */
    uint8_t state;
    uint8_t size_digits;
};

/* Makes ready for the body that `head` announces, of at most `bytes_max` bytes. A larger
 * Content-Length makes the first decode an error. */
void http1_body_start(struct http1_body *body, const struct http1_head *head, uint64_t bytes_max);

/* Takes bytes from the front of *input up to the next event. DATA: *data is a piece of the body, a
 * part of the input. END and ERROR are given again if asked again. Call until it is not DATA. */
enum http1_body_event http1_body_decode(struct http1_body *body, struct slice *input,
                                        struct slice *data);

#endif

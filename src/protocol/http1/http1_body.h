/*
 * The body of an HTTP/1 request (RFC 9112, 6 and 7): by Content-Length, in chunks, or none.
 *
 * The decoder takes bytes as they arrive and returns the body's bytes in place; it keeps only its state. It
 * checks, counts and discards chunk extensions and trailers.
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
 * A Content-Length body has the single state FIXED. ENDED and FAILED are final.
 *
 * Bounds: the whole body (`bytes_max`; more is refused with 413 as soon as it is declared), the digits of a
 * chunk size, and all extensions and trailers of a request together. Allocates nothing. One thread at a time.
 */
#ifndef ROLLCALL_PROTOCOL_HTTP1_HTTP1_BODY_H
#define ROLLCALL_PROTOCOL_HTTP1_HTTP1_BODY_H

#include "base/slice.h"
#include "protocol/http1/http1.h"

#define HTTP1_BODY_SIZE_DIGITS_MAX 16
#define HTTP1_BODY_DISCARDED_BYTES_MAX 4096

enum http1_body_event {
    HTTP1_BODY_NEED_MORE, /* all input was taken */
    HTTP1_BODY_DATA,
    HTTP1_BODY_END,   /* the rest of the input belongs to the next request */
    HTTP1_BODY_ERROR, /* respond with `error_status` and close: the next request cannot be found */
};

struct http1_body {
    uint64_t bytes_left; /* how much more `bytes_max` allows */
    uint64_t remaining;  /* of the fixed body or the current chunk */
    uint16_t discarded_bytes;
    uint16_t error_status; /* 400 or 413 */
    uint8_t state;
    uint8_t size_digits;
};

/* Prepares for the body that `head` declares, of at most `bytes_max` bytes. A larger Content-Length makes the
 * first decode an error. */
void http1_body_start(struct http1_body *body, const struct http1_head *head, uint64_t bytes_max);

/* Takes bytes from the front of *input up to the next event. DATA: *data is a piece of the body, within the
 * input. END and ERROR repeat. Call it until the event is not DATA. */
enum http1_body_event http1_body_decode(struct http1_body *body, struct slice *input,
                                        struct slice *data);

#endif

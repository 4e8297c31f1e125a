/*
 * An HTTP client on a loop: one request, one completion. libcurl does the work, driven by the loop's events, so
 * nothing blocks and no request has a thread (names are resolved in threads of libcurl's own).
 *
 *   http_client_send() ──► in flight ──► answered, failed or out of time ──► done(), exactly once, in a later turn
 *
 * Bounds: requests in flight (further ones are refused at once), and for each request its time, its response's body
 * and its response's head (HTTP_CLIENT_HEAD_BYTES_MAX). Redirects are not followed and proxies are not used, so that
 * a request goes where its URL says. Certificates and host names are verified. Connections are kept for the next
 * request; when the server has closed a kept one without a byte of answer, the request is sent again on a new one, so
 * a server may see a request twice that completes once.
 *
 * Threading: the loop's thread only. Ownership: a request is borrowed until http_client_send() returns, a response until
 * done() returns. done() may send further requests, but not free the client.
 */
#ifndef ROLLCALL_HTTP_CLIENT_HTTP_CLIENT_H
#define ROLLCALL_HTTP_CLIENT_HTTP_CLIENT_H

#include "base/slice.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_CLIENT_HEAD_BYTES_MAX = 64 * 1024,
    HTTP_CLIENT_ERROR_TEXT_MAX = 256,
    HTTP_CLIENT_IDLE_MAX = 8, /* transfers that are kept for the next request to the same URL */
};

struct http_client;

/* How to sign a request with AWS Signature Version 4. The request has a body, names its Content-Type and has no query.
 * Its headers neither leave a value empty nor name X-Amz-Date or X-Amz-Security-Token, which are added here. */
struct http_client_signing {
    const char *scope; /* "aws:amz:REGION:SERVICE" */
    const char *access_key_id;
    const char *secret_access_key;
    const char *session_token; /* NULL: none */
};

struct http_client_request {
    const char *method;
    const char *url;            /* http or https */
    const char *const *headers; /* lines "Name: value", the last one followed by NULL; NULL: none */
    struct slice body;
    const struct http_client_signing *signing; /* NULL: unsigned */
    const char *ca_file; /* whose certificates are trusted; NULL: the system's */
    int64_t time_limit_ms;
    size_t body_bytes_max;       /* of the response */
    bool plain_to_loopback_only; /* without TLS, connect to loopback addresses only */
};

struct http_client_response {
    unsigned status;   /* 0: there is no response, `error` says why */
    struct slice body; /* empty without a response */
    const char *error; /* NULL with a response */
    bool unsent;       /* no connection was made, so nobody has seen the request */
};

typedef void (*http_client_done)(void *arg, const struct http_client_response *response);

/* Returns NULL when out of memory or descriptors. */
struct http_client *http_client_make(struct loop *loop, size_t in_flight_max);

/* Completes what is in flight without a response, and nulls the caller's pointer. */
void http_client_free(struct http_client **client);

/* Returns false, and never calls `done`, when too many requests are in flight or when out of memory. */
bool http_client_send(struct http_client *client, const struct http_client_request *request,
                      http_client_done done, void *arg);

#endif

/*
 * One request of an HTTP client with its response: a handle of libcurl and what it fills in.
 *
 * To make and set up such a handle takes longer than to use it, so one is used again for requests to the same URL:
 *
 *   http_transfer_make() ──► http_transfer_prepare() ──► in flight ──► http_transfer_clear() ──► idle ──► prepare …
 *
 * A signed request, one without a body, and one that is no POST have a handle of their own (`is_reusable`).
 */
#ifndef ROLLCALL_HTTP_CLIENT_HTTP_TRANSFER_H
#define ROLLCALL_HTTP_CLIENT_HTTP_TRANSFER_H

#include "base/buffer.h"
#include "http_client/http_client.h"
#include "http_client/http_sockets.h"

enum {
    HTTP_TRANSFER_HEADERS_MAX = 16,           /* of a request; more are a programmer's error */
    HTTP_TRANSFER_KEPT_BYTES_MAX = 16 * 1024, /* memory for a body that an idle one keeps */
};

struct http_transfer {
    struct list of_client; /* in flight, or idle */
    struct http_sockets *sockets;
    CURL *easy;
    char *url; /* owned, as is the file */
    char *ca_file;
    struct buffer request; /* its headers, each with its zero, and its body */
    struct curl_slist headers[HTTP_TRANSFER_HEADERS_MAX];
    struct buffer body; /* of the response */
    size_t body_bytes_max;
    size_t head_bytes;
    bool is_reusable;
    bool loopback_only;
    const char *refusal; /* why we ended it; NULL: we did not */
    http_client_done done;
    void *arg;
    char error[CURL_ERROR_SIZE];
};

/* Makes one for the URL and authorities of this request. Returns NULL when out of memory. */
struct http_transfer *http_transfer_make(struct http_sockets *sockets,
                                         const struct http_client_request *request);
void http_transfer_free(struct http_transfer *transfer);

/* Returns whether an idle one may be used for this request. */
bool http_transfer_fits(const struct http_transfer *transfer,
                        const struct http_client_request *request);

/* Copies the request. Returns false when out of memory: then only http_transfer_free() may follow. */
bool http_transfer_prepare(struct http_transfer *transfer,
                           const struct http_client_request *request);

/* Drops request and response. */
void http_transfer_clear(struct http_transfer *transfer);

/* Describes how it ended; with an error there is no response. It borrows from the transfer. */
struct http_client_response http_transfer_response(const struct http_transfer *transfer,
                                                   const char *error);

#endif

#include "http_client/http_transfer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { LOOPBACK_NET = 127 };

/* ---- what libcurl calls ---- */

static size_t on_response_body(char *data, size_t size, size_t count, void *arg)
{
    struct http_transfer *transfer = arg;
    size_t len = size * count;
    if (len > transfer->body_bytes_max - transfer->body.len)
        transfer->refusal = "the response is too large";
    else
        buffer_append(&transfer->body, data, len);
    if (transfer->body.failed)
        transfer->refusal = "out of memory";
    return transfer->refusal ? 0 : len;
}

static size_t on_response_head(char *data, size_t size, size_t count, void *arg)
{
    struct http_transfer *transfer = arg;
    (void)data;
    transfer->head_bytes += size * count;
    if (transfer->head_bytes > HTTP_CLIENT_HEAD_BYTES_MAX)
        transfer->refusal = "the response's head is too large";
    return transfer->refusal ? 0 : size * count;
}

static bool is_loopback_sockaddr(const struct curl_sockaddr *address)
{
    if (address->family == AF_INET)
        return ntohl(((const struct sockaddr_in *)&address->addr)->sin_addr.s_addr) >> 24 ==
               LOOPBACK_NET;
    return address->family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address->addr)->sin6_addr);
}

/* The name has been resolved, so this is where the connection really goes. */
static curl_socket_t on_socket_wanted(void *arg, curlsocktype purpose,
                                      struct curl_sockaddr *address)
{
    struct http_transfer *transfer = arg;
    (void)purpose;
    if (transfer->loopback_only && !is_loopback_sockaddr(address)) {
        transfer->refusal = "plain HTTP is for loopback addresses only";
        return CURL_SOCKET_BAD;
    }
    return http_sockets_open(transfer->sockets, address);
}

/* ---- life ---- */

static bool is_plain_url(const char *url)
{
    return slice_starts_with(slice_of(url), SLICE("http://"));
}

static bool set_transfer_limits(CURL *easy, const struct http_client_request *request)
{
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           /* a name lookup that outlasts the time limit must not hold up the loop */
           curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
           (!request->ca_file ||
            curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file) == CURLE_OK);
}

static bool set_transfer_callbacks(struct http_transfer *transfer)
{
    CURL *easy = transfer->easy;
    return curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_response_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_response_head) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket_wanted) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, http_sockets_close) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, transfer->sockets) == CURLE_OK;
}

static bool is_reusable_for(const struct http_client_request *request)
{
    return !request->signing && request->body.len > 0 && strcmp(request->method, "POST") == 0;
}

static bool copy_target(struct http_transfer *transfer, const struct http_client_request *request)
{
    transfer->url = strdup(request->url);
    transfer->ca_file = request->ca_file ? strdup(request->ca_file) : NULL;
    return transfer->url && (transfer->ca_file || !request->ca_file);
}

struct http_transfer *http_transfer_make(struct http_sockets *sockets,
                                         const struct http_client_request *request)
{
    struct http_transfer *transfer = calloc(1, sizeof(*transfer));
    if (!transfer)
        return NULL;
    transfer->sockets = sockets;
    transfer->is_reusable = is_reusable_for(request);
    transfer->loopback_only = request->plain_to_loopback_only && is_plain_url(request->url);
    transfer->easy = curl_easy_init();
    if (transfer->easy && copy_target(transfer, request) &&
        set_transfer_limits(transfer->easy, request) && set_transfer_callbacks(transfer) &&
        curl_easy_setopt(transfer->easy, CURLOPT_URL, request->url) == CURLE_OK)
        return transfer;
    http_transfer_free(transfer);
    return NULL;
}

void http_transfer_free(struct http_transfer *transfer)
{
    curl_easy_cleanup(transfer->easy);
    buffer_free(&transfer->request);
    buffer_free(&transfer->body);
    free(transfer->url);
    free(transfer->ca_file);
    free(transfer);
}

bool http_transfer_fits(const struct http_transfer *transfer,
                        const struct http_client_request *request)
{
    bool has_same_file = transfer->ca_file && request->ca_file
                             ? strcmp(transfer->ca_file, request->ca_file) == 0
                             : transfer->ca_file == request->ca_file;
    bool loopback_only = request->plain_to_loopback_only && is_plain_url(request->url);
    return is_reusable_for(request) && has_same_file && transfer->loopback_only == loopback_only &&
           strcmp(transfer->url, request->url) == 0;
}

static void empty_kept_buffer(struct buffer *buffer)
{
    if (buffer->cap > HTTP_TRANSFER_KEPT_BYTES_MAX)
        buffer_free(buffer);
    else
        buffer_clear(buffer);
}

void http_transfer_clear(struct http_transfer *transfer)
{
    empty_kept_buffer(&transfer->request);
    empty_kept_buffer(&transfer->body);
    transfer->head_bytes = 0;
    transfer->refusal = NULL;
    transfer->error[0] = '\0';
}

/* ---- the request ---- */

static void add_header_line(struct http_transfer *transfer, const char *name, const char *value)
{
    buffer_append_text(&transfer->request, name);
    buffer_append_text(&transfer->request, value);
    buffer_append_byte(&transfer->request, '\0');
}

/* Makes the list that libcurl wants of `count` lines, which stand one behind the other. Returns NULL if there is none, else the
 * list, and where the lines end. */
static struct curl_slist *list_header_lines(struct http_transfer *transfer, size_t count,
                                            char **lines_end)
{
    char *line = transfer->request.data;
    assert(count <= HTTP_TRANSFER_HEADERS_MAX);
    for (size_t i = 0; i < count; i++) {
        transfer->headers[i] = (struct curl_slist){line, NULL};
        if (i > 0)
            transfer->headers[i - 1].next = &transfer->headers[i];
        line += strlen(line) + 1;
    }
    *lines_end = line;
    return count ? transfer->headers : NULL;
}

static bool set_transfer_signing(CURL *easy, const struct http_client_signing *signing)
{
    return curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, signing->scope) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERNAME, signing->access_key_id) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PASSWORD, signing->secret_access_key) == CURLE_OK;
}

/* libcurl makes a POST of what has a body. */
static bool set_transfer_body(CURL *easy, const struct http_client_request *request,
                              const char *body)
{
    size_t len = request->body.len;
    return (len == 0 || (curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)len) == CURLE_OK &&
                         curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body) == CURLE_OK)) &&
           ((len > 0 && strcmp(request->method, "POST") == 0) ||
            curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK);
}

bool http_transfer_prepare(struct http_transfer *transfer,
                           const struct http_client_request *request)
{
    const struct http_client_signing *signing = request->signing;
    CURL *easy = transfer->easy;
    size_t count = 0;
    char *body;
    for (; request->headers && request->headers[count]; count++)
        add_header_line(transfer, request->headers[count], "");
    if (signing && signing->session_token) {
        add_header_line(transfer, "X-Amz-Security-Token: ", signing->session_token);
        count++;
    }
    buffer_append_slice(&transfer->request, request->body);
    transfer->body_bytes_max = request->body_bytes_max;
    if (transfer->request.failed || (signing && !set_transfer_signing(easy, signing)))
        return false;
    struct curl_slist *headers = list_header_lines(transfer, count, &body);
    return set_transfer_body(easy, request, body) &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->time_limit_ms) == CURLE_OK;
}

/* ---- the response ---- */

/* Returns whether the transfer ended before there was a connection. */
static bool is_transfer_unsent(const struct http_transfer *transfer)
{
    curl_off_t connected_us = 0, request_sent_us = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &request_sent_us);
    return connected_us == 0 && request_sent_us == 0;
}

struct http_client_response http_transfer_response(const struct http_transfer *transfer,
                                                   const char *error)
{
    long status = 0;
    if (error)
        return (struct http_client_response){.error = error,
                                             .unsent = is_transfer_unsent(transfer)};
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    return (struct http_client_response){.status = (unsigned)status,
                                         .body = buffer_slice(&transfer->body)};
}

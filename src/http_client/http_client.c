#include "http_client/http_client.h"

#include "base/buffer.h"
#include "base/container.h"
#include "base/list.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { READY_SOCKETS_MAX = 32, LOOPBACK_NET = 127 };

/* libcurl may leave bytes unread, so its sockets are watched level-triggered, in an epoll of their own inside the
 * loop's. */
struct http_client {
    struct loop_source source; /* that epoll */
    struct wheel_timer timer;  /* when libcurl wants to be called */
    struct loop *loop;
    CURLM *multi;
    struct list in_flight;
    size_t in_flight_count;
    size_t in_flight_max;
};

struct http_transfer {
    struct list of_client;
    struct http_client *client;
    CURL *easy;
    struct curl_slist *headers;
    struct buffer body;
    size_t body_bytes_max;
    size_t head_bytes;
    bool loopback_only;
    const char *refusal; /* why we ended it; NULL: we did not */
    http_client_done done;
    void *arg;
    char error[CURL_ERROR_SIZE];
};

/* ---- one transfer ---- */

static void free_transfer(struct http_transfer *transfer)
{
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    buffer_free(&transfer->body);
    free(transfer);
}

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
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool is_plain_url(const char *url)
{
    return slice_starts_with(slice_of(url), SLICE("http://"));
}

static bool set_transfer_limits(CURL *easy, const struct http_client_request *request)
{
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->time_limit_ms) == CURLE_OK &&
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
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer) == CURLE_OK;
}

static bool add_transfer_header(struct http_transfer *transfer, const char *line)
{
    struct curl_slist *headers = curl_slist_append(transfer->headers, line);
    if (headers)
        transfer->headers = headers;
    return headers != NULL;
}

static bool add_session_token(struct http_transfer *transfer, const char *token)
{
    struct buffer line = BUFFER_INIT;
    buffer_append_text(&line, "X-Amz-Security-Token: ");
    buffer_append_text(&line, token);
    buffer_append_byte(&line, '\0');
    bool added = !line.failed && add_transfer_header(transfer, line.data);
    buffer_free(&line);
    return added;
}

static bool set_transfer_signing(struct http_transfer *transfer,
                                 const struct http_client_signing *signing)
{
    CURL *easy = transfer->easy;
    return curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, signing->scope) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERNAME, signing->access_key_id) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PASSWORD, signing->secret_access_key) == CURLE_OK &&
           (!signing->session_token || add_session_token(transfer, signing->session_token));
}

static bool set_transfer_request(struct http_transfer *transfer,
                                 const struct http_client_request *request)
{
    CURL *easy = transfer->easy;
    for (size_t i = 0; request->headers && request->headers[i]; i++)
        if (!add_transfer_header(transfer, request->headers[i]))
            return false;
    if (request->signing && !set_transfer_signing(transfer, request->signing))
        return false;
    bool set = curl_easy_setopt(easy, CURLOPT_URL, request->url) == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers) == CURLE_OK;
    if (request->body.len)
        set = set &&
              curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)request->body.len) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->body.data) == CURLE_OK;
    return set && curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
}

/* ---- answers ---- */

/* Returns whether the transfer ended before there was a connection. */
static bool is_transfer_unsent(const struct http_transfer *transfer, const char *error)
{
    curl_off_t connected_us = 0, request_sent_us = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &request_sent_us);
    return error && connected_us == 0 && request_sent_us == 0;
}

static void end_transfer(struct http_transfer *transfer, const char *error)
{
    struct http_client *client = transfer->client;
    struct http_client_response response = {.error = error,
                                            .unsent = is_transfer_unsent(transfer, error)};
    long status = 0;
    if (!error) {
        curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        response.status = (unsigned)status;
        response.body = buffer_slice(&transfer->body);
    }
    curl_multi_remove_handle(client->multi, transfer->easy);
    list_remove(&transfer->of_client);
    client->in_flight_count--;
    transfer->done(transfer->arg, &response);
    free_transfer(transfer);
}

static void end_finished_transfers(struct http_client *client)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(client->multi, &left))) {
        struct http_transfer *transfer = NULL;
        CURLcode result = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        const char *error = transfer->error[0] ? transfer->error : curl_easy_strerror(result);
        end_transfer(transfer, result == CURLE_OK  ? NULL
                               : transfer->refusal ? transfer->refusal
                                                   : error);
    }
}

/* ---- events ---- */

static void on_client_sockets_ready(struct loop_source *source, uint32_t events)
{
    struct http_client *client = CONTAINER_OF(source, struct http_client, source);
    struct epoll_event ready[READY_SOCKETS_MAX];
    int running;
    (void)events;
    int count = epoll_wait(source->fd, ready, READY_SOCKETS_MAX, 0);
    for (int i = 0; i < count; i++) {
        int action = (ready[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                     (ready[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                     (ready[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(client->multi, ready[i].data.fd, action, &running);
    }
    end_finished_transfers(client);
}

static void on_client_timer(struct wheel_timer *timer)
{
    struct http_client *client = CONTAINER_OF(timer, struct http_client, timer);
    int running;
    curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    end_finished_transfers(client);
}

static int on_socket_watched(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    struct http_client *client = arg;
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(client->source.fd, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (known)
        return epoll_ctl(client->source.fd, EPOLL_CTL_MOD, fd, &event);
    curl_multi_assign(client->multi, fd, client);
    return epoll_ctl(client->source.fd, EPOLL_CTL_ADD, fd, &event);
}

static int on_timer_wanted(CURLM *multi, long wait_ms, void *arg)
{
    struct http_client *client = arg;
    (void)multi;
    if (wait_ms < 0)
        loop_cancel_timer(client->loop, &client->timer);
    else
        loop_set_timer(client->loop, &client->timer, client->loop->clock.now_ms + wait_ms);
    return 0;
}

/* ---- life ---- */

struct http_client *http_client_make(struct loop *loop, size_t in_flight_max)
{
    struct http_client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->loop = loop;
    client->in_flight_max = in_flight_max;
    client->timer.fire = on_client_timer;
    client->source = (struct loop_source){epoll_create1(EPOLL_CLOEXEC), on_client_sockets_ready};
    list_init(&client->in_flight);
    /* libcurl counts these calls */
    client->multi = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
    if (client->source.fd < 0 || !client->multi || !loop_add_level(loop, &client->source)) {
        http_client_free(&client);
        return NULL;
    }
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket_watched);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)in_flight_max);
    return client;
}

void http_client_free(struct http_client **client)
{
    struct http_client *freed = *client;
    *client = NULL;
    if (!freed)
        return;
    for (struct list *at = freed->in_flight.next; at != &freed->in_flight;) {
        struct http_transfer *transfer = CONTAINER_OF(at, struct http_transfer, of_client);
        at = at->next;
        end_transfer(transfer, "the client ends");
    }
    curl_multi_cleanup(freed->multi);
    curl_global_cleanup();
    loop_cancel_timer(freed->loop, &freed->timer);
    if (freed->source.fd >= 0) {
        loop_remove(freed->loop, &freed->source);
        close(freed->source.fd);
    }
    free(freed);
}

bool http_client_send(struct http_client *client, const struct http_client_request *request,
                      http_client_done done, void *arg)
{
    if (client->in_flight_count >= client->in_flight_max)
        return false;
    struct http_transfer *transfer = calloc(1, sizeof(*transfer));
    if (!transfer)
        return false;
    transfer->client = client;
    transfer->done = done;
    transfer->arg = arg;
    transfer->body_bytes_max = request->body_bytes_max;
    transfer->loopback_only = request->plain_to_loopback_only && is_plain_url(request->url);
    transfer->easy = curl_easy_init();
    if (!transfer->easy || !set_transfer_limits(transfer->easy, request) ||
        !set_transfer_callbacks(transfer) || !set_transfer_request(transfer, request) ||
        curl_multi_add_handle(client->multi, transfer->easy) != CURLM_OK) {
        free_transfer(transfer);
        return false;
    }
    list_append(&client->in_flight, &transfer->of_client);
    client->in_flight_count++;
    return true;
}

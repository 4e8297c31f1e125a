#include "http/http_listener.h"

#include "base/container.h"
#include "http/http_connection.h"
#include "http/proxy_preface.h"
#include "log/log.h"
#include "protocol/http1/http1.h"

#include <sys/socket.h>
#include <unistd.h>

static const char REFUSED[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"
                              "Content-Length: 0\r\nConnection: close\r\n\r\n";

static struct http_connection *http_connection_at(struct list *place)
{
    return CONTAINER_OF(place, struct http_connection, of_listener);
}

void http_listener_init(struct http_listener *listener)
{
    list_init(&listener->connections);
    list_init(&listener->waiting);
    list_init(&listener->prefaces);
}

static const char TOO_MANY[] = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\n"
                               "Content-Length: 0\r\nConnection: close\r\n\r\n";

void http_listener_refuse(struct http_listener *listener, int fd, struct slice answer)
{
    char received[HTTP1_HEAD_BYTES_MAX];
    /* Closing with unread bytes would reset the connection, and the answer might be lost with it. */
    ssize_t ignored = recv(fd, received, sizeof(received), MSG_DONTWAIT);
    if (!listener->tls)
        ignored = send(fd, answer.data, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)ignored;
    if (listener->addresses)
        client_addresses_release(listener->addresses, fd);
    close(fd);
}

static void open_accepted(struct http_listener *listener, int fd, bool proxied, bool over_limit)
{
    struct tls_connection *tls = listener->tls ? tls_connection_make(listener->tls, fd) : NULL;
    struct http_connection *connection =
        !listener->tls || tls ? http_connection_open(listener, fd, tls, false) : NULL;
    if (connection) {
        connection->proxied = proxied;
        connection->over_limit = over_limit;
        return;
    }
    metrics_count(listener->metrics, METRIC_CONNECTIONS_REFUSED);
    tls_connection_free(&tls);
    http_listener_refuse(listener, fd, slice_of(REFUSED));
}

void http_listener_accept_from(struct http_listener *listener, int fd,
                               const struct ip_address *address, bool proxied)
{
    char text[IP_ADDRESS_TEXT_MAX];
    bool over_limit = !proxied && !client_addresses_assign(listener->addresses, fd, address);
    if (over_limit)
        log_debug("address_refused", "address=%s", ip_address_write(text, address));
    if (!over_limit || listener->tls) { /* over TLS the first request is answered */
        open_accepted(listener, fd, proxied, over_limit);
        return;
    }
    metrics_count(listener->metrics, METRIC_ADDRESS_REFUSED);
    http_listener_refuse(listener, fd, slice_of(TOO_MANY));
}

void http_listener_accept(struct http_listener *listener, int fd)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);
    struct ip_address address;
    if (!listener->addresses || getpeername(fd, (struct sockaddr *)&peer, &len) != 0 ||
        !ip_address_of_socket(&peer, &address))
        open_accepted(listener, fd, false, false);
    else if (client_addresses_is_trusted(listener->addresses, &address))
        proxy_preface_accept(listener, fd, &address);
    else
        http_listener_accept_from(listener, fd, &address, false);
}

bool http_listener_displace(struct http_listener *listener)
{
    if (list_empty(&listener->waiting))
        return false;
    struct http_connection *oldest =
        CONTAINER_OF(listener->waiting.next, struct http_connection, waiting);
    list_remove(&oldest->waiting);
    stream_close(&oldest->stream);
    metrics_count(listener->metrics, METRIC_CONNECTIONS_DISPLACED);
    return true;
}

struct http_connection *http_listener_largest_body(struct http_listener *listener, size_t *bytes)
{
    struct http_connection *largest = NULL;
    *bytes = 0;
    for (struct list *at = listener->connections.next; at != &listener->connections;
         at = at->next) {
        struct http_connection *connection = http_connection_at(at);
        if (connection->state != HTTP_BODY || connection->exchange->body.cap <= *bytes)
            continue;
        largest = connection;
        *bytes = connection->exchange->body.cap;
    }
    return largest;
}

void http_listener_drain(struct http_listener *listener)
{
    listener->draining = true;
    proxy_preface_close_all(listener);
    for (struct list *at = listener->connections.next; at != &listener->connections; at = at->next)
        http_connection_at(at)->close_after = true;
}

void http_listener_close_idle(struct http_listener *listener)
{
    for (struct list *at = listener->connections.next; at != &listener->connections;
         at = at->next) {
        struct http_connection *connection = http_connection_at(at);
        if (connection->state == HTTP_HEAD && connection->in.len == 0 && connection->out.len == 0)
            stream_close(&connection->stream);
    }
}

void http_listener_shut(struct http_listener *listener)
{
    listener->shut = true;
    proxy_preface_close_all(listener);
}

void http_listener_close_all(struct http_listener *listener)
{
    for (struct list *at = listener->connections.next; at != &listener->connections;
         at = at->next) {
        struct stream *stream = &http_connection_at(at)->stream;
        stream_flush(stream);
        stream_close(stream);
    }
}

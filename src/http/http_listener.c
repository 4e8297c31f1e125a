#include "http/http_listener.h"

#include "base/container.h"
#include "http/http_connection.h"

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
}

void http_listener_accept(struct http_listener *listener, int fd)
{
    struct tls_connection *tls = listener->tls ? tls_connection_make(listener->tls, fd) : NULL;
    if ((!listener->tls || tls) && http_connection_open(listener, fd, tls, false))
        return;
    metrics_count(listener->metrics, METRIC_CONNECTIONS_REFUSED);
    /* best effort: if the socket is not writable, it is closed without an answer */
    if (!listener->tls)
        send(fd, REFUSED, sizeof(REFUSED) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    tls_connection_free(&tls);
    close(fd);
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

void http_listener_drain(struct http_listener *listener)
{
    listener->draining = true;
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
}

void http_listener_close_all(struct http_listener *listener)
{
    for (struct list *at = listener->connections.next; at != &listener->connections; at = at->next)
        stream_close(&http_connection_at(at)->stream);
}

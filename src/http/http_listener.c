#include "http/http_listener.h"

#include "base/container.h"
#include "http/http_session.h"

#include <sys/socket.h>
#include <unistd.h>

static const char REFUSED[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"
                              "Content-Length: 0\r\nConnection: close\r\n\r\n";

static struct http_session *session_at(struct list *place)
{
    return CONTAINER_OF(place, struct http_session, of_door);
}

void http_listener_init(struct http_listener *door)
{
    list_init(&door->sessions);
    list_init(&door->waiting);
}

void http_listener_accept(struct http_listener *door, int fd)
{
    struct tls_session *tls = door->tls ? tls_session_make(door->tls, fd) : NULL;
    if ((!door->tls || tls) && http_session_open(door, fd, tls, false))
        return;
    metrics_count(door->metrics, METRIC_CONNECTIONS_REFUSED);
    if (!door->tls) /* as a courtesy; a peer that does not take it now is simply closed */
        send(fd, REFUSED, sizeof(REFUSED) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    tls_session_free(&tls);
    close(fd);
}

bool http_listener_displace(struct http_listener *door)
{
    if (list_empty(&door->waiting))
        return false;
    struct http_session *oldest = CONTAINER_OF(door->waiting.next, struct http_session, waiting);
    list_remove(&oldest->waiting);
    stream_close(&oldest->stream);
    metrics_count(door->metrics, METRIC_CONNECTIONS_DISPLACED);
    return true;
}

void http_listener_drain(struct http_listener *door)
{
    door->draining = true;
    for (struct list *at = door->sessions.next; at != &door->sessions; at = at->next)
        session_at(at)->close_after = true;
}

void http_listener_close_idle(struct http_listener *door)
{
    for (struct list *at = door->sessions.next; at != &door->sessions; at = at->next) {
        struct http_session *session = session_at(at);
        if (session->state == HTTP_HEAD && session->in.len == 0 && session->out.len == 0)
            stream_close(&session->stream);
    }
}

void http_listener_shut(struct http_listener *door)
{
    door->shut = true;
}

void http_listener_close_all(struct http_listener *door)
{
    for (struct list *at = door->sessions.next; at != &door->sessions; at = at->next)
        stream_close(&session_at(at)->stream);
}

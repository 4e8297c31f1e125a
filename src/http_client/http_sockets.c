#include "http_client/http_sockets.h"

#include "base/container.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct http_socket {
    struct loop_source source;
    struct list of_client;
    struct http_sockets *sockets;
    uint32_t registered;  /* for these events; 0: not at all */
    uint32_t wanted;      /* by libcurl */
    bool is_a_connection; /* else it is libcurl's own */
};

void http_sockets_init(struct http_sockets *sockets, struct loop *loop, http_sockets_ready on_ready,
                       void *arg)
{
    *sockets = (struct http_sockets){.loop = loop, .on_ready = on_ready, .arg = arg};
    list_init(&sockets->all);
}

static void unregister_http_socket(struct http_socket *socket)
{
    if (socket->registered)
        loop_remove(socket->sockets->loop, &socket->source);
    socket->registered = 0;
}

static void free_http_socket(struct http_socket *socket)
{
    unregister_http_socket(socket);
    list_remove(&socket->of_client);
    free(socket);
}

void http_sockets_free(struct http_sockets *sockets)
{
    while (sockets->all.next != &sockets->all)
        free_http_socket(CONTAINER_OF(sockets->all.next, struct http_socket, of_client));
}

static void on_http_socket_ready(struct loop_source *source, uint32_t events)
{
    struct http_socket *socket = CONTAINER_OF(source, struct http_socket, source);
    struct http_sockets *sockets = socket->sockets;
    if (!socket->wanted) {
        unregister_http_socket(socket);
        return;
    }
    int action = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                 (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                 (events & EPOLLERR ? CURL_CSELECT_ERR : 0);
    sockets->on_ready(sockets->arg, source->fd, action);
}

static struct http_socket *find_http_socket(struct http_sockets *sockets, curl_socket_t fd)
{
    for (struct list *at = sockets->all.next; at != &sockets->all; at = at->next) {
        struct http_socket *socket = CONTAINER_OF(at, struct http_socket, of_client);
        if (socket->source.fd == fd)
            return socket;
    }
    return NULL;
}

static struct http_socket *make_http_socket(struct http_sockets *sockets, curl_socket_t fd,
                                            bool is_a_connection)
{
    struct http_socket *socket = calloc(1, sizeof(*socket));
    if (!socket)
        return NULL;
    socket->source = (struct loop_source){fd, on_http_socket_ready};
    socket->sockets = sockets;
    socket->is_a_connection = is_a_connection;
    list_append(&sockets->all, &socket->of_client);
    return socket;
}

curl_socket_t http_sockets_open(struct http_sockets *sockets, const struct curl_sockaddr *address)
{
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    if (make_http_socket(sockets, fd, true))
        return fd;
    close(fd);
    return CURL_SOCKET_BAD;
}

int http_sockets_close(void *arg, curl_socket_t fd)
{
    struct http_socket *socket = find_http_socket(arg, fd);
    if (socket)
        free_http_socket(socket);
    return close(fd);
}

static void unwatch_http_socket(struct http_socket *socket)
{
    socket->wanted = 0;
    if (!socket->is_a_connection)
        free_http_socket(socket);
}

bool http_sockets_watch(struct http_sockets *sockets, curl_socket_t fd, int what)
{
    struct http_socket *socket = find_http_socket(sockets, fd);
    if (what == CURL_POLL_REMOVE) {
        if (socket)
            unwatch_http_socket(socket);
        return true;
    }
    if (!socket)
        socket = make_http_socket(sockets, fd, false);
    if (!socket)
        return false;
    socket->wanted = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (socket->registered == socket->wanted)
        return true;
    if (!loop_watch_level(sockets->loop, &socket->source, socket->wanted, socket->registered != 0))
        return false;
    socket->registered = socket->wanted;
    return true;
}

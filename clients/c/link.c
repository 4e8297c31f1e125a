#include "link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int link_open_socket(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static const char *link_connect(struct link *link, unsigned attempt)
{
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    snprintf(port, sizeof(port), "%u", link->target.port);
    int error = getaddrinfo(link->target.host, port, &hints, &found);
    if (error != 0)
        return gai_strerror(error);
    unsigned count = 1;
    for (const struct addrinfo *at = found; at->ai_next; at = at->ai_next)
        count++;
    const struct addrinfo *chosen = found;
    for (unsigned i = attempt % count; i > 0; i--)
        chosen = chosen->ai_next;
    link->fd = link_open_socket(chosen);
    const char *why = link->fd < 0 ? strerror(errno) : NULL;
    freeaddrinfo(found);
    return why;
}

const char *link_dial(struct link *link, unsigned attempt)
{
    link_drop(link);
    const char *why = link_connect(link, attempt);
    return why || !link->target.tls ? why : secure_start(link);
}

ssize_t link_send(struct link *link, const void *data, size_t len)
{
    ssize_t went =
        link->tls ? secure_send(link, data, len) : send(link->fd, data, len, MSG_NOSIGNAL);
    link->connected |= went > 0;
    return went;
}

ssize_t link_receive(struct link *link, void *data, size_t len)
{
    ssize_t got = link->tls ? secure_receive(link, data, len) : recv(link->fd, data, len, 0);
    link->connected |= got > 0;
    return got;
}

const char *link_error(const struct link *link)
{
    return link->tls ? link->tls_error : strerror(errno);
}

short link_poll_events(const struct link *link, bool has_output)
{
    bool writes =
        !link->connected || link->tls_wants_write || (has_output && !link->tls_send_awaits_bytes);
    return (short)(POLLIN | (writes ? POLLOUT : 0));
}

bool link_begin_turn(struct link *link)
{
    bool waits = link->tls_wants_write;
    link->tls_wants_write = link->tls_send_awaits_bytes = false;
    return waits;
}

void link_drop(struct link *link)
{
    secure_drop(link);
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    link->connected = false;
}

void link_free(struct link *link)
{
    link_drop(link);
    secure_free(link);
}

void link_write_host(struct buffer *out, const struct link_target *target)
{
    bool brackets = strchr(target->host, ':') != NULL; /* an IPv6 address */
    buffer_printf(out, "Host: %s%s%s:%u\r\n", brackets ? "[" : "", target->host,
                  brackets ? "]" : "", target->port);
}

void link_write_escaped(struct buffer *out, const char *text)
{
    /* The characters that a path or a query may contain unescaped. */
    static const char PLAIN[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text; text++) {
        if (strchr(PLAIN, *text))
            buffer_append_byte(out, *text);
        else
            buffer_printf(out, "%%%02X", (unsigned char)*text);
    }
}

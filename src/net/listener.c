#include "net/listener.h"

#include "base/container.h"
#include "config/address.h"
#include "log/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* With these the kernel detects clients that vanished without closing. */
enum { KEEPALIVE_IDLE_S = 60, KEEPALIVE_INTERVAL_S = 15, KEEPALIVE_PROBES = 4 };

static void pause_listener(struct listener *listener)
{
    loop_set_timer(listener->loop, &listener->pause,
                   listener->loop->clock.now_ms + LISTENER_PAUSE_MS);
}

static void on_listener_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct listener *listener = CONTAINER_OF(source, struct listener, source);
    for (int accepts = 0; accepts < LISTENER_ACCEPTS_PER_TURN; accepts++) {
        int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            listener->on_accepted(listener->arg, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            log_warn("accept_paused", "error=%s", log_sentence(slice_of(strerror(errno))));
            loop_remove(listener->loop, source);
            pause_listener(listener);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void on_listener_pause_over(struct wheel_timer *timer)
{
    struct listener *listener = CONTAINER_OF(timer, struct listener, pause);
    if (!loop_add_level(listener->loop, &listener->source))
        pause_listener(listener);
}

static void set_listener_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof(value));
}

static int open_listening_socket(const struct sockaddr_storage *address, socklen_t address_len,
                                 const struct listener_options *options)
{
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    set_listener_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    set_listener_option(fd, SOL_SOCKET, SO_REUSEPORT, options->joins);
    /* accepted sockets inherit these */
    set_listener_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_listener_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, (int)options->unsent_bytes_max);
    set_listener_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_listener_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_listener_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_listener_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    if (bind(fd, (const struct sockaddr *)address, address_len) == 0 &&
        listen(fd, options->accept_queue_max) == 0) {
        /* Set after listen(2), which alone decides between two processes that start at once. */
        set_listener_option(fd, SOL_SOCKET, SO_REUSEPORT, options->joins || options->shared);
        return fd;
    }
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* Runs once, at start, so it may wait for a name server. */
static bool resolve_listen_address(const struct listener_options *options,
                                   struct sockaddr_storage *out, socklen_t *out_len)
{
    struct address address;
    if (!address_parse(slice_of(options->address), &address))
        return false;
    char host[ADDRESS_HOST_MAX + 1];
    char port[8];
    snprintf(host, sizeof(host), "%.*s", SLICE_FORMAT(address.host));
    snprintf(port, sizeof(port), "%u", options->port ? options->port : address.port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return false;
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *out_len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

/* Returns 0 when the system does not report it. */
static uint16_t read_listener_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.v6 = {0}};
    socklen_t len = sizeof(address);
    if (getsockname(fd, &address.any, &len) < 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

bool listener_open(struct listener *listener, struct loop *loop,
                   const struct listener_options *options, listener_on_accepted on_accepted,
                   void *arg, char error[LISTENER_ERROR_TEXT_MAX])
{
    struct sockaddr_storage address;
    socklen_t address_len;
    *listener = (struct listener){.source = {.fd = -1, .on_ready = on_listener_ready},
                                  .pause = {.fire = on_listener_pause_over},
                                  .loop = loop,
                                  .on_accepted = on_accepted,
                                  .arg = arg};
    if (!resolve_listen_address(options, &address, &address_len)) {
        snprintf(error, LISTENER_ERROR_TEXT_MAX, "cannot resolve %s", options->address);
        errno = EADDRNOTAVAIL;
        return false;
    }
    listener->source.fd = open_listening_socket(&address, address_len, options);
    if (listener->source.fd < 0 || !loop_add_level(loop, &listener->source)) {
        int reason = errno;
        snprintf(error, LISTENER_ERROR_TEXT_MAX, "cannot listen on %s: %s", options->address,
                 strerror(reason));
        listener_close(listener);
        errno = reason;
        return false;
    }
    listener->port = read_listener_port(listener->source.fd);
    return true;
}

void listener_close(struct listener *listener)
{
    if (listener->source.fd < 0)
        return;
    on_listener_ready(&listener->source, 0);
    loop_cancel_timer(listener->loop, &listener->pause);
    close(listener->source.fd);
    listener->source.fd = -1;
}

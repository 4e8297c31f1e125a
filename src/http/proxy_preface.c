#include "http/proxy_preface.h"

#include "base/container.h"
#include "protocol/proxy_header.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char MALFORMED[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n"
                                "Connection: close\r\n\r\n";

struct proxy_preface {
    struct loop_source source;
    struct wheel_timer timer;
    struct list of_listener;
    struct http_listener *listener;
    struct ip_address proxy;
};

/* Returns the descriptor, which the caller takes. */
static int end_proxy_preface(struct proxy_preface *preface)
{
    struct http_listener *listener = preface->listener;
    int fd = preface->source.fd;
    loop_cancel_timer(listener->loop, &preface->timer);
    loop_remove(listener->loop, &preface->source);
    list_remove(&preface->of_listener);
    listener->preface_count--;
    free(preface);
    return fd;
}

static void refuse_proxy_preface(struct proxy_preface *preface)
{
    struct http_listener *listener = preface->listener;
    int fd = end_proxy_preface(preface);
    metrics_count(listener->metrics, METRIC_PROTOCOL_ERRORS);
    http_listener_refuse(listener, fd, slice_of(MALFORMED));
}

/* Takes the header from the socket. Its bytes are there, since they were just looked at. */
static void finish_proxy_preface(struct proxy_preface *preface, const struct proxy_header *header)
{
    struct http_listener *listener = preface->listener;
    struct ip_address address = header->names_client ? header->from : preface->proxy;
    char bytes[PROXY_HEADER_BYTES_MAX];
    int fd = end_proxy_preface(preface);
    if (header->len && recv(fd, bytes, header->len, MSG_DONTWAIT) != (ssize_t)header->len)
        close(fd);
    else
        http_listener_accept_from(listener, fd, &address, header->len == 0);
}

static void on_proxy_preface_ready(struct loop_source *source, uint32_t events)
{
    struct proxy_preface *preface = CONTAINER_OF(source, struct proxy_preface, source);
    struct proxy_header header = {0};
    char bytes[PROXY_HEADER_BYTES_MAX];
    (void)events;
    ssize_t got = recv(source->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (got <= 0) {
        close(end_proxy_preface(preface));
        return;
    }
    switch (proxy_header_parse((struct slice){bytes, (size_t)got}, &header)) {
    case PROXY_INCOMPLETE:
        break;
    case PROXY_MALFORMED:
        refuse_proxy_preface(preface);
        break;
    case PROXY_ABSENT:
    case PROXY_COMPLETE:
        finish_proxy_preface(preface, &header);
        break;
    }
}

static void on_proxy_preface_timeout(struct wheel_timer *timer)
{
    close(end_proxy_preface(CONTAINER_OF(timer, struct proxy_preface, timer)));
}

void proxy_preface_accept(struct http_listener *listener, int fd, const struct ip_address *proxy)
{
    struct proxy_preface *preface = listener->preface_count < PROXY_PREFACES_MAX && !listener->shut
                                        ? malloc(sizeof(*preface))
                                        : NULL;
    if (preface)
        *preface = (struct proxy_preface){
            .source = {.fd = fd, .on_ready = on_proxy_preface_ready},
            .timer = {.fire = on_proxy_preface_timeout},
            .listener = listener,
            .proxy = *proxy,
        };
    if (!preface || !loop_add(listener->loop, &preface->source)) {
        metrics_count(listener->metrics, METRIC_CONNECTIONS_REFUSED);
        free(preface);
        close(fd);
        return;
    }
    listener->preface_count++;
    list_append(&listener->prefaces, &preface->of_listener);
    loop_set_timer(listener->loop, &preface->timer,
                   listener->loop->clock.now_ms + listener->config->gateway.http.header_timeout_ms);
}

void proxy_preface_close_all(struct http_listener *listener)
{
    struct list *next;
    for (struct list *at = listener->prefaces.next; at != &listener->prefaces; at = next) {
        next = at->next;
        close(end_proxy_preface(CONTAINER_OF(at, struct proxy_preface, of_listener)));
    }
}

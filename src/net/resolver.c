#include "net/resolver.h"

#include "base/container.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Shared by the loop and the thread; the last one to release it frees it. The loop reads the results only
 * after the eventfd has become readable. */
struct resolver_lookup {
    struct loop_source source;
    struct loop *loop;
    resolver_done done;
    void *arg;
    atomic_uint refs;
    char host[RESOLVER_HOST_MAX + 1];
    char port[6];
    int error; /* of getaddrinfo() */
    size_t count;
    struct resolver_address addresses[RESOLVER_ADDRESSES_MAX];
};

static void release_resolver_lookup(struct resolver_lookup *lookup)
{
    if (atomic_fetch_sub_explicit(&lookup->refs, 1, memory_order_acq_rel) != 1)
        return;
    close(lookup->source.fd);
    free(lookup);
}

static int resolver_get_addresses(const char *host, const char *port, int flags,
                                  struct addrinfo **found)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    return getaddrinfo(host, port, &hints, found);
}

static void *run_resolver_thread(void *arg)
{
    struct resolver_lookup *lookup = arg;
    struct addrinfo *found = NULL;
    uint64_t one = 1;
    lookup->error = resolver_get_addresses(lookup->host, lookup->port, 0, &found);
    if (lookup->error == 0) {
        for (const struct addrinfo *at = found; at && lookup->count < RESOLVER_ADDRESSES_MAX;
             at = at->ai_next) {
            struct resolver_address *address = &lookup->addresses[lookup->count];
            if (at->ai_addrlen > sizeof(address->storage))
                continue;
            memcpy(&address->storage, at->ai_addr, at->ai_addrlen);
            address->len = at->ai_addrlen;
            lookup->count++;
        }
        freeaddrinfo(found);
    }
    ssize_t unused = write(lookup->source.fd, &one, sizeof(one)); /* a fresh counter takes a 1 */
    (void)unused;
    release_resolver_lookup(lookup);
    return NULL;
}

static void on_resolver_lookup_finished(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct resolver_lookup *lookup = CONTAINER_OF(source, struct resolver_lookup, source);
    uint64_t finished;
    if (read(source->fd, &finished, sizeof(finished)) < 0)
        return;
    const char *error = lookup->error ? gai_strerror(lookup->error) : NULL;
    loop_remove(lookup->loop, &lookup->source);
    lookup->done(lookup->arg, lookup->addresses, lookup->count,
                 error || lookup->count ? error : "the name has no address");
    release_resolver_lookup(lookup);
}

bool resolver_numeric(const char *host, uint16_t port, struct resolver_address *out)
{
    char port_text[6];
    struct addrinfo *found = NULL;
    snprintf(port_text, sizeof(port_text), "%u", port);
    if (resolver_get_addresses(host, port_text, AI_NUMERICHOST, &found) != 0)
        return false;
    memcpy(&out->storage, found->ai_addr, found->ai_addrlen);
    out->len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

int resolver_connect(const struct resolver_address *address)
{
    int one = 1;
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, (const struct sockaddr *)&address->storage, address->len) == 0 ||
        errno == EINPROGRESS)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

struct resolver_lookup *resolver_start(struct loop *loop, const char *host, uint16_t port,
                                       resolver_done done, void *arg)
{
    struct resolver_lookup *lookup = calloc(1, sizeof(*lookup));
    if (!lookup || strlen(host) > RESOLVER_HOST_MAX) {
        free(lookup);
        return NULL;
    }
    lookup->loop = loop;
    lookup->done = done;
    lookup->arg = arg;
    lookup->source =
        (struct loop_source){eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), on_resolver_lookup_finished};
    snprintf(lookup->host, sizeof(lookup->host), "%s", host);
    snprintf(lookup->port, sizeof(lookup->port), "%u", port);
    if (lookup->source.fd < 0) {
        free(lookup);
        return NULL;
    }
    pthread_t thread;
    atomic_init(&lookup->refs, 2);
    if (loop_add_level(loop, &lookup->source)) {
        if (pthread_create(&thread, NULL, run_resolver_thread, lookup) == 0) {
            pthread_detach(thread);
            return lookup;
        }
        loop_remove(loop, &lookup->source);
    }
    close(lookup->source.fd);
    free(lookup);
    return NULL;
}

void resolver_cancel(struct resolver_lookup **lookup)
{
    struct resolver_lookup *cancelled = *lookup;
    *lookup = NULL;
    if (!cancelled)
        return;
    loop_remove(cancelled->loop, &cancelled->source);
    release_resolver_lookup(cancelled);
}

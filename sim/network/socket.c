#include "network/socket.h"

#include "base/container.h"
#include "network/link.h"
#include "world/trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum socket_state { SOCKET_CLOSED, SOCKET_LISTENING, SOCKET_CONNECTING, SOCKET_CONNECTED };

enum { FIRST_FREE_PORT = 32768 };

/* Bytes that arrive together. */
struct segment {
    int64_t at_us;
    size_t bytes;
};

struct socket {
    struct descriptor base;
    enum socket_state state;
    struct machine *machine;
    uint16_t port;
    uint32_t peer_address;
    uint16_t peer_port;
    struct machine *peer_machine;
    struct socket *peer; /* NULL: it does not know us (any more) */
    /* what comes in: `data` from `start`, of which `arrived` can be read and the rest is under way */
    char *data;
    size_t start, end, capacity, arrived;
    struct segment *segments;
    size_t segment_first, segment_count, segment_capacity;
    int64_t end_at_us; /* when the end of the stream arrives; 0: it was not sent */
    struct event arrival;
    struct event probe; /* of a connection attempt, or of bytes to a peer that does not know us */
    int64_t retry_us;
    unsigned retries;
    int error;         /* that the next call returns */
    bool has_ended;    /* the other side sends nothing more */
    bool has_finished; /* we send nothing more */
    bool was_full;     /* a send found the window full */
    bool resets;       /* SO_LINGER of 0 */
    /* listening */
    struct list listening;
    struct list accepted; /* connections that wait for accept(2) */
    struct list waiting;  /* in that list */
};

static struct list listeners = {&listeners, &listeners};
static uint64_t bytes_sent;

uint64_t socket_bytes_sent(void)
{
    return bytes_sent;
}

/* ---- what comes in ---- */

static size_t socket_queued(const struct socket *self)
{
    return self->end - self->start;
}

static void socket_append(struct socket *self, const void *data, size_t bytes)
{
    if (self->end + bytes > self->capacity) {
        if (self->start > 0)
            memmove(self->data, self->data + self->start, socket_queued(self));
        self->end -= self->start;
        self->start = 0;
        if (self->end + bytes > self->capacity) {
            self->capacity = 2 * (self->end + bytes);
            self->data = kernel_realloc(self->data, self->capacity);
        }
    }
    memcpy(self->data + self->end, data, bytes);
    self->end += bytes;
}

static void socket_append_segment(struct socket *self, int64_t at_us, size_t bytes)
{
    if (self->segment_first == self->segment_count)
        self->segment_first = self->segment_count = 0;
    if (self->segment_count == self->segment_capacity) {
        self->segment_capacity = self->segment_capacity ? 2 * self->segment_capacity : 8;
        self->segments =
            kernel_realloc(self->segments, self->segment_capacity * sizeof(struct segment));
    }
    self->segments[self->segment_count++] = (struct segment){at_us, bytes};
}

/* The time at which what is sent now arrives: never before what was sent earlier. */
static int64_t socket_arrival_us(const struct socket *to, const struct machine *from)
{
    int64_t at_us = kernel_now_us() + link_latency_us(from, to->machine);
    if (to->segment_first < to->segment_count && at_us < to->segments[to->segment_count - 1].at_us)
        at_us = to->segments[to->segment_count - 1].at_us;
    return at_us;
}

static void socket_await_arrival(struct socket *self)
{
    int64_t at_us = self->segment_first < self->segment_count
                        ? self->segments[self->segment_first].at_us
                        : self->end_at_us;
    if (at_us == 0 || event_is_set(&self->arrival))
        return;
    int64_t in_us = at_us - kernel_now_us();
    kernel_set_event(&self->arrival, in_us > 0 ? in_us : 0);
}

static int64_t socket_next_retry_us(struct socket *self)
{
    self->retry_us = self->retry_us ? 2 * self->retry_us : SOCKET_RETRY_FIRST_US;
    if (self->retry_us > SOCKET_RETRY_MAX_US)
        self->retry_us = SOCKET_RETRY_MAX_US;
    return self->retry_us;
}

static void on_socket_arrival(struct event *event)
{
    struct socket *self = CONTAINER_OF(event, struct socket, arrival);
    if (!link_is_up(self->peer_machine, self->machine)) {
        kernel_set_event(event, socket_next_retry_us(self));
        return;
    }
    self->retry_us = 0;
    int64_t now_us = kernel_now_us();
    while (self->segment_first < self->segment_count &&
           self->segments[self->segment_first].at_us <= now_us)
        self->arrived += self->segments[self->segment_first++].bytes;
    if (self->segment_first == self->segment_count && self->end_at_us &&
        self->end_at_us <= now_us) {
        self->has_ended = true;
        self->end_at_us = 0;
    }
    socket_await_arrival(self);
    if (self->base.process)
        descriptor_notify(&self->base);
}

/* ---- ends ---- */

static void socket_drop_queue(struct socket *self)
{
    event_cancel(kernel_events(), &self->arrival);
    self->start = self->end = self->arrived = 0;
    self->segment_first = self->segment_count = 0;
    self->end_at_us = 0;
}

static void socket_forget_peer(struct socket *self)
{
    if (self->peer)
        self->peer->peer = NULL;
    self->peer = NULL;
}

static void socket_fail(struct socket *self, int error)
{
    socket_forget_peer(self);
    socket_drop_queue(self);
    event_cancel(kernel_events(), &self->probe);
    self->error = error;
    self->has_ended = self->has_finished = true;
    if (self->base.process)
        descriptor_notify(&self->base);
}

/* Bytes go to a peer that does not know us: it answers with a reset, as soon as the links let both through. */
static void on_socket_probe(struct event *event)
{
    struct socket *self = CONTAINER_OF(event, struct socket, probe);
    if (link_is_up(self->machine, self->peer_machine) &&
        link_is_up(self->peer_machine, self->machine))
        socket_fail(self, ECONNRESET);
    else
        kernel_set_event(event, socket_next_retry_us(self));
}

static void socket_probe(struct socket *self)
{
    if (!event_is_set(&self->probe))
        kernel_set_event(&self->probe, 2 * link_latency_us(self->machine, self->peer_machine));
}

static void socket_send_end(struct socket *self)
{
    struct socket *peer = self->peer;
    if (!peer || self->has_finished)
        return;
    peer->end_at_us = socket_arrival_us(peer, self->machine);
    socket_await_arrival(peer);
}

static void socket_lose_bytes(struct socket *self)
{
    event_cancel(kernel_events(), &self->arrival);
    self->end = self->start + self->arrived;
    self->segment_first = self->segment_count = 0;
}

static void socket_free(struct socket *self)
{
    event_cancel(kernel_events(), &self->arrival);
    event_cancel(kernel_events(), &self->probe);
    list_remove(&self->listening);
    list_remove(&self->waiting);
    kernel_free(self->data);
    kernel_free(self->segments);
    kernel_free(self);
}

static void socket_end(struct socket *self)
{
    struct socket *peer = self->peer;
    bool resets = self->resets || self->arrived > 0;
    if (self->machine->is_off) {
        if (peer) /* what is under way is lost with the machine */
            socket_lose_bytes(peer);
    } else if (peer && resets && link_is_up(self->machine, peer->machine)) {
        socket_fail(peer, ECONNRESET);
    } else if (peer && !resets) {
        socket_send_end(self);
    }
    socket_forget_peer(self);
    socket_free(self);
}

static void socket_close(struct descriptor *descriptor)
{
    struct socket *self = (struct socket *)descriptor;
    while (!list_empty(&self->accepted))
        socket_end(CONTAINER_OF(self->accepted.next, struct socket, waiting));
    socket_end(self);
}

static uint32_t socket_poll(const struct descriptor *descriptor)
{
    const struct socket *self = (const struct socket *)descriptor;
    uint32_t events = 0;
    if (self->state == SOCKET_LISTENING)
        return list_empty(&self->accepted) ? 0 : EPOLLIN;
    if (self->error)
        events |= EPOLLERR;
    if (self->state == SOCKET_CONNECTING && !self->error)
        return 0;
    if (self->arrived > 0 || self->has_ended)
        events |= EPOLLIN;
    if (self->has_ended)
        events |= EPOLLRDHUP | (self->has_finished ? EPOLLHUP : 0);
    if (self->has_finished || !self->peer || socket_queued(self->peer) < SOCKET_WINDOW_BYTES)
        events |= EPOLLOUT;
    return events;
}

static const struct descriptor_kind SOCKET_KIND = {.poll = socket_poll, .close = socket_close};

static struct socket *socket_make(struct machine *machine)
{
    struct socket *self = kernel_alloc(sizeof(*self));
    self->machine = machine;
    self->arrival.run = on_socket_arrival;
    list_init(&self->listening);
    list_init(&self->accepted);
    list_init(&self->waiting);
    return self;
}

static struct socket *socket_of(int fd)
{
    struct descriptor *descriptor = descriptor_find(fd);
    if (descriptor && descriptor->kind == &SOCKET_KIND)
        return (struct socket *)descriptor;
    errno = ENOTSOCK;
    return NULL;
}

/* ---- connecting ---- */

/* Of several that share the port (SO_REUSEPORT: the workers of a process) one is drawn. */
static struct socket *socket_find_listener(const struct machine *machine, uint16_t port)
{
    struct socket *found = NULL;
    size_t count = 0;
    for (struct list *at = listeners.next; at != &listeners; at = at->next) {
        struct socket *listener = CONTAINER_OF(at, struct socket, listening);
        if (listener->machine != machine || listener->port != port)
            continue;
        if (count++ == 0 || random_below(kernel_random(), count) == 0)
            found = listener;
    }
    return found;
}

/* A load balancer looks at who listens; which of them gets the connection is drawn. */
static struct machine *socket_choose_machine(struct machine *machine, uint16_t port)
{
    struct machine *chosen = machine;
    size_t alive = 0;
    for (size_t i = 0; i < machine->balanced_count; i++)
        if (!machine->balanced[i]->is_off && socket_find_listener(machine->balanced[i], port) &&
            random_below(kernel_random(), ++alive) == 0)
            chosen = machine->balanced[i];
    return chosen;
}

static void on_socket_answered(struct event *event)
{
    struct socket *self = CONTAINER_OF(event, struct socket, probe);
    self->probe.run = on_socket_probe;
    if (!self->peer) {
        socket_fail(self, ECONNREFUSED);
        return;
    }
    self->state = SOCKET_CONNECTED;
    descriptor_notify(&self->base);
}

static void socket_accept_peer(struct socket *listener, struct socket *client)
{
    struct socket *self = socket_make(listener->machine);
    self->state = SOCKET_CONNECTED;
    self->port = listener->port;
    self->peer_address = client->machine->address;
    self->peer_port = client->port;
    self->peer_machine = client->machine;
    self->probe.run = on_socket_probe;
    self->peer = client;
    client->peer = self;
    list_append(&listener->accepted, &self->waiting);
    descriptor_notify(&listener->base);
}

/* The first packet of a connection reaches the other machine, or does not. */
static void on_socket_request(struct event *event)
{
    struct socket *self = CONTAINER_OF(event, struct socket, probe);
    if (!link_is_up(self->machine, self->peer_machine) ||
        !link_is_up(self->peer_machine, self->machine)) {
        if (++self->retries > SOCKET_CONNECT_RETRIES_MAX)
            socket_fail(self, ETIMEDOUT);
        else
            kernel_set_event(event, socket_next_retry_us(self));
        return;
    }
    struct socket *listener = socket_find_listener(self->peer_machine, self->peer_port);
    if (listener)
        socket_accept_peer(listener, self);
    self->probe.run = on_socket_answered;
    self->retry_us = 0;
    kernel_set_event(event, link_latency_us(self->peer_machine, self->machine));
}

/* ---- faults ---- */

void socket_cut_all(struct process *process, const struct machine *with)
{
    for (struct list *at = process->descriptors.next; at != &process->descriptors; at = at->next) {
        struct descriptor *descriptor = CONTAINER_OF(at, struct descriptor, of_process);
        struct socket *self = (struct socket *)descriptor;
        if (descriptor->kind != &SOCKET_KIND || self->state != SOCKET_CONNECTED ||
            (with && self->peer_machine != with))
            continue;
        if (self->peer)
            socket_fail(self->peer, ECONNRESET);
        socket_fail(self, ECONNRESET);
    }
}

/* ---- the calls ---- */

int __wrap_socket(int family, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_listen(int fd, int backlog);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags);
ssize_t __wrap___recv_chk(int fd, void *data, size_t bytes, size_t space, int flags);
int __wrap_shutdown(int fd, int how);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *len);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *len);

static int socket_refuse(int reason)
{
    errno = reason;
    return -1;
}

int __wrap_socket(int family, int type, int protocol)
{
    (void)type, (void)protocol;
    if (family != AF_INET)
        return socket_refuse(EAFNOSUPPORT);
    return descriptor_open(&socket_make(kernel_process()->machine)->base, &SOCKET_KIND);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len)
{
    struct socket *self = socket_of(fd);
    struct sockaddr_in in;
    (void)len;
    if (!self)
        return -1;
    memcpy(&in, address, sizeof(in));
    self->port = ntohs(in.sin_port);
    return 0;
}

int __wrap_listen(int fd, int backlog)
{
    struct socket *self = socket_of(fd);
    (void)backlog;
    if (!self)
        return -1;
    self->state = SOCKET_LISTENING;
    list_append(&listeners, &self->listening);
    return 0;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
    static uint16_t ports;
    struct socket *self = socket_of(fd);
    struct sockaddr_in in;
    (void)len;
    if (!self)
        return -1;
    memcpy(&in, address, sizeof(in));
    self->peer_address = ntohl(in.sin_addr.s_addr);
    self->peer_port = ntohs(in.sin_port);
    self->peer_machine = machine_find(self->peer_address);
    if (!self->peer_machine)
        return socket_refuse(ENETUNREACH);
    self->peer_machine = socket_choose_machine(self->peer_machine, self->peer_port);
    self->port = (uint16_t)(FIRST_FREE_PORT + ports++ % FIRST_FREE_PORT);
    self->state = SOCKET_CONNECTING;
    self->probe.run = on_socket_request;
    kernel_set_event(&self->probe, link_latency_us(self->machine, self->peer_machine));
    return socket_refuse(EINPROGRESS);
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    struct socket *self = socket_of(fd);
    (void)address, (void)len, (void)flags;
    if (!self)
        return -1;
    if (list_empty(&self->accepted))
        return socket_refuse(EAGAIN);
    struct socket *client = CONTAINER_OF(self->accepted.next, struct socket, waiting);
    list_remove(&client->waiting);
    return descriptor_open(&client->base, &SOCKET_KIND);
}

static ssize_t socket_take_bytes(struct socket *self, const void *data, size_t bytes)
{
    struct socket *peer = self->peer;
    if (!peer) { /* it is lost */
        socket_probe(self);
        return (ssize_t)bytes;
    }
    size_t queued = socket_queued(peer);
    size_t space = queued < SOCKET_WINDOW_BYTES ? SOCKET_WINDOW_BYTES - queued : 0;
    size_t taken = bytes < space ? bytes : space;
    self->was_full |= taken < bytes;
    if (taken == 0)
        return socket_refuse(EAGAIN);
    int64_t at_us = socket_arrival_us(peer, self->machine);
    socket_append(peer, data, taken);
    socket_append_segment(peer, at_us, taken);
    socket_await_arrival(peer);
    bytes_sent += taken;
    trace_mix_bytes(data, taken);
    return (ssize_t)taken;
}

ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags)
{
    struct socket *self = socket_of(fd);
    (void)flags;
    if (!self)
        return -1;
    if (self->error)
        return socket_refuse(self->error);
    if (self->state != SOCKET_CONNECTED)
        return socket_refuse(EAGAIN);
    if (self->has_finished)
        return socket_refuse(EPIPE);
    return socket_take_bytes(self, data, bytes);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t total = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *piece = &message->msg_iov[i];
        ssize_t sent = __wrap_send(fd, piece->iov_base, piece->iov_len, flags);
        if (sent < 0)
            return total > 0 ? total : -1;
        total += sent;
        if ((size_t)sent < piece->iov_len)
            break;
    }
    return total;
}

/* The sender hears that there is space again when a third of the window is free. */
static void socket_open_window(struct socket *self)
{
    struct socket *peer = self->peer;
    if (!peer || !peer->was_full || socket_queued(self) > SOCKET_WINDOW_BYTES * 2 / 3)
        return;
    peer->was_full = false;
    if (peer->base.process)
        descriptor_notify(&peer->base);
}

ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags)
{
    struct socket *self = socket_of(fd);
    if (!self)
        return -1;
    size_t got = self->arrived < bytes ? self->arrived : bytes;
    if (got == 0) {
        if (self->error)
            return socket_refuse(self->error);
        return self->has_ended ? 0 : socket_refuse(EAGAIN);
    }
    memcpy(data, self->data + self->start, got);
    if (flags & MSG_PEEK)
        return (ssize_t)got;
    self->start += got;
    self->arrived -= got;
    socket_open_window(self);
    return (ssize_t)got;
}

ssize_t __wrap___recv_chk(int fd, void *data, size_t bytes, size_t space, int flags)
{
    (void)space;
    return __wrap_recv(fd, data, bytes, flags);
}

int __wrap_shutdown(int fd, int how)
{
    struct socket *self = socket_of(fd);
    (void)how;
    if (!self)
        return -1;
    socket_send_end(self);
    self->has_finished = true;
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    struct socket *self = socket_of(fd);
    (void)value, (void)len;
    if (!self)
        return -1;
    self->resets |= level == SOL_SOCKET && name == SO_LINGER;
    return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    struct socket *self = socket_of(fd);
    if (!self)
        return -1;
    if (level != SOL_SOCKET || name != SO_ERROR || *len < sizeof(int))
        return socket_refuse(ENOPROTOOPT);
    memcpy(value, &self->error, sizeof(int));
    return 0;
}

static int socket_write_address(uint32_t address, uint16_t port, struct sockaddr *out,
                                socklen_t *len)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
    memcpy(out, &in, *len < sizeof(in) ? *len : sizeof(in));
    *len = sizeof(in);
    return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *len)
{
    struct socket *self = socket_of(fd);
    return self ? socket_write_address(self->machine->address, self->port, address, len) : -1;
}

int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *len)
{
    struct socket *self = socket_of(fd);
    return self ? socket_write_address(self->peer_address, self->peer_port, address, len) : -1;
}

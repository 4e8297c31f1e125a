#include "net/fd_passing.h"

#include "base/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The control data of a datagram with one descriptor, aligned for its header. */
union rights {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* Makes a socket and the address of this name: an abstract name begins with a zero byte and ends with the
 * address. Returns -1, with errno, on failure. */
static int make_fd_passing_socket(struct slice name, struct sockaddr_un *address, socklen_t *len)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name.data, name.len);
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name.len);
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static bool fd_passing_is_our_user(int fd)
{
    struct ucred other_side;
    socklen_t len = sizeof(other_side);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other_side, &len) == 0 &&
           other_side.uid == geteuid();
}

/* ---- sending ---- */

static bool send_fd_datagram(int to, int fd, struct slice bytes)
{
    union rights rights = {.bytes = {0}};
    struct iovec piece = {(void *)bytes.data, bytes.len};
    struct msghdr message = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = rights.bytes,
        .msg_controllen = sizeof(rights.bytes),
    };
    rights.header.cmsg_level = SOL_SOCKET;
    rights.header.cmsg_type = SCM_RIGHTS;
    rights.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&rights.header), &fd, sizeof(fd));
    return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)bytes.len;
}

bool fd_passing_send(struct slice name, int fd, struct slice bytes)
{
    struct sockaddr_un address;
    socklen_t len;
    if (name.len > FD_PASSING_NAME_BYTES_MAX || bytes.len == 0 || bytes.len > FD_PASSING_BYTES_MAX)
        return false;
    int to = make_fd_passing_socket(name, &address, &len);
    if (to < 0)
        return false;
    bool sent = connect(to, (const struct sockaddr *)&address, len) == 0 &&
                fd_passing_is_our_user(to) && send_fd_datagram(to, fd, bytes);
    close(to);
    return sent;
}

/* ---- receiving ---- */

static void close_fd_sender(struct fd_passing_sender *sender)
{
    if (sender->source.fd >= 0)
        close(sender->source.fd); /* also removes it from epoll */
    sender->source.fd = -1;
}

/* Returns false when the datagram has not arrived yet. Drops one that is truncated, or has no bytes or no
 * descriptor. */
static bool receive_fd_datagram(struct fd_passing_sender *sender, char *out)
{
    struct fd_passing *receiver = sender->receiver;
    union rights rights;
    struct iovec piece = {out, FD_PASSING_BYTES_MAX};
    struct msghdr message = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = rights.bytes,
        .msg_controllen = CMSG_LEN(sizeof(int)), /* no space for a second */
    };
    ssize_t got = recvmsg(sender->source.fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    int fd = -1;
    struct cmsghdr *header = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(fd)))
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    if (fd >= 0 && (got == 0 || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        close(fd);
    else if (fd >= 0)
        receiver->on_received(receiver->arg, fd, (struct slice){out, (size_t)got});
    return true;
}

/* Takes the datagram if it has arrived. When out of memory, drops the sender and its datagram. */
static void serve_fd_sender(struct fd_passing_sender *sender)
{
    char *bytes = malloc(FD_PASSING_BYTES_MAX);
    if (!bytes || receive_fd_datagram(sender, bytes))
        close_fd_sender(sender);
    free(bytes);
}

/* A turn may still hold an event of a sender that was closed or replaced. */
static void on_fd_sender_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    if (source->fd >= 0)
        serve_fd_sender(CONTAINER_OF(source, struct fd_passing_sender, source));
}

/* Returns a free place, or that of the oldest sender. */
static struct fd_passing_sender *find_fd_sender_place(struct fd_passing *receiver)
{
    struct fd_passing_sender *oldest = &receiver->senders[0];
    for (size_t i = 0; i < FD_PASSING_SENDERS_MAX; i++) {
        struct fd_passing_sender *sender = &receiver->senders[i];
        if (sender->source.fd < 0)
            return sender;
        if (sender->number < oldest->number)
            oldest = sender;
    }
    close_fd_sender(oldest);
    return oldest;
}

static void pause_fd_passing(struct fd_passing *receiver)
{
    loop_set_timer(receiver->loop, &receiver->pause,
                   receiver->loop->clock.now_ms + FD_PASSING_PAUSE_MS);
}

/* Without descriptors it pauses instead of spinning. */
static void on_fd_passing_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct fd_passing *receiver = CONTAINER_OF(source, struct fd_passing, source);
    for (int accepts = 0; accepts < FD_PASSING_ACCEPTS_PER_TURN && source->fd >= 0; accepts++) {
        int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno != EAGAIN && errno != EINTR) {
            loop_remove(receiver->loop, source);
            pause_fd_passing(receiver);
        }
        if (fd < 0)
            return;
        if (!fd_passing_is_our_user(fd)) {
            close(fd);
            continue;
        }
        struct fd_passing_sender *sender = find_fd_sender_place(receiver);
        sender->source.fd = fd;
        sender->number = receiver->sender_count++;
        serve_fd_sender(sender); /* its datagram has probably arrived already */
        if (sender->source.fd >= 0 && !loop_add_level(receiver->loop, &sender->source))
            close_fd_sender(sender);
    }
}

static void on_fd_passing_pause_over(struct wheel_timer *timer)
{
    struct fd_passing *receiver = CONTAINER_OF(timer, struct fd_passing, pause);
    if (!loop_add_level(receiver->loop, &receiver->source))
        pause_fd_passing(receiver);
}

bool fd_passing_open(struct fd_passing *receiver, struct loop *loop, struct slice name,
                     fd_passing_on_received on_received, void *arg)
{
    struct sockaddr_un address;
    socklen_t len;
    *receiver = (struct fd_passing){.source = {.fd = -1, .on_ready = on_fd_passing_ready},
                                    .pause = {.fire = on_fd_passing_pause_over},
                                    .loop = loop,
                                    .on_received = on_received,
                                    .arg = arg};
    for (size_t i = 0; i < FD_PASSING_SENDERS_MAX; i++)
        receiver->senders[i] = (struct fd_passing_sender){
            .source = {.fd = -1, .on_ready = on_fd_sender_ready}, .receiver = receiver};
    if (name.len > FD_PASSING_NAME_BYTES_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    receiver->source.fd = make_fd_passing_socket(name, &address, &len);
    if (receiver->source.fd >= 0 &&
        bind(receiver->source.fd, (const struct sockaddr *)&address, len) == 0 &&
        listen(receiver->source.fd, FD_PASSING_QUEUE_MAX) == 0 &&
        loop_add_level(loop, &receiver->source))
        return true;
    int reason = errno;
    fd_passing_close(receiver);
    errno = reason;
    return false;
}

void fd_passing_close(struct fd_passing *receiver)
{
    if (!receiver->loop || receiver->source.fd < 0)
        return;
    loop_cancel_timer(receiver->loop, &receiver->pause);
    close(receiver->source.fd);
    receiver->source.fd = -1;
    for (size_t i = 0; i < FD_PASSING_SENDERS_MAX; i++)
        close_fd_sender(&receiver->senders[i]);
}

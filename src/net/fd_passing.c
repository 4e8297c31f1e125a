#include "net/fd_passing.h"

#include "base/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The control part of a packet with one descriptor, aligned as its header must be. */
union rights {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* An abstract name stands behind a zero byte and is as long as the address says. */
static socklen_t address_of(struct sockaddr_un *out, struct slice name)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + 1, name.data, name.len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name.len);
}

static int make_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Whether the process at the other end runs as our user. */
static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

/* ---- sending ---- */

static bool send_packet(int to, int fd, struct slice bytes)
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
    if (name.len > FD_PASSING_NAME_BYTES_MAX || bytes.len == 0 || bytes.len > FD_PASSING_BYTES_MAX)
        return false;
    socklen_t len = address_of(&address, name);
    int to = make_socket();
    if (to < 0)
        return false;
    bool sent = connect(to, (const struct sockaddr *)&address, len) == 0 && is_ours(to) &&
                send_packet(to, fd, bytes);
    close(to);
    return sent;
}

/* ---- receiving ---- */

static void see_off(struct fd_passing_sender *guest)
{
    if (guest->source.fd >= 0)
        close(guest->source.fd); /* which takes it out of epoll */
    guest->source.fd = -1;
}

/* The descriptor a packet brought, or -1; a packet that was cut short, or has no bytes, is none. */
static int descriptor_of(struct msghdr *message, ssize_t bytes_len)
{
    int fd = -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(fd)))
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    if (fd >= 0 && (bytes_len == 0 || message->msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* False: it has not come yet. */
static bool receive_packet(struct fd_passing_sender *guest, char *out)
{
    struct fd_passing *passage = guest->passage;
    union rights rights;
    struct iovec piece = {out, FD_PASSING_BYTES_MAX};
    struct msghdr message = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = rights.bytes,
        .msg_controllen = CMSG_LEN(sizeof(int)), /* no room for a second */
    };
    ssize_t got = recvmsg(guest->source.fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    int fd = got >= 0 ? descriptor_of(&message, got) : -1;
    if (fd >= 0)
        passage->on_received(passage->arg, fd, (struct slice){out, (size_t)got});
    return true;
}

/* Its packet, if it has come; without memory for it the guest goes with it. */
static void attend(struct fd_passing_sender *guest)
{
    char *bytes = malloc(FD_PASSING_BYTES_MAX);
    if (!bytes || receive_packet(guest, bytes))
        see_off(guest);
    free(bytes);
}

/* A turn may still hold an event of a guest who has gone, or whose place another has by now. */
static void guest_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    if (source->fd >= 0)
        attend(CONTAINER_OF(source, struct fd_passing_sender, source));
}

/* A place that is free, or that of who came first. */
static struct fd_passing_sender *find_place(struct fd_passing *passage)
{
    struct fd_passing_sender *oldest = &passage->guests[0];
    for (size_t i = 0; i < FD_PASSING_SENDERS_MAX; i++) {
        struct fd_passing_sender *guest = &passage->guests[i];
        if (guest->source.fd < 0)
            return guest;
        if (guest->number < oldest->number)
            oldest = guest;
    }
    see_off(oldest);
    return oldest;
}

/* The packet is most likely there already; else the guest is waited for. */
static void welcome(struct fd_passing *passage, int fd)
{
    struct fd_passing_sender *guest = find_place(passage);
    guest->source.fd = fd;
    guest->number = passage->guest_count++;
    attend(guest);
    if (guest->source.fd >= 0 && !loop_add_level(passage->loop, &guest->source))
        see_off(guest);
}

static void rest(struct fd_passing *passage)
{
    loop_set_timer(passage->loop, &passage->rest, passage->loop->clock.now_ms + FD_PASSING_REST_MS);
}

/* Whether another may wait. Without descriptors it rests instead of spinning. */
static bool accept_one(struct fd_passing *passage)
{
    int fd = accept4(passage->source.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && errno != EAGAIN && errno != EINTR) {
        loop_remove(passage->loop, &passage->source);
        rest(passage);
    }
    if (fd < 0)
        return false;
    if (is_ours(fd))
        welcome(passage, fd);
    else
        close(fd);
    return true;
}

static void ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct fd_passing *passage = CONTAINER_OF(source, struct fd_passing, source);
    for (int taken = 0; taken < FD_PASSING_ACCEPTS_PER_TURN && source->fd >= 0; taken++)
        if (!accept_one(passage))
            return;
}

static void rested(struct wheel_timer *timer)
{
    struct fd_passing *passage = CONTAINER_OF(timer, struct fd_passing, rest);
    if (!loop_add_level(passage->loop, &passage->source))
        rest(passage);
}

bool fd_passing_open(struct fd_passing *passage, struct loop *loop, struct slice name,
                     fd_passing_on_received on_received, void *arg)
{
    struct sockaddr_un address;
    *passage = (struct fd_passing){.source = {.fd = -1, .on_ready = ready},
                                   .rest = {.fire = rested},
                                   .loop = loop,
                                   .on_received = on_received,
                                   .arg = arg};
    for (size_t i = 0; i < FD_PASSING_SENDERS_MAX; i++)
        passage->guests[i] = (struct fd_passing_sender){
            .source = {.fd = -1, .on_ready = guest_ready}, .passage = passage};
    if (name.len > FD_PASSING_NAME_BYTES_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    socklen_t len = address_of(&address, name);
    passage->source.fd = make_socket();
    if (passage->source.fd >= 0 &&
        bind(passage->source.fd, (const struct sockaddr *)&address, len) == 0 &&
        listen(passage->source.fd, FD_PASSING_BACKLOG) == 0 &&
        loop_add_level(loop, &passage->source))
        return true;
    int reason = errno;
    fd_passing_close(passage);
    errno = reason;
    return false;
}

void fd_passing_close(struct fd_passing *passage)
{
    if (!passage->loop || passage->source.fd < 0)
        return;
    loop_cancel_timer(passage->loop, &passage->rest);
    close(passage->source.fd);
    passage->source.fd = -1;
    for (size_t i = 0; i < FD_PASSING_SENDERS_MAX; i++)
        see_off(&passage->guests[i]);
}

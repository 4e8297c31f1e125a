/*
 * floor: the least a WebSocket server can do on this machine, as the unit for everything else.
 *
 * It accepts, upgrades, and then does one of two things with every data frame: a payload that
 * starts with BROADCAST_MARKER goes to every open connection, anything else goes back to its
 * sender. It has no JSON, no users and no state, and checks only what it needs to keep running, so
 * its cost is the kernel, the frame header and the unmasking. It is a unit of measurement, not a server
 * to run: a peer that does not read is dropped, and fragments are echoed as they arrive.
 *
 * One thread, one epoll, one read buffer for all. A connection is one entry of an array indexed by
 * its descriptor; it owns heap memory only while half a frame is waiting for its other half.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BROADCAST_MARKER '!'
#define READ_BUFFER_BYTES 65536
#define EVENTS_PER_TURN 512
#define LISTEN_BACKLOG 4096
#define SHA1_BYTES 20
#define ACCEPT_TEXT_BYTES 29 /* base64 of a SHA-1, with its terminator */
#define KEY_BYTES 24
#define MASK_BYTES 4
#define SERVER_HEADER_BYTES_MAX 4

enum opcode { OPCODE_CLOSE = 8, OPCODE_PING = 9, OPCODE_PONG = 10 };

enum peer_state { PEER_ABSENT, PEER_UPGRADING, PEER_OPEN };

struct peer {
    char *pending; /* the first half of a frame or head, owned, or NULL */
    uint32_t pending_bytes;
    uint8_t state;
};

struct floor {
    int listener;
    int epoll_fd;
    int descriptor_limit;
    int descriptor_highest;
    EVP_MD *sha1;
    struct peer *peers;
    char buffer[READ_BUFFER_BYTES + 1];
};

/* A frame inside the read buffer, unmasked in place. */
struct frame {
    uint8_t first_byte;
    char *payload;
    size_t payload_bytes;
    size_t total_bytes;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void peer_drop(struct floor *floor, int fd)
{
    struct peer *peer = &floor->peers[fd];
    free(peer->pending);
    *peer = (struct peer){0};
    close(fd);
}

static void peer_send(int fd, const char *bytes, size_t count)
{
    if (send(fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count)
        shutdown(fd, SHUT_RDWR); /* the loop then reads the end and drops the peer */
}

/* ---- upgrade ---- */

static void accept_text(const struct floor *floor, const char *key, char out[ACCEPT_TEXT_BYTES])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    unsigned char digest[SHA1_BYTES];
    char text[KEY_BYTES + sizeof(guid)];
    memcpy(text, key, KEY_BYTES);
    memcpy(text + KEY_BYTES, guid, sizeof(guid));
    EVP_Digest(text, KEY_BYTES + sizeof(guid) - 1, digest, NULL, floor->sha1, NULL);
    EVP_EncodeBlock((unsigned char *)out, digest, SHA1_BYTES);
}

/* Answers a whole request head at the start of the buffer. Returns its length, 0 while it is
 * incomplete, -1 if it does not request an upgrade. */
static ssize_t peer_upgrade(struct floor *floor, int fd, size_t count)
{
    static const char name[] = "\r\nSec-WebSocket-Key: ";
    floor->buffer[count] = '\0';
    const char *end = strstr(floor->buffer, "\r\n\r\n");
    if (end == NULL)
        return 0;
    const char *key = strcasestr(floor->buffer, name);
    if (key == NULL || end - key < (ssize_t)sizeof(name) - 1 + KEY_BYTES)
        return -1;
    char accept[ACCEPT_TEXT_BYTES];
    accept_text(floor, key + sizeof(name) - 1, accept);
    char reply[256];
    int length = snprintf(reply, sizeof(reply),
                          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
                          accept);
    peer_send(fd, reply, (size_t)length);
    floor->peers[fd].state = PEER_OPEN;
    return end + 4 - floor->buffer;
}

/* ---- frames ---- */

static void unmask(char *payload, size_t count, const char mask[MASK_BYTES])
{
    uint32_t word;
    memcpy(&word, mask, sizeof(word));
    uint64_t wide = (uint64_t)word << 32 | word;
    size_t i = 0;
    for (; i + sizeof(wide) <= count; i += sizeof(wide)) {
        uint64_t chunk;
        memcpy(&chunk, payload + i, sizeof(chunk));
        chunk ^= wide;
        memcpy(payload + i, &chunk, sizeof(chunk));
    }
    for (; i < count; i++)
        payload[i] ^= mask[i % MASK_BYTES];
}

/* Returns 1 when a frame was taken, 0 when more bytes are needed, -1 for a frame that is not supported. */
static int frame_take(char *bytes, size_t count, struct frame *frame)
{
    if (count < 2)
        return 0;
    uint8_t length_byte = (uint8_t)bytes[1];
    if (!(length_byte & 0x80) || (length_byte & 0x7f) == 127)
        return -1;
    size_t header_bytes = 2;
    size_t payload_bytes = length_byte & 0x7f;
    if (payload_bytes == 126) {
        if (count < 4)
            return 0;
        payload_bytes = (size_t)(uint8_t)bytes[2] << 8 | (uint8_t)bytes[3];
        header_bytes = 4;
    }
    size_t total_bytes = header_bytes + MASK_BYTES + payload_bytes;
    if (total_bytes > READ_BUFFER_BYTES)
        return -1;
    if (count < total_bytes)
        return 0;
    *frame = (struct frame){(uint8_t)bytes[0], bytes + header_bytes + MASK_BYTES, payload_bytes,
                            total_bytes};
    unmask(frame->payload, payload_bytes, bytes + header_bytes);
    return 1;
}

/* Writes the server's header over the mask, right before the payload. Returns where it starts. */
static char *frame_encode_in_place(const struct frame *frame)
{
    if (frame->payload_bytes < 126) {
        char *start = frame->payload - 2;
        start[0] = (char)frame->first_byte;
        start[1] = (char)frame->payload_bytes;
        return start;
    }
    char *start = frame->payload - SERVER_HEADER_BYTES_MAX;
    start[0] = (char)frame->first_byte;
    start[1] = 126;
    start[2] = (char)(frame->payload_bytes >> 8);
    start[3] = (char)frame->payload_bytes;
    return start;
}

static void broadcast(struct floor *floor, const char *bytes, size_t count)
{
    for (int fd = 0; fd <= floor->descriptor_highest; fd++)
        if (floor->peers[fd].state == PEER_OPEN)
            peer_send(fd, bytes, count);
}

/* Returns false when the peer closes. */
static bool frame_serve(struct floor *floor, int fd, struct frame *frame)
{
    int opcode = frame->first_byte & 0x0f;
    if (opcode == OPCODE_CLOSE)
        return false;
    if (opcode == OPCODE_PONG)
        return true;
    if (opcode == OPCODE_PING)
        frame->first_byte = 0x80 | OPCODE_PONG;
    char *start = frame_encode_in_place(frame);
    size_t count = (size_t)(frame->payload - start) + frame->payload_bytes;
    if (frame->payload_bytes > 0 && frame->payload[0] == BROADCAST_MARKER)
        broadcast(floor, start, count);
    else
        peer_send(fd, start, count);
    return true;
}

/* Serves every whole frame from `at` on. Returns where it stopped, or -1 to drop the peer. */
static ssize_t frames_serve(struct floor *floor, int fd, size_t at, size_t count)
{
    struct frame frame;
    int taken;
    while ((taken = frame_take(floor->buffer + at, count - at, &frame)) > 0) {
        if (!frame_serve(floor, fd, &frame))
            return -1;
        at += frame.total_bytes;
    }
    return taken < 0 ? -1 : (ssize_t)at;
}

/* ---- reading ---- */

static size_t pending_restore(struct floor *floor, struct peer *peer)
{
    size_t count = peer->pending_bytes;
    if (peer->pending != NULL)
        memcpy(floor->buffer, peer->pending, count);
    free(peer->pending);
    peer->pending = NULL;
    peer->pending_bytes = 0;
    return count;
}

static bool pending_keep(struct peer *peer, const char *bytes, size_t count)
{
    if (count == 0)
        return true;
    if (count >= READ_BUFFER_BYTES)
        return false;
    peer->pending = malloc(count);
    if (peer->pending == NULL)
        return false;
    memcpy(peer->pending, bytes, count);
    peer->pending_bytes = (uint32_t)count;
    return true;
}

static void peer_read(struct floor *floor, int fd)
{
    struct peer *peer = &floor->peers[fd];
    size_t kept = pending_restore(floor, peer);
    ssize_t got = recv(fd, floor->buffer + kept, READ_BUFFER_BYTES - kept, 0);
    if (got < 0 && errno == EAGAIN)
        got = 0;
    else if (got <= 0)
        goto drop;
    size_t count = kept + (size_t)got;
    ssize_t at = 0;
    if (peer->state == PEER_UPGRADING)
        at = peer_upgrade(floor, fd, count);
    if (at >= 0 && peer->state == PEER_OPEN)
        at = frames_serve(floor, fd, (size_t)at, count);
    if (at >= 0 && pending_keep(peer, floor->buffer + at, count - (size_t)at))
        return;
drop:
    peer_drop(floor, fd);
}

/* ---- set-up and loop ---- */

static void accept_all(struct floor *floor)
{
    int fd;
    int on = 1;
    while ((fd = accept4(floor->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        assert(fd < floor->descriptor_limit);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        floor->peers[fd].state = PEER_UPGRADING;
        if (fd > floor->descriptor_highest)
            floor->descriptor_highest = fd;
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (epoll_ctl(floor->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
            peer_drop(floor, fd);
    }
}

static void listen_on(struct floor *floor, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    floor->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(floor->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(floor->listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(floor->listener, LISTEN_BACKLOG) < 0)
        die("floor: listen");
    floor->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = floor->listener};
    if (floor->epoll_fd < 0 ||
        epoll_ctl(floor->epoll_fd, EPOLL_CTL_ADD, floor->listener, &event) < 0)
        die("floor: epoll");
}

static void raise_descriptor_limit(struct floor *floor)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        die("floor: descriptor limit");
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    floor->descriptor_limit = (int)limit.rlim_cur;
    floor->peers = calloc((size_t)floor->descriptor_limit, sizeof(*floor->peers));
    if (floor->peers == NULL)
        die("floor: memory");
}

static void serve(struct floor *floor)
{
    struct epoll_event events[EVENTS_PER_TURN];
    for (;;) {
        int count = epoll_wait(floor->epoll_fd, events, EVENTS_PER_TURN, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == floor->listener)
                accept_all(floor);
            else
                peer_read(floor, events[i].data.fd);
        }
    }
}

int main(int argc, char **argv)
{
    static struct floor floor;
    if (argc != 2) {
        fprintf(stderr, "usage: floor PORT\n");
        return 2;
    }
    floor.sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    if (floor.sha1 == NULL)
        die("floor: SHA-1");
    raise_descriptor_limit(&floor);
    listen_on(&floor, (uint16_t)strtoul(argv[1], NULL, 10));
    serve(&floor);
}

#include "solo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cost.h"
#include "dialect.h"

#define WAIT_SECONDS_MAX 30
#define REQUEST_BYTES_MAX 4096

static void solo_connect(struct solo *solo, uint16_t port, int receive_bytes)
{
    int on = 1;
    struct timeval timeout = {.tv_sec = WAIT_SECONDS_MAX};
    struct sockaddr_in server = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    solo->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(solo->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(solo->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    if (receive_bytes > 0) /* before connecting, because it determines the window */
        setsockopt(solo->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    if (connect(solo->fd, (struct sockaddr *)&server, sizeof(server)) < 0)
        cost_fail("cannot connect: %s", strerror(errno));
}

static void solo_write(const struct solo *solo, const char *bytes, size_t count)
{
    if (send(solo->fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count)
        cost_fail("cannot send to the server: %s", strerror(errno));
}

/* Reads into the buffer. Returns false when the stream has ended. */
static bool solo_receive(struct solo *solo)
{
    if (solo->count == SOLO_BUFFER_BYTES)
        cost_fail("a message of the server is too long");
    ssize_t got = recv(solo->fd, solo->buffer + solo->count, SOLO_BUFFER_BYTES - solo->count, 0);
    if (got < 0 && errno != ECONNRESET)
        cost_fail("cannot read from the server: %s", strerror(errno));
    if (got > 0)
        solo->count += (size_t)got;
    return got > 0;
}

static void solo_drop_used(struct solo *solo)
{
    memmove(solo->buffer, solo->buffer + solo->used, solo->count - solo->used);
    solo->count -= solo->used;
    solo->used = 0;
}

static void solo_upgrade(struct solo *solo, uint16_t port, const char *token)
{
    char request[REQUEST_BYTES_MAX];
    int length = snprintf(request, sizeof(request),
                          "GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                          "Sec-WebSocket-Version: 13\r\nAuthorization: Bearer %s\r\n\r\n",
                          port, token);
    const char *end;
    if (length >= (int)sizeof(request))
        cost_fail("the token is too long");
    solo_write(solo, request, (size_t)length);
    while ((end = memmem(solo->buffer, solo->count, "\r\n\r\n", 4)) == NULL)
        if (!solo_receive(solo))
            cost_fail("the server closed the connection instead of answering");
    if (!dialect_starts_with(solo->buffer, solo->count, "HTTP/1.1 101"))
        cost_fail("refused: %.*s", (int)solo->count, solo->buffer);
    solo->used = (size_t)(end - solo->buffer) + 4;
}

void solo_open(struct solo *solo, uint16_t port, const char *token, int receive_bytes)
{
    struct frame_view greeting;
    solo->used = 0;
    solo->count = 0;
    solo_connect(solo, port, receive_bytes);
    solo_upgrade(solo, port, token);
    if (!solo_read(solo, &greeting) ||
        !dialect_contains(greeting.payload, greeting.payload_bytes, "\"connection_established\""))
        cost_fail("the server did not send connection_established");
}

void solo_close(struct solo *solo)
{
    close(solo->fd);
}

void solo_send(struct solo *solo, const char *text)
{
    struct frame frame;
    frame_encode(&frame, FRAME_TEXT, text, strlen(text));
    solo_write(solo, frame.bytes, frame.count);
}

bool solo_read(struct solo *solo, struct frame_view *frame)
{
    int decoded;
    solo_drop_used(solo);
    while ((decoded = frame_decode(solo->buffer, solo->count, frame)) == 0)
        if (!solo_receive(solo))
            return false;
    if (decoded < 0)
        cost_fail("received a frame that no server may send");
    solo->used = frame->total_bytes;
    return true;
}

#include "pool.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cost.h"

#define CLIENTS_PER_ADDRESS 8000
#define READ_BUFFER_BYTES 65536
#define REQUEST_BYTES_MAX 4096
#define EVENTS_PER_TURN 512

/* The sample nonce of RFC 6455 and the answer that it requires. */
#define HANDSHAKE_KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define HANDSHAKE_ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

struct client {
    int fd;
    enum client_state state;
    char *pending;
    size_t pending_bytes;
};

struct pool {
    struct pool_settings settings;
    struct pool_listener listener;
    struct client *clients;
    size_t ready_count;
    int epoll_fd;
    char buffer[READ_BUFFER_BYTES];
};

struct pool *pool_new(const struct pool_settings *settings, struct pool_listener listener)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL)
        cost_fail("out of memory");
    pool->settings = *settings;
    pool->listener = listener;
    pool->clients = calloc(settings->capacity, sizeof(*pool->clients));
    pool->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (pool->clients == NULL || pool->epoll_fd < 0)
        cost_fail("out of memory for %zu clients", settings->capacity);
    return pool;
}

void pool_free(struct pool **pool)
{
    for (size_t i = 0; i < (*pool)->settings.capacity; i++)
        pool_close(*pool, i);
    close((*pool)->epoll_fd);
    free((*pool)->clients);
    free(*pool);
    *pool = NULL;
}

size_t pool_ready_count(const struct pool *pool)
{
    return pool->ready_count;
}

static void client_set_state(struct pool *pool, struct client *client, enum client_state state)
{
    assert(state == CLIENT_CLOSED || state > client->state);
    if (client->state == CLIENT_READY)
        pool->ready_count--;
    if (state == CLIENT_READY)
        pool->ready_count++;
    client->state = state;
}

static void client_become_ready(struct pool *pool, size_t index)
{
    client_set_state(pool, &pool->clients[index], CLIENT_READY);
    pool->listener.on_ready(pool->listener.job, index);
}

/* ---- opening and closing ---- */

static void client_bind(int fd, size_t index)
{
    int on = 1;
    struct sockaddr_in source = {.sin_family = AF_INET};
    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)(index / CLIENTS_PER_ADDRESS));
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&source, sizeof(source)) < 0)
        cost_fail("client %zu cannot bind: %s", index, strerror(errno));
}

void pool_open(struct pool *pool, size_t index)
{
    struct client *client = &pool->clients[index];
    assert(index < pool->settings.capacity && client->state == CLIENT_CLOSED);
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0)
        cost_fail("client %zu has no descriptor: %s", index, strerror(errno));
    client_bind(client->fd, index);
    struct sockaddr_in server = {.sin_family = AF_INET,
                                 .sin_port = htons(pool->settings.server_port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(client->fd, (struct sockaddr *)&server, sizeof(server)) < 0 && errno != EINPROGRESS)
        cost_fail("client %zu cannot connect: %s", index, strerror(errno));
    struct epoll_event event = {.events = EPOLLOUT, .data.u64 = index};
    epoll_ctl(pool->epoll_fd, EPOLL_CTL_ADD, client->fd, &event);
    client_set_state(pool, client, CLIENT_CONNECTING);
}

void pool_close(struct pool *pool, size_t index)
{
    struct client *client = &pool->clients[index];
    if (client->state == CLIENT_CLOSED)
        return;
    close(client->fd);
    free(client->pending);
    client_set_state(pool, client, CLIENT_CLOSED);
    *client = (struct client){0};
}

static void client_write(const struct client *client, const char *bytes, size_t count)
{
    ssize_t sent = send(client->fd, bytes, count, MSG_NOSIGNAL);
    if (sent != (ssize_t)count)
        cost_fail("cannot send to the server: %s", strerror(errno));
}

void pool_send(struct pool *pool, size_t index, const struct frame *frame)
{
    assert(pool->clients[index].state == CLIENT_READY);
    client_write(&pool->clients[index], frame->bytes, frame->count);
}

static void client_reply(const struct client *client, enum frame_opcode opcode, const char *text,
                         size_t count)
{
    struct frame frame;
    frame_encode(&frame, opcode, text, count);
    client_write(client, frame.bytes, frame.count);
}

/* ---- handshake ---- */

static void client_send_request(struct pool *pool, size_t index)
{
    struct client *client = &pool->clients[index];
    char request[REQUEST_BYTES_MAX];
    int length = snprintf(request, sizeof(request),
                          "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\nSec-WebSocket-Key: " HANDSHAKE_KEY "\r\n"
                          "Sec-WebSocket-Version: 13\r\nAuthorization: Bearer %s\r\n\r\n",
                          pool->settings.dialect->path, pool->settings.server_port,
                          pool->settings.tokens[index]);
    if (length >= (int)sizeof(request))
        cost_fail("the token of client %zu is too long", index);
    client_write(client, request, (size_t)length);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = index};
    epoll_ctl(pool->epoll_fd, EPOLL_CTL_MOD, client->fd, &event);
    client_set_state(pool, client, CLIENT_UPGRADING);
}

/* Returns the length of the response head, 0 while it is incomplete. */
static size_t client_check_response(struct pool *pool, size_t index, const char *bytes,
                                    size_t count)
{
    const char *end = memmem(bytes, count, "\r\n\r\n", 4);
    if (end == NULL)
        return 0;
    size_t head_bytes = (size_t)(end - bytes) + 4;
    if (!dialect_starts_with(bytes, head_bytes, "HTTP/1.1 101") ||
        !dialect_contains(bytes, head_bytes, HANDSHAKE_ACCEPT))
        cost_fail("client %zu is refused: %.*s", index, (int)count, bytes);
    client_set_state(pool, &pool->clients[index], CLIENT_OPENING);
    if (pool->settings.dialect->ready == NULL)
        client_become_ready(pool, index);
    return head_bytes;
}

static void client_continue_opening(struct pool *pool, size_t index, const char *text, size_t count)
{
    const struct dialect *dialect = pool->settings.dialect;
    char reply[REQUEST_BYTES_MAX];
    if (dialect_contains(text, count, dialect->ready)) {
        client_become_ready(pool, index);
    } else if (dialect->opening != NULL && dialect_starts_with(text, count, dialect->opening)) {
        int length = snprintf(reply, sizeof(reply), "%s%s%s", dialect->opening_reply,
                              pool->settings.tokens[index], dialect->opening_reply_end);
        client_reply(&pool->clients[index], FRAME_TEXT, reply, (size_t)length);
    } else {
        cost_fail("client %zu received an unexpected message: %.*s", index, (int)count, text);
    }
}

/* ---- frames ---- */

static void client_take_text(struct pool *pool, size_t index, const char *text, size_t count)
{
    const struct dialect *dialect = pool->settings.dialect;
    struct client *client = &pool->clients[index];
    if (dialect->probe != NULL && count == strlen(dialect->probe) &&
        memcmp(text, dialect->probe, count) == 0)
        client_reply(client, FRAME_TEXT, dialect->probe_reply, strlen(dialect->probe_reply));
    else if (client->state == CLIENT_OPENING)
        client_continue_opening(pool, index, text, count);
    else
        pool->listener.on_text(pool->listener.job, index, text, count);
}

static void client_take_frame(struct pool *pool, size_t index, const struct frame_view *frame)
{
    switch (frame->opcode) {
    case FRAME_TEXT:
        client_take_text(pool, index, frame->payload, frame->payload_bytes);
        break;
    case FRAME_PING:
        client_reply(&pool->clients[index], FRAME_PONG, frame->payload, frame->payload_bytes);
        break;
    case FRAME_PONG:
        break;
    default:
        cost_fail("the server closed client %zu, opcode %u: %.*s", index, frame->opcode,
                  frame->payload_bytes > 2 ? (int)frame->payload_bytes - 2 : 0, frame->payload + 2);
    }
}

/* Returns how many bytes were whole frames. Stops early when a callback closed the client. */
static size_t client_take_frames(struct pool *pool, size_t index, const char *bytes, size_t count)
{
    struct frame_view frame;
    size_t at = 0;
    int decoded;
    while (pool->clients[index].state >= CLIENT_OPENING &&
           (decoded = frame_decode(bytes + at, count - at, &frame)) != 0) {
        if (decoded < 0)
            cost_fail("client %zu received a frame that no server may send", index);
        client_take_frame(pool, index, &frame);
        at += frame.total_bytes;
    }
    return at;
}

/* ---- reading ---- */

static size_t client_restore_pending(struct pool *pool, struct client *client)
{
    size_t count = client->pending_bytes;
    if (count == 0)
        return 0;
    memcpy(pool->buffer, client->pending, count);
    free(client->pending);
    client->pending = NULL;
    client->pending_bytes = 0;
    return count;
}

static void client_keep_pending(struct client *client, const char *bytes, size_t count)
{
    if (count == 0 || client->state == CLIENT_CLOSED)
        return;
    client->pending = malloc(count);
    if (client->pending == NULL || count == READ_BUFFER_BYTES)
        cost_fail("a message of the server is too long");
    memcpy(client->pending, bytes, count);
    client->pending_bytes = count;
}

static void client_read(struct pool *pool, size_t index)
{
    struct client *client = &pool->clients[index];
    size_t kept = client_restore_pending(pool, client);
    ssize_t got = recv(client->fd, pool->buffer + kept, READ_BUFFER_BYTES - kept, 0);
    if (got <= 0)
        cost_fail("client %zu lost its connection: %s", index, got < 0 ? strerror(errno) : "end");
    size_t count = kept + (size_t)got;
    size_t at = 0;
    if (client->state == CLIENT_UPGRADING)
        at = client_check_response(pool, index, pool->buffer, count);
    if (client->state >= CLIENT_OPENING)
        at += client_take_frames(pool, index, pool->buffer + at, count - at);
    client_keep_pending(client, pool->buffer + at, count - at);
}

void pool_turn(struct pool *pool, int timeout_ms)
{
    struct epoll_event events[EVENTS_PER_TURN];
    int count = epoll_wait(pool->epoll_fd, events, EVENTS_PER_TURN, timeout_ms);
    for (int i = 0; i < count; i++) {
        size_t index = events[i].data.u64;
        if (pool->clients[index].state == CLIENT_CLOSED)
            continue;
        if (pool->clients[index].state != CLIENT_CONNECTING)
            client_read(pool, index);
        else if (events[i].events & (EPOLLERR | EPOLLHUP))
            cost_fail("client %zu cannot connect", index);
        else
            client_send_request(pool, index);
    }
}

#include "swarm.h"

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

#include "../cost.h"
#include "../dialect.h"
#include "../frame.h"
#include "swarm_tokens.h"

#define READ_BUFFER_BYTES 65536
#define REQUEST_BYTES_MAX 4096
#define PENDING_BYTES_MAX 16384

enum {
    EVENTS_PER_TURN = 256,
    BEATS_PER_TURN =
        64, /* then answers are read, so that the generator's own queue is not measured */
    WAIT_MS = 10,
    SCAN_MS = 20,     /* how often waiting clients are looked through */
    FAILURES_MAX = 5, /* the delay does not grow further */
    NS_PER_MS = 1000000,
    US_PER_MS = 1000,
};

/* The sample nonce of RFC 6455. */
#define HANDSHAKE_KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define HEARTBEAT "{\"type\":\"heartbeat\"}"

enum swarm_state { SWARM_WAITING, SWARM_CONNECTING, SWARM_UPGRADING, SWARM_READY };

struct swarm_client {
    int fd;
    uint8_t state;
    uint8_t failures;
    uint16_t server;
    uint32_t sent_us; /* when the unanswered heartbeat was sent; 0: none */
    uint32_t due_ms;  /* of the next attempt, while waiting */
    uint32_t lost_ms; /* when a ready connection ended; 0: not since it was last ready */
    uint32_t pending_bytes;
    char *pending; /* an incomplete frame */
};

struct swarm {
    struct swarm_settings settings;
    struct swarm_tokens tokens;
    struct swarm_client *clients;
    struct swarm_counts counts;
    struct frame heartbeat;
    uint64_t start_ns;
    uint64_t counts_from_us;
    uint64_t beats_done; /* of the endless sequence of heartbeats, client after client */
    uint32_t scanned_ms;
    size_t opened; /* first attempts so far */
    size_t opening;
    size_t waiting; /* without those that were never opened */
    size_t ready;
    unsigned short random[3];
    int epoll_fd;
    char buffer[READ_BUFFER_BYTES];
};

static uint64_t swarm_us(const struct swarm *swarm)
{
    return (cost_now_ns() - swarm->start_ns) / 1000 + 1; /* never 0, which means "none" */
}

static uint32_t swarm_ms(const struct swarm *swarm)
{
    return (uint32_t)(swarm_us(swarm) / US_PER_MS) + 1;
}

struct swarm *swarm_new(const struct swarm_settings *settings)
{
    struct swarm *swarm = calloc(1, sizeof(*swarm));
    if (swarm == NULL)
        cost_fail("out of memory");
    swarm->settings = *settings;
    swarm->clients = calloc(settings->client_count, sizeof(*swarm->clients));
    swarm->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (swarm->clients == NULL || swarm->epoll_fd < 0)
        cost_fail("out of memory for %zu clients", settings->client_count);
    for (size_t i = 0; i < settings->client_count; i++)
        swarm->clients[i].server = (uint16_t)((settings->first + i) % settings->server_count);
    swarm_tokens_open(&swarm->tokens, settings->token_file, settings->first,
                      settings->client_count);
    frame_encode(&swarm->heartbeat, FRAME_TEXT, HEARTBEAT, sizeof(HEARTBEAT) - 1);
    swarm->start_ns = cost_now_ns();
    memcpy(swarm->random, &settings->first, sizeof(swarm->random));
    return swarm;
}

size_t swarm_ready_count(const struct swarm *swarm)
{
    return swarm->ready;
}

const struct swarm_counts *swarm_counts(const struct swarm *swarm)
{
    return &swarm->counts;
}

void swarm_reset_counts(struct swarm *swarm)
{
    memset(&swarm->counts, 0, sizeof(swarm->counts));
    swarm->counts_from_us = swarm_us(swarm);
}

/* ---- states ---- */

static void swarm_set_state(struct swarm *swarm, struct swarm_client *client,
                            enum swarm_state state)
{
    swarm->ready -= client->state == SWARM_READY;
    swarm->opening -= client->state == SWARM_CONNECTING || client->state == SWARM_UPGRADING;
    swarm->ready += state == SWARM_READY;
    swarm->opening += state == SWARM_CONNECTING || state == SWARM_UPGRADING;
    swarm->waiting += state == SWARM_WAITING;
    client->state = (uint8_t)state;
}

static uint32_t swarm_slot(uint64_t ms)
{
    uint64_t slot = ms / SWARM_SLOT_MS;
    return slot < SWARM_SLOTS ? (uint32_t)slot : SWARM_SLOTS - 1;
}

static void swarm_on_ready(struct swarm *swarm, struct swarm_client *client)
{
    if (client->lost_ms != 0)
        swarm->counts.comebacks[swarm_slot(swarm_ms(swarm) - client->lost_ms)]++;
    client->lost_ms = 0;
    client->failures = 0;
    swarm_set_state(swarm, client, SWARM_READY);
}

/* Another server, as a load balancer would choose. */
static void swarm_choose_server(struct swarm *swarm, struct swarm_client *client)
{
    size_t others = swarm->settings.server_count - 1;
    if (others > 0)
        client->server = (uint16_t)((client->server + 1 + (size_t)nrand48(swarm->random) % others) %
                                    swarm->settings.server_count);
}

/* Full jitter, as the client libraries have it. A server that does not listen costs no delay, because a load balancer
 * tries the next one itself. */
static void swarm_schedule_retry(struct swarm *swarm, struct swarm_client *client, bool listened)
{
    double delay_ms = (double)((uint64_t)swarm->settings.reconnect_ms << client->failures);
    client->due_ms = swarm_ms(swarm);
    if (listened)
        client->due_ms += (uint32_t)(erand48(swarm->random) * delay_ms);
    if (listened && client->failures < FAILURES_MAX)
        client->failures++;
    swarm_choose_server(swarm, client);
    swarm_set_state(swarm, client, SWARM_WAITING);
}

static void swarm_close_client(struct swarm_client *client)
{
    if (client->fd > 0)
        close(client->fd);
    free(client->pending);
    client->fd = 0;
    client->pending = NULL;
    client->pending_bytes = 0;
    client->sent_us = 0;
}

static void swarm_on_lost(struct swarm *swarm, struct swarm_client *client)
{
    bool listened = client->state != SWARM_CONNECTING;
    if (client->state == SWARM_READY) {
        swarm->counts.lost++;
        client->lost_ms = swarm_ms(swarm);
    } else {
        swarm->counts.refused++;
    }
    swarm_close_client(client);
    swarm_schedule_retry(swarm, client, listened);
}

void swarm_free(struct swarm **swarm)
{
    for (size_t i = 0; i < (*swarm)->settings.client_count; i++)
        swarm_close_client(&(*swarm)->clients[i]);
    swarm_tokens_close(&(*swarm)->tokens);
    close((*swarm)->epoll_fd);
    free((*swarm)->clients);
    free(*swarm);
    *swarm = NULL;
}

/* ---- connecting ---- */

static void swarm_bind(const struct swarm *swarm, int fd)
{
    int on = 1;
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr = swarm->settings.source};
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&source, sizeof(source)) < 0)
        cost_fail("a client cannot bind: %s", strerror(errno));
}

static void swarm_open(struct swarm *swarm, size_t index)
{
    struct swarm_client *client = &swarm->clients[index];
    struct sockaddr_in server = {.sin_family = AF_INET,
                                 .sin_port = htons(swarm->settings.ports[client->server]),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0)
        cost_fail("client %zu has no descriptor: %s", index, strerror(errno));
    swarm_bind(swarm, client->fd);
    swarm_set_state(swarm, client, SWARM_CONNECTING);
    if (connect(client->fd, (struct sockaddr *)&server, sizeof(server)) < 0 &&
        errno != EINPROGRESS) {
        swarm_on_lost(swarm, client);
        return;
    }
    struct epoll_event event = {.events = EPOLLOUT, .data.u64 = index};
    epoll_ctl(swarm->epoll_fd, EPOLL_CTL_ADD, client->fd, &event);
}

static bool swarm_write(struct swarm *swarm, struct swarm_client *client, const char *bytes,
                        size_t count)
{
    ssize_t sent = send(client->fd, bytes, count, MSG_NOSIGNAL);
    swarm->counts.bytes_out += sent > 0 ? (uint64_t)sent : 0;
    if (sent == (ssize_t)count)
        return true;
    swarm_on_lost(swarm, client);
    return false;
}

static void swarm_send_request(struct swarm *swarm, size_t index)
{
    struct swarm_client *client = &swarm->clients[index];
    char request[REQUEST_BYTES_MAX];
    size_t token_bytes;
    const char *token = swarm_token(&swarm->tokens, index, &token_bytes);
    int length = snprintf(request, sizeof(request),
                          "GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\nSec-WebSocket-Key: " HANDSHAKE_KEY "\r\n"
                          "Sec-WebSocket-Version: 13\r\nAuthorization: Bearer %.*s\r\n\r\n",
                          (int)token_bytes, token);
    if (length >= (int)sizeof(request))
        cost_fail("the token of client %zu is too long", index);
    if (!swarm_write(swarm, client, request, (size_t)length))
        return;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = index};
    epoll_ctl(swarm->epoll_fd, EPOLL_CTL_MOD, client->fd, &event);
    swarm_set_state(swarm, client, SWARM_UPGRADING);
}

static void swarm_open_due(struct swarm *swarm)
{
    const struct swarm_settings *settings = &swarm->settings;
    while (swarm->opened < settings->client_count && swarm->opening < settings->connects_at_once)
        swarm_open(swarm, swarm->opened++);
    uint32_t now_ms = swarm_ms(swarm);
    if (swarm->waiting == 0 || now_ms - swarm->scanned_ms < SCAN_MS)
        return;
    swarm->scanned_ms = now_ms;
    for (size_t i = 0; i < swarm->opened; i++) {
        struct swarm_client *client = &swarm->clients[i];
        if (client->state == SWARM_WAITING && (int32_t)(now_ms - client->due_ms) >= 0) {
            swarm->waiting--;
            swarm_open(swarm, i);
        }
    }
}

/* ---- heartbeats ---- */

static uint64_t swarm_beats_due(const struct swarm *swarm)
{
    const struct swarm_settings *settings = &swarm->settings;
    return swarm_us(swarm) / US_PER_MS * settings->client_count / settings->heartbeat_ms;
}

void swarm_set_heartbeat(struct swarm *swarm, uint32_t heartbeat_ms)
{
    swarm->settings.heartbeat_ms = heartbeat_ms;
    swarm->beats_done = swarm_beats_due(swarm);
}

static void swarm_beat(struct swarm *swarm, struct swarm_client *client)
{
    if (client->state != SWARM_READY)
        return;
    swarm->counts.unanswered += client->sent_us != 0;
    client->sent_us = (uint32_t)swarm_us(swarm);
    swarm_write(swarm, client, swarm->heartbeat.bytes, swarm->heartbeat.count);
}

/* Client `i` sends its heartbeats at `i / client_count` of each interval. Returns whether all that are due were sent. */
static bool swarm_beat_due(struct swarm *swarm)
{
    uint64_t due = swarm_beats_due(swarm);
    for (size_t sent = 0; swarm->beats_done < due && sent < BEATS_PER_TURN; sent++)
        swarm_beat(swarm, &swarm->clients[swarm->beats_done++ % swarm->settings.client_count]);
    return swarm->beats_done >= due;
}

static void swarm_on_answer(struct swarm *swarm, struct swarm_client *client)
{
    if (client->sent_us == 0)
        return;
    uint64_t now_us = swarm_us(swarm);
    uint32_t taken_us = (uint32_t)now_us - client->sent_us;
    uint32_t *slowest =
        &swarm->counts.slowest_us[swarm_slot((now_us - swarm->counts_from_us) / US_PER_MS)];
    if (taken_us > *slowest)
        *slowest = taken_us;
    latency_add(&swarm->counts.round_trips, (uint64_t)taken_us * 1000 / SWARM_LATENCY_UNIT_US);
    swarm->counts.heartbeats++;
    client->sent_us = 0;
}

/* ---- reading ---- */

static void swarm_on_text(struct swarm *swarm, struct swarm_client *client, const char *text,
                          size_t count)
{
    if (dialect_contains(text, count, "\"heartbeat_ack\""))
        swarm_on_answer(swarm, client);
    else if (client->state == SWARM_UPGRADING &&
             dialect_contains(text, count, "\"connection_established\""))
        swarm_on_ready(swarm, client);
    else if (dialect_contains(text, count, "\"sync_required\""))
        swarm->counts.syncs++;
}

/* Returns false when the client was lost. */
static bool swarm_on_frame(struct swarm *swarm, struct swarm_client *client,
                           const struct frame_view *view)
{
    struct frame pong;
    if (view->opcode == FRAME_TEXT)
        swarm_on_text(swarm, client, view->payload, view->payload_bytes);
    else if (view->opcode == FRAME_PING) {
        frame_encode(&pong, FRAME_PONG, view->payload, view->payload_bytes);
        return swarm_write(swarm, client, pong.bytes, pong.count);
    } else if (view->opcode == FRAME_CLOSE) {
        swarm_on_lost(swarm, client);
        return false;
    }
    return true;
}

static void swarm_keep_pending(struct swarm_client *client, const char *bytes, size_t count)
{
    if (count == 0)
        return;
    if (count > PENDING_BYTES_MAX || (client->pending = malloc(count)) == NULL)
        cost_fail("a message of the server is too long");
    memcpy(client->pending, bytes, count);
    client->pending_bytes = (uint32_t)count;
}

/* Returns the length of the complete head of an accepted upgrade; 0: incomplete; -1: the client was refused. */
static long swarm_check_head(struct swarm *swarm, struct swarm_client *client, const char *bytes,
                             size_t count)
{
    const char *end = memmem(bytes, count, "\r\n\r\n", 4);
    if (end == NULL)
        return 0;
    if (dialect_starts_with(bytes, count, "HTTP/1.1 101"))
        return end + 4 - bytes;
    swarm_on_lost(swarm, client);
    return -1;
}

static void swarm_take_bytes(struct swarm *swarm, struct swarm_client *client, size_t count)
{
    const char *bytes = swarm->buffer;
    struct frame_view view;
    size_t at = 0;
    int decoded;
    if (client->state == SWARM_UPGRADING && dialect_starts_with(bytes, count, "HTTP")) {
        long head = swarm_check_head(swarm, client, bytes, count);
        if (head < 0)
            return;
        at = (size_t)head;
    }
    bool framed = at > 0 || !dialect_starts_with(bytes, count, "HTTP");
    while (framed && (decoded = frame_decode(bytes + at, count - at, &view)) != 0) {
        if (decoded < 0)
            cost_fail("received a frame that no server may send");
        if (!swarm_on_frame(swarm, client, &view))
            return;
        at += view.total_bytes;
    }
    swarm_keep_pending(client, bytes + at, count - at);
}

static void swarm_read(struct swarm *swarm, struct swarm_client *client)
{
    size_t kept = client->pending_bytes;
    if (kept > 0)
        memcpy(swarm->buffer, client->pending, kept);
    ssize_t got = recv(client->fd, swarm->buffer + kept, READ_BUFFER_BYTES - kept, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    free(client->pending);
    client->pending = NULL;
    client->pending_bytes = 0;
    if (got <= 0) {
        swarm_on_lost(swarm, client);
        return;
    }
    swarm->counts.bytes_in += (uint64_t)got;
    swarm_take_bytes(swarm, client, kept + (size_t)got);
}

void swarm_turn(struct swarm *swarm)
{
    struct epoll_event events[EVENTS_PER_TURN];
    swarm_open_due(swarm);
    bool rested = swarm_beat_due(swarm);
    int count = epoll_wait(swarm->epoll_fd, events, EVENTS_PER_TURN, rested ? WAIT_MS : 0);
    for (int i = 0; i < count; i++) {
        size_t index = events[i].data.u64;
        struct swarm_client *client = &swarm->clients[index];
        if (client->state == SWARM_CONNECTING && !(events[i].events & (EPOLLERR | EPOLLHUP)))
            swarm_send_request(swarm, index);
        else if (client->state == SWARM_CONNECTING)
            swarm_on_lost(swarm, client);
        else if (client->state != SWARM_WAITING)
            swarm_read(swarm, client);
    }
}

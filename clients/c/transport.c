/* The socket, the WebSocket handshake, frames out and in. */
#include "client.h"

#include "protocol/websocket/websocket_mask.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 16 * 1024, READS_AT_ONCE_MAX = 16, CLOSE_TOKEN = 4001 };

static const char OUT_OF_MEMORY[] = "out of memory";

static const struct websocket_limits LIMITS = {.message_bytes_max = CLIENT_MESSAGE_BYTES_MAX,
                                               .expects_masks = false};

void transport_drop(struct rollcall *client)
{
    secure_drop(client);
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->connected = false;
    client->upgraded = false;
    client->out_sent = 0;
    buffer_clear(&client->out);
    buffer_clear(&client->in);
    websocket_decoder_free(&client->decoder);
}

static void handshake_write_escaped(struct buffer *out, const char *text)
{
    /* The characters that a query may contain unescaped. */
    static const char PLAIN[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text; text++) {
        if (strchr(PLAIN, *text))
            buffer_append_byte(out, *text);
        else
            buffer_printf(out, "%%%02X", (unsigned char)*text);
    }
}

/* Returns false when out of memory. */
static bool handshake_write(struct rollcall *client)
{
    struct buffer *out = &client->out;
    unsigned char nonce[16];
    unsigned char key[WEBSOCKET_KEY_BYTES + 1];
    bool brackets = strchr(client->host, ':') != NULL; /* an IPv6 address */
    random_bytes(&client->random, nonce, sizeof(nonce));
    EVP_EncodeBlock(key, nonce, sizeof(nonce));
    if (!websocket_accept_key(slice_of((const char *)key), client->accept_key))
        return false;
    buffer_append_text(out, "GET /v1/ws");
    if (client->device_id) {
        buffer_append_text(out, "?device_id=");
        handshake_write_escaped(out, client->device_id);
    }
    buffer_printf(out,
                  " HTTP/1.1\r\nHost: %s%s%s:%u\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
                  "Authorization: Bearer %s\r\n\r\n",
                  brackets ? "[" : "", client->host, brackets ? "]" : "", client->options.port,
                  (const char *)key, client->token);
    return !out->failed;
}

static int transport_open_socket(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Returns what went wrong, or NULL while the socket connects. */
static const char *transport_dial(struct rollcall *client)
{
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    snprintf(port, sizeof(port), "%u", client->options.port);
    int error = getaddrinfo(client->host, port, &hints, &found);
    if (error != 0)
        return gai_strerror(error);
    unsigned count = 1;
    for (const struct addrinfo *at = found; at->ai_next; at = at->ai_next)
        count++;
    /* A name may have several addresses: each attempt tries the next. */
    const struct addrinfo *chosen = found;
    for (unsigned i = client->attempts % count; i > 0; i--)
        chosen = chosen->ai_next;
    client->fd = transport_open_socket(chosen);
    const char *why = client->fd < 0 ? strerror(errno) : NULL;
    freeaddrinfo(found);
    return why;
}

void transport_connect(struct rollcall *client)
{
    transport_drop(client);
    client->last_received_ms = client->clock.now_ms;
    const char *why = transport_dial(client);
    if (!why && client->options.tls)
        why = secure_start(client);
    if (!why && !handshake_write(client))
        why = OUT_OF_MEMORY;
    if (why)
        client_lost(client, why);
}

/* ---- out ---- */

static bool transport_write_frame(struct rollcall *client, enum websocket_opcode opcode,
                                  struct slice payload)
{
    uint8_t header[WEBSOCKET_MASKED_HEADER_BYTES_MAX];
    uint8_t mask[4];
    random_bytes(&client->random, mask, sizeof(mask));
    size_t len = websocket_masked_header_write(header, opcode, payload.len, mask);
    if (!buffer_reserve(&client->out, len + payload.len)) {
        client->out.failed = false; /* this message is dropped; those in the buffer stay */
        return false;
    }
    buffer_append(&client->out, header, len);
    buffer_append_slice(&client->out, payload);
    websocket_unmask(client->out.data + client->out.len - payload.len, payload.len,
                     websocket_mask_of(mask));
    return true;
}

bool transport_send(struct rollcall *client, struct slice json)
{
    return client->upgraded && !client->closing &&
           transport_write_frame(client, WEBSOCKET_OPCODE_TEXT, json);
}

void transport_close(struct rollcall *client, unsigned code)
{
    char payload[WEBSOCKET_CONTROL_BYTES_MAX];
    size_t len = websocket_close_write(payload, code, SLICE_NONE);
    transport_write_frame(client, WEBSOCKET_OPCODE_CLOSE, (struct slice){payload, len});
}

/* Why the last send or receive failed. */
static const char *transport_error(const struct rollcall *client)
{
    return client->tls ? client->tls_error : strerror(errno);
}

static ssize_t transport_send_bytes(struct rollcall *client, const char *data, size_t len)
{
    return client->tls ? secure_send(client, data, len) : send(client->fd, data, len, MSG_NOSIGNAL);
}

static void transport_flush(struct rollcall *client)
{
    while (client->out_sent < client->out.len) {
        ssize_t went = transport_send_bytes(client, client->out.data + client->out_sent,
                                            client->out.len - client->out_sent);
        if (went < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
            break;
        if (went <= 0) {
            client_lost(client, went < 0 ? transport_error(client) : "the server hung up");
            return;
        }
        client->connected = true;
        client->out_sent += (size_t)went;
    }
    if (client->out_sent < client->out.len && client->out_sent < client->out.len / 2)
        return; /* move the rest only when it is the smaller part */
    buffer_consume(&client->out, client->out_sent);
    client->out_sent = 0;
}

/* ---- in ---- */

static void on_server_closed(struct rollcall *client, const struct websocket_message *close)
{
    char why[CLIENT_WHY_BYTES];
    snprintf(why, sizeof(why), "closed by the server: %u %.*s", close->close_code, (int)close->len,
             close->data);
    client->refused |= close->close_code == CLOSE_TOKEN;
    client_lost(client, why);
}

static void transport_handle_frames(struct rollcall *client, char *data, size_t len)
{
    struct websocket_message message;
    while (client->upgraded) {
        switch (websocket_decode(&client->decoder, &LIMITS, &data, &len, &message)) {
        case WEBSOCKET_TEXT:
            if (incoming_message(client, message.data, message.len))
                break;
            client_lost(client, OUT_OF_MEMORY);
            return;
        case WEBSOCKET_PING:
            transport_write_frame(client, WEBSOCKET_OPCODE_PONG,
                                  (struct slice){message.data, message.len});
            break;
        case WEBSOCKET_CLOSE:
            on_server_closed(client, &message);
            return;
        case WEBSOCKET_ERROR:
            client_lost(client, message.error_reason);
            return;
        case WEBSOCKET_NEED_MORE:
            return;
        default:
            break;
        }
    }
}

/* Returns the value of a header, or an empty slice. */
static struct slice handshake_header(struct slice head, const char *name)
{
    size_t name_len = strlen(name);
    const char *end = head.data + head.len;
    for (const char *line = head.data; line < end;) {
        const char *stop = memmem(line, (size_t)(end - line), "\r\n", 2);
        stop = stop ? stop : end;
        if ((size_t)(stop - line) > name_len && line[name_len] == ':' &&
            strncasecmp(line, name, name_len) == 0) {
            const char *value = line + name_len + 1;
            while (value < stop && (*value == ' ' || *value == '\t'))
                value++;
            return (struct slice){value, (size_t)(stop - value)};
        }
        line = stop + (stop < end ? 2 : 0);
    }
    return SLICE_NONE;
}

/* Returns the number at the start of a text, or 0. */
static unsigned handshake_number(struct slice text)
{
    unsigned value = 0;
    for (size_t i = 0; i < text.len && i < 6 && text.data[i] >= '0' && text.data[i] <= '9'; i++)
        value = value * 10 + (unsigned)(text.data[i] - '0');
    return value;
}

/* Status and Retry-After decide how the next attempt is made. */
static void on_handshake_refused(struct rollcall *client, unsigned status, struct slice head)
{
    unsigned after_s = handshake_number(handshake_header(head, "Retry-After"));
    char why[CLIENT_WHY_BYTES];
    snprintf(why, sizeof(why), "the server answered the handshake with %u", status);
    client->refused = client->at_once = status == 401;
    client->not_before_ms = client->clock.now_ms + client_milliseconds(after_s);
    client_lost(client, why);
}

/* Handles the answer to the handshake: 101, then frames; anything else ends this attempt. */
static void on_handshake_answer(struct rollcall *client, const char *data, size_t len)
{
    static const struct slice VERSION = {"HTTP/1.1 ", 9};
    buffer_append(&client->in, data, len);
    const char *end =
        client->in.failed ? NULL : memmem(client->in.data, client->in.len, "\r\n\r\n", 4);
    if (client->in.failed || (!end && client->in.len > READ_BYTES)) {
        client_lost(client, "the answer to the handshake is too long");
        return;
    }
    if (!end)
        return;
    struct slice head = {client->in.data, (size_t)(end - client->in.data) + 2};
    bool http = head.len > VERSION.len && memcmp(head.data, VERSION.data, VERSION.len) == 0;
    unsigned status =
        http ? handshake_number((struct slice){head.data + VERSION.len, head.len - VERSION.len})
             : 0;
    if (status != 101 ||
        !slice_is(handshake_header(head, "Sec-WebSocket-Accept"), client->accept_key)) {
        on_handshake_refused(client, status, head);
        return;
    }
    client->upgraded = true;
    /* The buffer may contain the first frames, and must outlive a connection that they end. */
    struct buffer answer = client->in;
    client->in = BUFFER_BOUNDED(CLIENT_MESSAGE_BYTES_MAX);
    size_t frames_at = head.len + 2;
    transport_handle_frames(client, answer.data + frames_at, answer.len - frames_at);
    buffer_free(&answer);
}

/* Bounded, so that a server that sends without end does not block the application. */
static void transport_receive(struct rollcall *client)
{
    char data[READ_BYTES];
    for (unsigned reads = 0; client->fd >= 0 && reads < READS_AT_ONCE_MAX; reads++) {
        ssize_t got = client->tls ? secure_receive(client, data, sizeof(data))
                                  : recv(client->fd, data, sizeof(data), 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            client_lost(client, got < 0 ? transport_error(client) : "the server hung up");
            return;
        }
        client->connected = true;
        client->last_received_ms = client->clock.now_ms;
        if (client->upgraded)
            transport_handle_frames(client, data, (size_t)got);
        else
            on_handshake_answer(client, data, (size_t)got);
    }
}

void transport_process(struct rollcall *client, short revents)
{
    bool tls_waits =
        client->tls_wants_write; /* what it could not write may have been a part of reading */
    client->tls_wants_write = client->tls_send_awaits_bytes = false;
    if (tls_waits || (revents & (POLLIN | POLLERR | POLLHUP)))
        transport_receive(client);
    if (client->fd >= 0)
        transport_flush(client);
}

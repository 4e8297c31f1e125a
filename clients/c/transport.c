/* The socket, the WebSocket handshake, frames out and in. */
#include "client.h"

#include "frame/websocket_encode.h"
#include "frame/websocket_mask.h"

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

enum { READ_BYTES = 16 * 1024 };

static const struct websocket_limits LIMITS = {.message_bytes_max = CLIENT_MESSAGE_BYTES_MAX,
                                               .peer_masks = false};

void transport_drop(struct rollcall *client)
{
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

/* What a query may hold as it stands; everything else is escaped. */
static void write_escaped(struct buffer *out, const char *text)
{
    static const char PLAIN[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text; text++) {
        if (strchr(PLAIN, *text))
            buffer_append_byte(out, *text);
        else
            buffer_printf(out, "%%%02X", (unsigned char)*text);
    }
}

static void write_handshake(struct rollcall *client)
{
    struct buffer *out = &client->out;
    unsigned char nonce[16];
    unsigned char key[WEBSOCKET_KEY_BYTES + 1];
    random_bytes(&client->random, nonce, sizeof(nonce));
    EVP_EncodeBlock(key, nonce, sizeof(nonce));
    buffer_append_text(out, "GET /v1/ws");
    if (client->device_id) {
        buffer_append_text(out, "?device_id=");
        write_escaped(out, client->device_id);
    }
    buffer_printf(out,
                  " HTTP/1.1\r\nHost: %s:%u\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
                  "Authorization: Bearer %s\r\n\r\n",
                  client->host, client->options.port, (const char *)key, client->token);
}

static int open_socket(const struct rollcall *client)
{
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    snprintf(port, sizeof(port), "%u", client->options.port);
    if (getaddrinfo(client->host, port, &hints, &found) != 0)
        return -1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) < 0 && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

void transport_connect(struct rollcall *client)
{
    transport_drop(client);
    client->fd = open_socket(client);
    if (client->fd < 0) {
        client_lost(client);
        return;
    }
    client->heard_ms = client->clock.now_ms;
    write_handshake(client);
}

/* ---- out ---- */

static bool write_frame(struct rollcall *client, enum websocket_opcode opcode, struct slice payload)
{
    uint8_t header[WEBSOCKET_MASKED_HEADER_BYTES_MAX];
    uint8_t mask[4];
    random_bytes(&client->random, mask, sizeof(mask));
    size_t len = websocket_masked_header_write(header, opcode, payload.len, mask);
    if (!buffer_reserve(&client->out, len + payload.len)) {
        client->out.failed = false; /* this one does not fit; what is queued stays good */
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
    return client->upgraded && !client->closing && write_frame(client, WEBSOCKET_OPCODE_TEXT, json);
}

void transport_close(struct rollcall *client, unsigned code)
{
    char payload[WEBSOCKET_CONTROL_BYTES_MAX];
    size_t len = websocket_close_write(payload, code, SLICE_NONE);
    write_frame(client, WEBSOCKET_OPCODE_CLOSE, (struct slice){payload, len});
}

static void flush(struct rollcall *client)
{
    while (client->out_sent < client->out.len) {
        ssize_t went = send(client->fd, client->out.data + client->out_sent,
                            client->out.len - client->out_sent, MSG_NOSIGNAL);
        if (went < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOTCONN))
            return;
        if (went < 0) {
            client_lost(client);
            return;
        }
        client->connected = true;
        client->out_sent += (size_t)went;
    }
    buffer_clear(&client->out);
    client->out_sent = 0;
}

/* ---- in ---- */

static void closed_by_server(struct rollcall *client, unsigned code)
{
    client->refused |= code == 4001;
    client_lost(client);
}

static void take_frames(struct rollcall *client, char *data, size_t len)
{
    struct websocket_message message;
    while (client->upgraded) {
        switch (websocket_decode(&client->decoder, &LIMITS, &data, &len, &message)) {
        case WEBSOCKET_TEXT:
            incoming_message(client, message.data, message.len);
            break;
        case WEBSOCKET_PING:
            write_frame(client, WEBSOCKET_OPCODE_PONG, (struct slice){message.data, message.len});
            break;
        case WEBSOCKET_CLOSE:
            closed_by_server(client, message.close_code);
            return;
        case WEBSOCKET_ERROR:
            client_lost(client);
            return;
        case WEBSOCKET_NEED_MORE:
            return;
        default:
            break;
        }
    }
}

/* The answer to the handshake: 101 and on to frames, or the end of this attempt. */
static void take_answer(struct rollcall *client, const char *data, size_t len)
{
    buffer_append(&client->in, data, len);
    const char *end =
        client->in.len ? memmem(client->in.data, client->in.len, "\r\n\r\n", 4) : NULL;
    if (client->in.failed || (!end && client->in.len > READ_BYTES)) {
        client_lost(client);
        return;
    }
    if (!end)
        return;
    unsigned status = 0;
    if (client->in.len > 12)
        sscanf(client->in.data, "HTTP/1.1 %3u", &status);
    if (status != 101) {
        client->refused = status == 401;
        client_lost(client);
        return;
    }
    size_t head = (size_t)(end - client->in.data) + 4;
    client->upgraded = true;
    size_t rest = client->in.len - head;
    char *frames = rest ? malloc(rest) : NULL;
    if (rest && frames)
        memcpy(frames, client->in.data + head, rest);
    buffer_free(&client->in);
    if (frames)
        take_frames(client, frames, rest);
    free(frames);
}

static void receive(struct rollcall *client)
{
    char data[READ_BYTES];
    while (client->fd >= 0) {
        ssize_t got = recv(client->fd, data, sizeof(data), 0);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0) {
            client_lost(client);
            return;
        }
        client->connected = true;
        client->heard_ms = client->clock.now_ms;
        if (client->upgraded)
            take_frames(client, data, (size_t)got);
        else
            take_answer(client, data, (size_t)got);
    }
}

void transport_process(struct rollcall *client, short revents)
{
    if (revents & (POLLIN | POLLERR | POLLHUP))
        receive(client);
    if (client->fd >= 0)
        flush(client);
}

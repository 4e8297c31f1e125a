/* The socket, the WebSocket handshake, frames out and in. */
#include "client.h"

#include "answer_head.h"
#include "protocol/websocket/websocket_mask.h"

#include <errno.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { READ_BYTES = 16 * 1024, READS_AT_ONCE_MAX = 16, CLOSE_TOKEN = 4001 };

static const char OUT_OF_MEMORY[] = "out of memory";

static const struct websocket_limits LIMITS = {.message_bytes_max = CLIENT_MESSAGE_BYTES_MAX,
                                               .expects_masks = false};

void transport_drop(struct rollcall *client)
{
    link_drop(&client->link);
    client->upgraded = false;
    client->out_sent = 0;
    buffer_clear(&client->out);
    buffer_clear(&client->in);
    websocket_decoder_free(&client->decoder);
}

/* Returns false when out of memory. */
static bool handshake_write(struct rollcall *client)
{
    struct buffer *out = &client->out;
    unsigned char nonce[16];
    unsigned char key[WEBSOCKET_KEY_BYTES + 1];
    random_bytes(&client->random, nonce, sizeof(nonce));
    EVP_EncodeBlock(key, nonce, sizeof(nonce));
    if (!websocket_accept_key(slice_of((const char *)key), client->accept_key))
        return false;
    buffer_append_text(out, "GET /v1/ws");
    if (client->device_id) {
        buffer_append_text(out, "?device_id=");
        link_write_escaped(out, client->device_id);
    }
    buffer_append_text(out, " HTTP/1.1\r\n");
    link_write_host(out, &client->link.target);
    buffer_printf(out,
                  "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
                  "Authorization: Bearer %s\r\n\r\n",
                  (const char *)key, client->token);
    return !out->failed;
}

void transport_connect(struct rollcall *client)
{
    transport_drop(client);
    client->last_received_ms = client->clock.now_ms;
    const char *why = link_dial(&client->link, client->attempts);
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

static void transport_flush(struct rollcall *client)
{
    while (client->out_sent < client->out.len) {
        ssize_t went = link_send(&client->link, client->out.data + client->out_sent,
                                 client->out.len - client->out_sent);
        if (went < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
            break;
        if (went <= 0) {
            client_lost(client, went < 0 ? link_error(&client->link) : "the server hung up");
            return;
        }
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

/* Status and Retry-After decide how the next attempt is made. */
static void on_handshake_refused(struct rollcall *client, unsigned status, struct slice head)
{
    unsigned after_s = answer_head_number(answer_head_value(head, "Retry-After"));
    char why[CLIENT_WHY_BYTES];
    snprintf(why, sizeof(why), "the server answered the handshake with %u", status);
    client->refused = client->at_once = status == 401;
    client->not_before_ms = client->clock.now_ms + client_milliseconds(after_s);
    client_lost(client, why);
}

/* Handles the answer to the handshake: 101, then frames; anything else ends this attempt. */
static void on_handshake_answer(struct rollcall *client, const char *data, size_t len)
{
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
    unsigned status = answer_head_status(head);
    if (status != 101 ||
        !slice_is(answer_head_value(head, "Sec-WebSocket-Accept"), client->accept_key)) {
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
    for (unsigned reads = 0; client->link.fd >= 0 && reads < READS_AT_ONCE_MAX; reads++) {
        ssize_t got = link_receive(&client->link, data, sizeof(data));
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            client_lost(client, got < 0 ? link_error(&client->link) : "the server hung up");
            return;
        }
        client->last_received_ms = client->clock.now_ms;
        if (client->upgraded)
            transport_handle_frames(client, data, (size_t)got);
        else
            on_handshake_answer(client, data, (size_t)got);
    }
}

void transport_process(struct rollcall *client, short revents)
{
    if (link_begin_turn(&client->link) || (revents & (POLLIN | POLLERR | POLLHUP)))
        transport_receive(client);
    if (client->link.fd >= 0)
        transport_flush(client);
}

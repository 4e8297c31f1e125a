#include "support/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { HOUR_MS = 3600 * 1000, FRAME_BYTES_MAX = 128 * 1024, SLOW_SOCKET_BYTES = 4096 };

static const unsigned char MASK[4] = {0x12, 0x34, 0x56, 0x78};

void client_dial(struct client *client, struct world *world, int send_bytes)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    if (send_bytes)
        setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
    client->world = world;
    client->fd = pair[0];
    client->ended = false;
    client->len = 0;
    http_listener_accept(&world->rest->listener, pair[1]);
    world_settle(world);
}

void client_write(struct client *client, const void *data, size_t len)
{
    ssize_t sent = send(client->fd, data, len, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
        return; /* the server has closed; reading will show that */
    assert_int_equal(sent, len);
}

void client_print(struct client *client, const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert_in_range(len, 0, sizeof(text) - 1);
    client_write(client, text, (size_t)len);
}

void client_upgrade(struct client *client, const char *token)
{
    client_print(client,
                 "GET /v1/ws?device_id=phone HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\n"
                 "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer %s\r\n\r\n",
                 token);
    world_settle(client->world);
}

unsigned client_dial_socketio(struct client *client, struct world *world, const char *query,
                              int send_bytes)
{
    client_dial(client, world, send_bytes);
    client_print(client,
                 "GET /socket.io/?EIO=4&transport=websocket%s HTTP/1.1\r\nHost: test\r\n"
                 "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                 query);
    return client_response(client);
}

void client_connect_socketio(struct client *client, struct world *world, const char *user)
{
    char token[WORLD_TOKEN_BYTES_MAX], query[WORLD_TOKEN_BYTES_MAX + 16];
    world_token(world, user, "", 3600000, token);
    snprintf(query, sizeof(query), "&access_token=%s", token);
    assert_int_equal(client_dial_socketio(client, world, query, 0), 101);
    client_send(client, "40");
    while (client_next(client) == CLIENT_TEXT)
        continue;
}

const char *client_event_names(struct client *client)
{
    static char names[1024];
    size_t len = 0;
    names[0] = '\0';
    while (client_next(client) == CLIENT_TEXT) {
        const char *name = strstr(client->text, "[\"");
        const char *end = name ? strchr(name + 2, '"') : NULL;
        assert_non_null(end);
        assert_true(len + (size_t)(end - name) < sizeof(names));
        len += (size_t)sprintf(names + len, "%.*s ", (int)(end - name - 2), name + 2);
    }
    return names;
}

void client_dial_polling(struct client *client, struct world *world, const char *method,
                         const char *sid, size_t body_len, const char *body)
{
    client_dial(client, world, 0);
    client_print(client,
                 "%s /socket.io/?EIO=4&transport=polling%s%s HTTP/1.1\r\nHost: test\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 method, sid[0] ? "&sid=" : "", sid, body_len, body);
}

bool client_find_sid(const struct client *client, char sid[CLIENT_SID_MAX])
{
    static const char FIELD[] = "\"sid\":\"";
    const char *at = strstr(client->text, FIELD);
    return at && sscanf(at + strlen(FIELD), "%63[^\"]", sid) == 1;
}

static void client_connect_user(struct client *client, struct world *world, const char *user,
                                int send_bytes)
{
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(world, user, "", HOUR_MS * 48, token);
    client_dial(client, world, send_bytes);
    client_upgrade(client, token);
    assert_int_equal(client_response(client), 101);
    client_expect(client, "connection_established");
}

void client_connect(struct client *client, struct world *world, const char *user)
{
    client_connect_user(client, world, user, 0);
}

void client_connect_slow(struct client *client, struct world *world, const char *user)
{
    client_connect_user(client, world, user, SLOW_SOCKET_BYTES);
}

void client_connect_three(struct world *world, struct client *alice, struct client *bob,
                          struct client *carol)
{
    fake_ledger_befriend(&world->ledger, "alice", "bob");
    client_connect(alice, world, "alice");
    client_connect(carol, world, "carol");
    client_connect(bob, world, "bob");
    client_expect(alice, "presence_changed");
}

/* ---- writing ---- */

void client_frame(struct client *client, unsigned opcode, const void *data, size_t len)
{
    static unsigned char frame[FRAME_BYTES_MAX + 14];
    size_t at = 0;
    assert_true(len <= FRAME_BYTES_MAX);
    frame[at++] = (unsigned char)(0x80 | opcode);
    if (len < 126) {
        frame[at++] = (unsigned char)(0x80 | len);
    } else if (len < 65536) {
        frame[at++] = 0x80 | 126;
        frame[at++] = (unsigned char)(len >> 8);
        frame[at++] = (unsigned char)len;
    } else {
        frame[at++] = 0x80 | 127;
        for (int shift = 56; shift >= 0; shift -= 8)
            frame[at++] = (unsigned char)(len >> shift);
    }
    memcpy(frame + at, MASK, sizeof(MASK));
    at += sizeof(MASK);
    for (size_t i = 0; i < len; i++)
        frame[at + i] = ((const unsigned char *)data)[i] ^ MASK[i % 4];
    client_write(client, frame, at + len);
}

void client_send(struct client *client, const char *json)
{
    client_frame(client, CLIENT_TEXT, json, strlen(json));
    world_settle(client->world);
}

void client_set_away(struct client *client, bool away)
{
    client_send(client, away ? "{\"type\":\"heartbeat\",\"active\":false}"
                             : "{\"type\":\"heartbeat\",\"active\":true}");
    client_expect(client, "heartbeat_ack");
}

void client_hang_up(struct client *client)
{
    if (client->fd < 0)
        return;
    close(client->fd);
    client->fd = -1;
    world_settle(client->world);
}

void client_end_world(struct world *world, struct client *const *clients)
{
    for (; *clients; clients++)
        client_hang_up(*clients);
    world_close(world);
}

/* ---- reading ---- */

void client_read(struct client *client, size_t max)
{
    size_t space = sizeof(client->in) - client->len;
    if (max && max < space)
        space = max;
    while (space) {
        ssize_t got = recv(client->fd, client->in + client->len, space, 0);
        if (got <= 0) {
            client->ended |= got == 0 || (errno != EAGAIN && errno != EINTR);
            return;
        }
        client->len += (size_t)got;
        space -= (size_t)got;
    }
}

static void client_take_text(struct client *client, size_t head, size_t len)
{
    assert_true(len < sizeof(client->text));
    memcpy(client->text, client->in + head, len);
    client->text[len] = '\0';
    client->text_len = len;
    client->len -= head + len;
    memmove(client->in, client->in + head + len, client->len);
}

unsigned client_response(struct client *client)
{
    unsigned status = 0;
    size_t body = 0;
    world_settle(client->world);
    client_read(client, 0);
    char *end = memmem(client->in, client->len, "\r\n\r\n", 4);
    if (!end || sscanf(client->in, "HTTP/1.1 %u", &status) != 1)
        return 0;
    size_t head = (size_t)(end - client->in) + 4;
    char *length = memmem(client->in, head, "Content-Length: ", 16);
    if (length)
        sscanf(length, "Content-Length: %zu", &body);
    if (client->len < head + body)
        return 0;
    client_take_text(client, 0, head + body);
    return status;
}

/* Reads the lengths of header and payload. Returns false when the header is incomplete. */
static bool client_read_header(const struct client *client, size_t *head, size_t *len)
{
    const unsigned char *in = (const unsigned char *)client->in;
    if (client->len < 2)
        return false;
    assert_int_equal(in[0] & 0xf0, 0x80); /* whole messages, no reserved bit */
    assert_int_equal(in[1] & 0x80, 0);    /* servers do not mask */
    size_t bytes = in[1] == 127 ? 8 : in[1] == 126 ? 2 : 0;
    *head = 2 + bytes;
    if (client->len < *head)
        return false;
    *len = bytes ? 0 : in[1];
    for (size_t i = 0; i < bytes; i++)
        *len = *len << 8 | in[2 + i];
    return true;
}

enum client_event client_next(struct client *client)
{
    size_t head, len;
    world_settle(client->world);
    client_read(client, 0);
    if (!client_read_header(client, &head, &len) || client->len < head + len)
        return client->ended ? CLIENT_END : CLIENT_NOTHING;
    enum client_event event = (enum client_event)(client->in[0] & 0x0f);
    client_take_text(client, head, len);
    if (event == CLIENT_CLOSE) {
        const unsigned char *payload = (const unsigned char *)client->text;
        client->close_code = len >= 2 ? (unsigned)payload[0] << 8 | payload[1] : 1005;
    }
    return event;
}

bool client_has(const struct client *client, const char *piece)
{
    return strstr(client->text, piece) != NULL;
}

void client_expect_text(struct client *client, const char *beginning)
{
    enum client_event event = client_next(client);
    if (event != CLIENT_TEXT || strncmp(client->text, beginning, strlen(beginning)) != 0)
        fail_msg("expected %s, got event %d: %s", beginning, (int)event, client->text);
}

const char *client_expect(struct client *client, const char *type)
{
    char piece[64];
    enum client_event event = client_next(client);
    if (event != CLIENT_TEXT)
        fail_msg("expected %s, got event %d", type, (int)event);
    snprintf(piece, sizeof(piece), "{\"type\":\"%s\"", type);
    if (!client_has(client, piece))
        fail_msg("expected %s, got %s", type, client->text);
    return client->text;
}

void client_expect_with(struct client *client, const char *type, const char *format, ...)
{
    char piece[256];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    client_expect(client, type);
    if (!client_has(client, piece))
        fail_msg("expected %s, got %s", piece, client->text);
}

void client_expect_change(struct client *client, const char *user, const char *status)
{
    client_expect_with(client, "presence_changed", "\"user_id\":\"%s\",\"status\":\"%s\"", user,
                       status);
}

void client_expect_nothing(struct client *client)
{
    enum client_event event = client_next(client);
    if (event != CLIENT_NOTHING)
        fail_msg("expected nothing, got event %d: %s", (int)event, client->text);
}

void client_expect_close(struct client *client, unsigned code)
{
    enum client_event event = client_next(client);
    if (event != CLIENT_CLOSE)
        fail_msg("expected a close frame, got event %d: %s", (int)event, client->text);
    assert_int_equal(client->close_code, code);
}

void client_expect_end(struct client *client)
{
    assert_int_equal(client_next(client), CLIENT_END);
    client_hang_up(client);
}

void client_expect_closing(struct client *client, const char *reason, unsigned code)
{
    char piece[64];
    unsigned char payload[2] = {(unsigned char)(code >> 8), (unsigned char)code};
    client_expect(client, "connection_closing");
    snprintf(piece, sizeof(piece), "\"reason\":\"%s\"", reason);
    if (!client_has(client, piece) || !client_has(client, "\"reconnect_allowed\":true"))
        fail_msg("expected reason %s, got %s", reason, client->text);
    client_expect_close(client, code);
    client_frame(client, CLIENT_CLOSE, payload, sizeof(payload));
    client_expect_end(client);
}

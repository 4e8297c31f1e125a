#include "fixture.h"

#include "protocol/websocket/websocket_encode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    START_MS = 1000000,
    ARRIVAL_MS = 2000, /* in real time, to wait for an expected frame */
    SILENCE_MS = 20,   /* in real time, to wait for a frame that must not arrive */
    TURNS_MAX = 100,
};

/* Global, because the client's read_clock() takes no argument. */
static struct clock virtual_clock;

static void read_virtual_clock(struct clock *clock)
{
    *clock = virtual_clock;
}

/* ---- the application ---- */

static void fixture_log(struct fixture *fixture, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void fixture_log(struct fixture *fixture, const char *format, ...)
{
    size_t len = strlen(fixture->log);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fixture->log + len, sizeof(fixture->log) - len, format, arguments);
    va_end(arguments);
}

static void on_event(void *arg, const struct rollcall_event *event)
{
    struct fixture *fixture = arg;
    if (event->call_id[0])
        snprintf(fixture->call_id, sizeof(fixture->call_id), "%s", event->call_id);
    switch (event->type) {
    case ROLLCALL_EVENT_STATE:
        fixture_log(fixture, "%s ", rollcall_state_name(event->state));
        if (event->state == ROLLCALL_BACKOFF)
            fixture->wait_ms = event->wait_ms;
        snprintf(fixture->why, sizeof(fixture->why), "%s: %s", event->code, event->text);
        break;
    case ROLLCALL_EVENT_MESSAGE:
        fixture_log(fixture, "%s ", event->body);
        fixture->body_len = event->body_len;
        break;
    case ROLLCALL_EVENT_SENT:
        fixture_log(fixture, "sent:%s:%lld ", event->client_message_id, (long long)event->sequence);
        break;
    case ROLLCALL_EVENT_REFUSED:
        fixture_log(fixture, "refused:%s:%s ", event->client_message_id, event->code);
        break;
    case ROLLCALL_EVENT_ERROR:
        fixture_log(fixture, "error:%s:%s ", event->chat_id, event->code);
        break;
    case ROLLCALL_EVENT_PRESENCE:
    case ROLLCALL_EVENT_OTHER:
        break;
    }
}

static const char *fresh_token(void *arg)
{
    struct fixture *fixture = arg;
    fixture->fresh_token_count++;
    return fixture->fresh;
}

/* ---- set-up and time ---- */

static uint16_t fixture_listen(struct fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    fixture->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(fixture->listener, (struct sockaddr *)&address, len), 0);
    assert_return_code(listen(fixture->listener, 4), 0);
    assert_return_code(getsockname(fixture->listener, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

void fixture_open(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->fd = -1;
    virtual_clock = (struct clock){.now_ms = START_MS, .wall_ms = 1770000000000};
    struct rollcall_options options = {.host = "127.0.0.1",
                                       .port = fixture_listen(fixture),
                                       .token = "first",
                                       .device_id = "a phone",
                                       .event = on_event,
                                       .fresh_token = fresh_token,
                                       .arg = fixture};
    fixture->client = rollcall_open(&options);
    if (!fixture->client)
        return;
    fixture->client->read_clock = read_virtual_clock;
    fixture->client->clock = virtual_clock;
    fixture->client->retry_at_ms = START_MS;
    random_init_seeded(&fixture->client->random, 1);
}

void fixture_close(struct fixture *fixture)
{
    rollcall_free(&fixture->client);
    if (fixture->fd >= 0)
        close(fixture->fd);
    close(fixture->listener);
}

int fixture_set_up(void **state)
{
    static struct fixture fixture;
    fixture_open(&fixture);
    *state = &fixture;
    return 0;
}

int fixture_tear_down(void **state)
{
    fixture_close(*state);
    return 0;
}

/* Returns whether data arrives within this real time. */
static bool wait_readable(int fd, int wait_ms)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&waited, 1, wait_ms) > 0;
}

void fixture_process(struct fixture *fixture)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        struct pollfd fd = {.fd = rollcall_fd(fixture->client),
                            .events = rollcall_poll_events(fixture->client)};
        poll(&fd, 1, 0);
        rollcall_process(fixture->client, fd.revents);
        if (!fd.revents && rollcall_wait_ms(fixture->client) != 0)
            return;
    }
}

void fixture_advance_clock(int64_t ms)
{
    virtual_clock.now_ms += ms;
    virtual_clock.wall_ms += ms;
}

void fixture_advance(struct fixture *fixture, int64_t ms)
{
    fixture_advance_clock(ms);
    fixture_process(fixture);
}

/* ---- the server sends ---- */

/* Returns false if the connection ends before its request is complete. */
static bool fixture_read_request(struct fixture *fixture)
{
    size_t len = 0;
    do {
        fixture_process(fixture);
        assert_true(wait_readable(fixture->fd, ARRIVAL_MS));
        ssize_t got =
            recv(fixture->fd, fixture->request + len, sizeof(fixture->request) - len - 1, 0);
        if (got <= 0)
            return false;
        len += (size_t)got;
        fixture->request[len] = '\0';
    } while (!strstr(fixture->request, "\r\n\r\n"));
    return true;
}

void fixture_accept_tcp(struct fixture *fixture)
{
    do {
        if (fixture->fd >= 0)
            close(fixture->fd);
        assert_true(wait_readable(fixture->listener, ARRIVAL_MS));
        fixture->fd = accept(fixture->listener, NULL, NULL);
        fixture->in_len = 0;
    } while (!fixture_read_request(fixture));
}

static void fixture_send_bytes(struct fixture *fixture, const void *data, size_t len)
{
    assert_int_equal(send(fixture->fd, data, len, MSG_NOSIGNAL), len);
    if (wait_readable(rollcall_fd(fixture->client), ARRIVAL_MS))
        fixture_process(fixture);
}

void fixture_send_raw(struct fixture *fixture, const char *text)
{
    fixture_send_bytes(fixture, text, strlen(text));
}

void fixture_accept(struct fixture *fixture)
{
    static const char NAME[] = "Sec-WebSocket-Key: ";
    char accept_key[WEBSOCKET_ACCEPT_BYTES + 1];
    char answer[256];
    fixture_accept_tcp(fixture);
    const char *key = strstr(fixture->request, NAME);
    assert_non_null(key);
    assert_true(websocket_accept_key((struct slice){key + sizeof(NAME) - 1, WEBSOCKET_KEY_BYTES},
                                     accept_key));
    snprintf(answer, sizeof(answer),
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "sec-websocket-accept: %s\r\n\r\n",
             accept_key);
    fixture_send_raw(fixture, answer);
}

void fixture_send_frame(struct fixture *fixture, unsigned opcode, const void *data, size_t len)
{
    static uint8_t frame[FIXTURE_BYTES_MAX];
    size_t head = websocket_header_write(frame, (enum websocket_opcode)opcode, len);
    memcpy(frame + head, data, len);
    fixture_send_bytes(fixture, frame, head + len);
}

void fixture_send(struct fixture *fixture, const char *json)
{
    fixture_send_frame(fixture, WEBSOCKET_OPCODE_TEXT, json, strlen(json));
}

void fixture_sendf(struct fixture *fixture, const char *format, ...)
{
    char json[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(json, sizeof(json), format, arguments);
    va_end(arguments);
    fixture_send(fixture, json);
}

void fixture_establish(struct fixture *fixture)
{
    fixture_send(fixture, "{\"type\":\"connection_established\",\"user_id\":\"alice\","
                          "\"heartbeat_interval_seconds\":5,\"expiry_window_seconds\":15}");
}

void fixture_connect(struct fixture *fixture)
{
    fixture_process(fixture);
    fixture_accept(fixture);
    fixture_establish(fixture);
    fixture_expect(fixture, "heartbeat");
}

void fixture_send_close(struct fixture *fixture, unsigned code)
{
    char payload[WEBSOCKET_CONTROL_BYTES_MAX];
    fixture_send_frame(fixture, WEBSOCKET_OPCODE_CLOSE, payload,
                       websocket_close_write(payload, code, SLICE_NONE));
}

void fixture_hang_up(struct fixture *fixture)
{
    close(fixture->fd);
    fixture->fd = -1;
    assert_true(wait_readable(rollcall_fd(fixture->client), ARRIVAL_MS));
    rollcall_process(fixture->client, POLLIN | POLLHUP);
}

/* ---- the server receives ---- */

/* Unmasks the first frame in `in` into `text`. Returns the frame's length, or 0 if it is not complete. */
static size_t fixture_unmask_frame(struct fixture *fixture, unsigned *opcode)
{
    const uint8_t *in = (const uint8_t *)fixture->in;
    size_t head = 2;
    if (fixture->in_len < head)
        return 0;
    size_t len = in[1] & 0x7f;
    assert_int_equal(in[1] & 0x80, 0x80);
    assert_int_not_equal(len, 127);
    if (len == 126) {
        len = (size_t)in[2] << 8 | in[3];
        head = 4;
    }
    if (fixture->in_len < head + 4 + len)
        return 0;
    for (size_t i = 0; i < len; i++)
        fixture->text[i] = (char)(in[head + 4 + i] ^ in[head + i % 4]);
    fixture->text[len] = '\0';
    *opcode = in[0] & 0x0f;
    return head + 4 + len;
}

static unsigned fixture_next_within(struct fixture *fixture, int wait_ms)
{
    unsigned opcode = 0;
    size_t taken;
    fixture_process(fixture);
    while ((taken = fixture_unmask_frame(fixture, &opcode)) == 0) {
        if (!wait_readable(fixture->fd, wait_ms))
            return 0;
        ssize_t got = recv(fixture->fd, fixture->in + fixture->in_len,
                           sizeof(fixture->in) - fixture->in_len, 0);
        if (got <= 0)
            return 0;
        fixture->in_len += (size_t)got;
    }
    fixture->in_len -= taken;
    memmove(fixture->in, fixture->in + taken, fixture->in_len);
    return opcode;
}

unsigned fixture_next_opcode(struct fixture *fixture)
{
    return fixture_next_within(fixture, ARRIVAL_MS);
}

const char *fixture_next(struct fixture *fixture)
{
    return fixture_next_within(fixture, SILENCE_MS) == WEBSOCKET_OPCODE_TEXT ? fixture->text : NULL;
}

static bool is_type(const char *json, const char *type)
{
    char start[64];
    snprintf(start, sizeof(start), "{\"type\":\"%s\"", type);
    return strncmp(json, start, strlen(start)) == 0;
}

const char *fixture_expect(struct fixture *fixture, const char *type)
{
    do {
        if (fixture_next_opcode(fixture) != WEBSOCKET_OPCODE_TEXT)
            fail_msg("%s did not arrive", type);
    } while (is_type(fixture->text, "heartbeat") && strcmp(type, "heartbeat") != 0);
    if (!is_type(fixture->text, type))
        fail_msg("expected %s, got: %s", type, fixture->text);
    return fixture->text;
}

void fixture_expect_nothing(struct fixture *fixture)
{
    if (fixture_next(fixture))
        fail_msg("unexpected: %s", fixture->text);
}

void fixture_expect_no(struct fixture *fixture, const char *type)
{
    while (fixture_next(fixture))
        assert_false(is_type(fixture->text, type));
}

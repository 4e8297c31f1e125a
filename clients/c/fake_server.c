#include "fake_server.h"

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
    ARRIVAL_MS = 2000, /* real time, for what must come */
    SILENCE_MS = 20,   /* real time, for what must not */
    TURNS_MAX = 100,
};

/* The client's clock has no argument, as the system's has none. */
static struct clock virtual_clock;

static void read_virtual_clock(struct clock *clock)
{
    *clock = virtual_clock;
}

/* ---- the application ---- */

static void note(struct scene *scene, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note(struct scene *scene, const char *format, ...)
{
    size_t len = strlen(scene->log);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(scene->log + len, sizeof(scene->log) - len, format, arguments);
    va_end(arguments);
}

static void on_event(void *arg, const struct rollcall_event *event)
{
    struct scene *scene = arg;
    switch (event->type) {
    case ROLLCALL_EVENT_STATE:
        note(scene, "%s ", rollcall_state_name(event->state));
        if (event->state == ROLLCALL_BACKOFF)
            scene->wait_ms = event->wait_ms;
        snprintf(scene->why, sizeof(scene->why), "%s: %s", event->code, event->text);
        break;
    case ROLLCALL_EVENT_MESSAGE:
        note(scene, "%s ", event->body);
        scene->body_len = event->body_len;
        break;
    case ROLLCALL_EVENT_SENT:
        note(scene, "sent:%s:%lld ", event->client_message_id, (long long)event->sequence);
        break;
    case ROLLCALL_EVENT_REFUSED:
        note(scene, "refused:%s:%s ", event->client_message_id, event->code);
        break;
    case ROLLCALL_EVENT_ERROR:
        note(scene, "error:%s:%s ", event->chat_id, event->code);
        break;
    case ROLLCALL_EVENT_PRESENCE:
    case ROLLCALL_EVENT_OTHER:
        break;
    }
}

static const char *fresh_token(void *arg)
{
    struct scene *scene = arg;
    scene->fresh_asked++;
    return scene->fresh;
}

/* ---- the scene ---- */

static uint16_t listen_somewhere(struct scene *scene)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    scene->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(scene->listener, (struct sockaddr *)&address, len), 0);
    assert_return_code(listen(scene->listener, 4), 0);
    assert_return_code(getsockname(scene->listener, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

void scene_open(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->fd = -1;
    virtual_clock = (struct clock){.now_ms = START_MS, .wall_ms = 1770000000000};
    struct rollcall_options options = {.host = "127.0.0.1",
                                       .port = listen_somewhere(scene),
                                       .token = "first",
                                       .device_id = "a phone",
                                       .event = on_event,
                                       .fresh_token = fresh_token,
                                       .arg = scene};
    scene->client = rollcall_open(&options);
    if (!scene->client)
        return;
    scene->client->read_clock = read_virtual_clock;
    scene->client->clock = virtual_clock;
    scene->client->retry_at_ms = START_MS;
    random_init_seeded(&scene->client->random, 1);
}

void scene_close(struct scene *scene)
{
    rollcall_free(&scene->client);
    if (scene->fd >= 0)
        close(scene->fd);
    close(scene->listener);
}

int scene_set_up(void **state)
{
    static struct scene scene;
    scene_open(&scene);
    *state = &scene;
    return 0;
}

int scene_tear_down(void **state)
{
    scene_close(*state);
    return 0;
}

/* Whether something comes within so long in real time. */
static bool comes(int fd, int wait_ms)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&waited, 1, wait_ms) > 0;
}

void scene_turn(struct scene *scene)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        struct pollfd fd = {.fd = rollcall_fd(scene->client),
                            .events = rollcall_poll_events(scene->client)};
        poll(&fd, 1, 0);
        rollcall_process(scene->client, fd.revents);
        if (!fd.revents && rollcall_wait_ms(scene->client) != 0)
            return;
    }
}

void scene_let_pass(int64_t ms)
{
    virtual_clock.now_ms += ms;
    virtual_clock.wall_ms += ms;
}

void scene_pass(struct scene *scene, int64_t ms)
{
    scene_let_pass(ms);
    scene_turn(scene);
}

/* ---- what the server says ---- */

/* False when the connection ends before its request is whole. */
static bool read_request(struct scene *scene)
{
    size_t len = 0;
    do {
        scene_turn(scene);
        assert_true(comes(scene->fd, ARRIVAL_MS));
        ssize_t got = recv(scene->fd, scene->request + len, sizeof(scene->request) - len - 1, 0);
        if (got <= 0)
            return false;
        len += (size_t)got;
        scene->request[len] = '\0';
    } while (!strstr(scene->request, "\r\n\r\n"));
    return true;
}

void scene_accept_raw(struct scene *scene)
{
    do {
        if (scene->fd >= 0)
            close(scene->fd);
        assert_true(comes(scene->listener, ARRIVAL_MS));
        scene->fd = accept(scene->listener, NULL, NULL);
        scene->in_len = 0;
    } while (!read_request(scene));
}

static void write_bytes(struct scene *scene, const void *data, size_t len)
{
    assert_int_equal(send(scene->fd, data, len, MSG_NOSIGNAL), len);
    if (comes(rollcall_fd(scene->client), ARRIVAL_MS))
        scene_turn(scene);
}

void scene_write(struct scene *scene, const char *text)
{
    write_bytes(scene, text, strlen(text));
}

void scene_accept(struct scene *scene)
{
    static const char NAME[] = "Sec-WebSocket-Key: ";
    char accept_key[WEBSOCKET_ACCEPT_BYTES + 1];
    char answer[256];
    scene_accept_raw(scene);
    const char *key = strstr(scene->request, NAME);
    assert_non_null(key);
    assert_true(websocket_accept_key((struct slice){key + sizeof(NAME) - 1, WEBSOCKET_KEY_BYTES},
                                     accept_key));
    snprintf(answer, sizeof(answer),
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "sec-websocket-accept: %s\r\n\r\n",
             accept_key);
    scene_write(scene, answer);
}

void scene_frame(struct scene *scene, unsigned opcode, const void *data, size_t len)
{
    static uint8_t frame[SCENE_BYTES_MAX];
    size_t head = websocket_header_write(frame, (enum websocket_opcode)opcode, len);
    memcpy(frame + head, data, len);
    write_bytes(scene, frame, head + len);
}

void scene_say(struct scene *scene, const char *json)
{
    scene_frame(scene, WEBSOCKET_OPCODE_TEXT, json, strlen(json));
}

void scene_sayf(struct scene *scene, const char *format, ...)
{
    char json[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(json, sizeof(json), format, arguments);
    va_end(arguments);
    scene_say(scene, json);
}

void scene_establish(struct scene *scene)
{
    scene_say(scene, "{\"type\":\"connection_established\",\"user_id\":\"alice\","
                     "\"heartbeat_interval_seconds\":5,\"expiry_window_seconds\":15}");
}

void scene_connect(struct scene *scene)
{
    scene_turn(scene);
    scene_accept(scene);
    scene_establish(scene);
    scene_expect(scene, "heartbeat");
}

void scene_close_frame(struct scene *scene, unsigned code)
{
    char payload[WEBSOCKET_CONTROL_BYTES_MAX];
    scene_frame(scene, WEBSOCKET_OPCODE_CLOSE, payload,
                websocket_close_write(payload, code, SLICE_NONE));
}

void scene_hang_up(struct scene *scene)
{
    close(scene->fd);
    scene->fd = -1;
    assert_true(comes(rollcall_fd(scene->client), ARRIVAL_MS));
    rollcall_process(scene->client, POLLIN | POLLHUP);
}

/* ---- what the server hears ---- */

/* Length of the whole frame at the front of `in`; 0 when it is not whole. Unmasks into `text`. */
static size_t take_frame(struct scene *scene, unsigned *opcode)
{
    const uint8_t *in = (const uint8_t *)scene->in;
    size_t head = 2;
    if (scene->in_len < head)
        return 0;
    size_t len = in[1] & 0x7f;
    assert_int_equal(in[1] & 0x80, 0x80);
    assert_int_not_equal(len, 127);
    if (len == 126) {
        len = (size_t)in[2] << 8 | in[3];
        head = 4;
    }
    if (scene->in_len < head + 4 + len)
        return 0;
    for (size_t i = 0; i < len; i++)
        scene->text[i] = (char)(in[head + 4 + i] ^ in[head + i % 4]);
    scene->text[len] = '\0';
    *opcode = in[0] & 0x0f;
    return head + 4 + len;
}

static unsigned next_within(struct scene *scene, int wait_ms)
{
    unsigned opcode = 0;
    size_t taken;
    scene_turn(scene);
    while ((taken = take_frame(scene, &opcode)) == 0) {
        if (!comes(scene->fd, wait_ms))
            return 0;
        ssize_t got =
            recv(scene->fd, scene->in + scene->in_len, sizeof(scene->in) - scene->in_len, 0);
        if (got <= 0)
            return 0;
        scene->in_len += (size_t)got;
    }
    scene->in_len -= taken;
    memmove(scene->in, scene->in + taken, scene->in_len);
    return opcode;
}

unsigned scene_next_opcode(struct scene *scene)
{
    return next_within(scene, ARRIVAL_MS);
}

const char *scene_next(struct scene *scene)
{
    return next_within(scene, SILENCE_MS) == WEBSOCKET_OPCODE_TEXT ? scene->text : NULL;
}

static bool is_type(const char *json, const char *type)
{
    char start[64];
    snprintf(start, sizeof(start), "{\"type\":\"%s\"", type);
    return strncmp(json, start, strlen(start)) == 0;
}

const char *scene_expect(struct scene *scene, const char *type)
{
    do {
        if (scene_next_opcode(scene) != WEBSOCKET_OPCODE_TEXT)
            fail_msg("no %s comes", type);
    } while (is_type(scene->text, "heartbeat") && strcmp(type, "heartbeat") != 0);
    if (!is_type(scene->text, type))
        fail_msg("instead of %s: %s", type, scene->text);
    return scene->text;
}

void scene_expect_nothing(struct scene *scene)
{
    if (scene_next(scene))
        fail_msg("unexpected: %s", scene->text);
}

void scene_expect_no(struct scene *scene, const char *type)
{
    while (scene_next(scene))
        assert_false(is_type(scene->text, type));
}

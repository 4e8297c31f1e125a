/* Links over loopback: frames in both directions, authentication, and the end of a link. */
#include "peer/peer_link.h"

#include "net/listener.h"
#include "support/worker_loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON_MS = 30000, LARGE_BYTES = 5 << 20 };
/* What a busy machine may add to a time limit. */
enum { BUSY_MACHINE_MS = 5000 };

/* One end of a link and what its callbacks received. */
struct side {
    struct peer_link *link;
    unsigned opened, frames, closed;
    size_t bytes;
    char name[64];
    char last[64];
    char why[PEER_REASON_TEXT_MAX];
    bool close_when_received;
};

struct fixture {
    struct worker_loop worker;
    struct listener listener;
    struct peer_link_options options;
    struct peer_link_options accepting;
    struct side near, far;
    char address[64];
};

static void on_side_opened(struct peer_link *link, void *arg, struct slice name)
{
    struct side *side = arg;
    (void)link;
    side->opened++;
    snprintf(side->name, sizeof(side->name), "%.*s", SLICE_FORMAT(name));
}

static void on_side_frame(struct peer_link *link, void *arg, struct slice frame)
{
    struct side *side = arg;
    struct slice shown = slice_first(frame, sizeof(side->last) - 1);
    side->frames++;
    side->bytes += frame.len;
    snprintf(side->last, sizeof(side->last), "%.*s", SLICE_FORMAT(shown));
    if (side->close_when_received)
        peer_link_close(link, "closed");
}

static void on_side_closed(struct peer_link *link, void *arg, const char *why)
{
    struct side *side = arg;
    assert_ptr_equal(link, side->link);
    side->link = NULL;
    side->closed++;
    snprintf(side->why, sizeof(side->why), "%s", why);
}

static const struct peer_link_owner owner = {on_side_opened, on_side_frame, on_side_closed};

static void on_accepted(void *arg, int fd)
{
    struct fixture *fixture = arg;
    if (fixture->far.link)
        peer_link_drop(&fixture->far.link);
    fixture->far.link = peer_link_accept(&fixture->accepting, fd, &owner, &fixture->far);
    assert_non_null(fixture->far.link);
}

static int set_up(void **state)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct listener_options listening = {
        .address = "127.0.0.1:0", .accept_queue_max = 16, .unsent_bytes_max = 1 << 16};
    *state = fixture;
    worker_loop_open(&fixture->worker);
    assert_true(listener_open(&fixture->listener, &fixture->worker.loop, &listening, on_accepted,
                              fixture, error));
    snprintf(fixture->address, sizeof(fixture->address), "127.0.0.1:%u", fixture->listener.port);
    fixture->options = (struct peer_link_options){
        .loop = &fixture->worker.loop,
        .streams = &fixture->worker.streams,
        .random = &fixture->worker.random,
        .secret = SLICE("a secret of the installation"),
        .name = SLICE("near"),
    };
    fixture->accepting = fixture->options;
    fixture->accepting.name = SLICE("far");
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    peer_link_drop(&fixture->near.link);
    peer_link_drop(&fixture->far.link);
    listener_close(&fixture->listener);
    peer_link_drop(&fixture->far.link);
    worker_loop_close(&fixture->worker);
    free(fixture);
    return 0;
}

static void dial(struct fixture *fixture)
{
    fixture->near.link =
        peer_link_dial(&fixture->options, fixture->address, &owner, &fixture->near);
    assert_non_null(fixture->near.link);
}

static bool both_open(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->near.opened == 1 && fixture->far.opened == 1;
}

static bool near_closed(void *arg)
{
    return ((struct fixture *)arg)->near.closed == 1;
}

static bool far_closed(void *arg)
{
    return ((struct fixture *)arg)->far.closed == 1;
}

static void until(struct fixture *fixture, bool (*holds)(void *arg))
{
    assert_true(worker_loop_until(&fixture->worker, holds, fixture, SOON_MS));
}

static void open_both(struct fixture *fixture)
{
    dial(fixture);
    until(fixture, both_open);
}

static bool send_text(struct side *side, const char *text)
{
    return peer_link_send(side->link, &(struct slice){text, strlen(text)}, 1);
}

static bool far_has_two(void *arg)
{
    return ((struct fixture *)arg)->far.frames == 2;
}

static bool near_has_one(void *arg)
{
    return ((struct fixture *)arg)->near.frames == 1;
}

static void frames_go_both_ways(void **state)
{
    struct fixture *fixture = *state;
    open_both(fixture);
    assert_string_equal(fixture->near.name, "far");
    assert_string_equal(fixture->far.name, "near");
    struct slice pieces[] = {SLICE("pie"), SLICE_NONE, SLICE("ces")};
    assert_true(send_text(&fixture->near, "hello"));
    assert_true(peer_link_send(fixture->near.link, pieces, 3));
    assert_true(send_text(&fixture->far, "welcome"));
    until(fixture, far_has_two);
    until(fixture, near_has_one);
    assert_string_equal(fixture->far.last, "pieces");
    assert_string_equal(fixture->near.last, "welcome");
}

static bool far_has_large(void *arg)
{
    return ((struct fixture *)arg)->far.bytes == LARGE_BYTES;
}

static void a_large_frame_arrives_complete(void **state)
{
    struct fixture *fixture = *state;
    char *large = calloc(1, LARGE_BYTES);
    open_both(fixture);
    assert_true(peer_link_send(fixture->near.link, &(struct slice){large, LARGE_BYTES}, 1));
    assert_true(peer_link_queued_bytes(fixture->near.link) > LARGE_BYTES);
    until(fixture, far_has_large);
    assert_int_equal(fixture->far.frames, 1);
    free(large);
}

static void the_send_queue_is_bounded(void **state)
{
    struct fixture *fixture = *state;
    char *large = calloc(1, PEER_FRAME_BYTES_MAX + 1);
    struct slice longest = {large, PEER_FRAME_BYTES_MAX};
    open_both(fixture);
    assert_false(
        peer_link_send(fixture->near.link, &(struct slice){large, PEER_FRAME_BYTES_MAX + 1}, 1));
    unsigned taken = 0;
    while (peer_link_send(fixture->near.link, &longest, 1))
        taken++;
    assert_int_equal(taken, PEER_QUEUE_BYTES_MAX / PEER_FRAME_BYTES_MAX - 1);
    assert_true(send_text(&fixture->near, "a small one still fits"));
    free(large);
}

static void a_wrong_secret_is_reported_on_both_sides(void **state)
{
    struct fixture *fixture = *state;
    fixture->options.secret = SLICE("another");
    dial(fixture);
    until(fixture, near_closed);
    until(fixture, far_closed);
    assert_int_equal(fixture->near.opened + fixture->far.opened, 0);
    assert_non_null(strstr(fixture->far.why, "wrong secret"));
    assert_non_null(strstr(fixture->near.why, "peer.secret"));
}

static void a_refused_connection_is_reported(void **state)
{
    struct fixture *fixture = *state;
    listener_close(&fixture->listener);
    dial(fixture);
    until(fixture, near_closed);
    assert_string_equal(fixture->near.why, "Connection refused");
    snprintf(fixture->address, sizeof(fixture->address), "no address");
    fixture->near.closed = 0;
    dial(fixture);
    assert_int_equal(fixture->near.closed, 0); /* never inside peer_link_dial() */
    until(fixture, near_closed);
}

static void closing_is_reported_once_on_each_side(void **state)
{
    struct fixture *fixture = *state;
    open_both(fixture);
    peer_link_close(fixture->near.link, "closed");
    peer_link_close(fixture->near.link, "closed");
    assert_int_equal(fixture->near.closed, 0);
    assert_false(send_text(&fixture->near, "too late"));
    until(fixture, near_closed);
    until(fixture, far_closed);
    assert_string_equal(fixture->near.why, "closed");
}

static void no_frame_follows_a_close_in_a_callback(void **state)
{
    struct fixture *fixture = *state;
    open_both(fixture);
    fixture->far.close_when_received = true;
    assert_true(send_text(&fixture->near, "one") && send_text(&fixture->near, "two"));
    until(fixture, far_closed);
    assert_int_equal(fixture->far.frames, 1);
}

static bool near_has_much(void *arg)
{
    return ((struct fixture *)arg)->near.frames == 3;
}

static void a_paused_link_delivers_its_frames_when_resumed(void **state)
{
    struct fixture *fixture = *state;
    open_both(fixture);
    peer_link_pause(fixture->near.link, true);
    assert_true(send_text(&fixture->far, "1") && send_text(&fixture->far, "2") &&
                send_text(&fixture->far, "3"));
    worker_loop_run(&fixture->worker, 100);
    assert_int_equal(fixture->near.frames, 0);
    peer_link_pause(fixture->near.link, false);
    until(fixture, near_has_much);
}

/* ---- unauthenticated peers ---- */

static int connect_raw(struct fixture *fixture)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(fixture->listener.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void invalid_bytes_close_the_link_at_once(void **state)
{
    struct fixture *fixture = *state;
    int fd = connect_raw(fixture);
    char garbage[200];
    memset(garbage, 'x', sizeof(garbage));
    assert_int_equal(write(fd, garbage, sizeof(garbage)), sizeof(garbage));
    until(fixture, far_closed);
    assert_int_equal(fixture->far.opened, 0);
    assert_int_equal(fixture->far.frames, 0);
    close(fd);
}

static void a_slow_handshake_gets_no_more_time(void **state)
{
    struct fixture *fixture = *state;
    int fd = connect_raw(fixture);
    int64_t begun_us = clock_microseconds();
    for (unsigned i = 0; fixture->far.closed == 0 && i < 300; i++) {
        if (i < 4)
            assert_int_equal(write(fd, "RCPL" + i, 1), 1);
        worker_loop_run(&fixture->worker, 100);
    }
    int64_t took_ms = (clock_microseconds() - begun_us) / 1000;
    assert_int_equal(fixture->far.closed, 1);
    assert_in_range(took_ms, PEER_HANDSHAKE_LIMIT_MS - 10,
                    PEER_HANDSHAKE_LIMIT_MS + BUSY_MACHINE_MS);
    close(fd);
}

/* Connects and completes the handshake; the test then writes raw bytes. */
static int authenticate_raw(struct fixture *fixture)
{
    int fd = connect_raw(fixture);
    struct buffer out = BUFFER_INIT;
    struct peer_handshake handshake;
    char in[512];
    ssize_t got;
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    peer_handshake_begin(&handshake, PEER_DIALS, fixture->options.secret, SLICE("raw"),
                         &fixture->worker.random, &out);
    while (handshake.state != PEER_HANDSHAKE_DONE) {
        assert_int_equal(write(fd, out.data, out.len), out.len);
        buffer_clear(&out);
        while ((got = read(fd, in, sizeof(in))) < 0)
            loop_turn(&fixture->worker.loop, 1);
        peer_handshake_take(&handshake, (struct slice){in, (size_t)got}, &out);
    }
    assert_int_equal(fixture->far.opened, 1);
    buffer_free(&out);
    return fd;
}

static void a_frame_that_is_too_long_closes_the_link(void **state)
{
    struct fixture *fixture = *state;
    int fd = authenticate_raw(fixture);
    assert_int_equal(write(fd, "\xff\xff\xff\xff", 4), 4);
    until(fixture, far_closed);
    assert_string_equal(fixture->far.why, "a frame is too long");
    close(fd);
}

static void a_peer_that_closes_inside_a_frame_is_reported(void **state)
{
    struct fixture *fixture = *state;
    int fd = authenticate_raw(fixture);
    assert_int_equal(write(fd, "\0\0\0\7half", 8), 8);
    close(fd);
    until(fixture, far_closed);
    assert_int_equal(fixture->far.frames, 0);
}

/* ---- time ---- */

static int64_t skipped_ms; /* added to the system time */

static void advance(struct clock *clock)
{
    clock_advance(clock);
    clock->now_ms += skipped_ms;
}

static void pass_time(struct fixture *fixture, int64_t ms)
{
    skipped_ms += ms;
    for (int i = 0; i < 20; i++)
        loop_turn(&fixture->worker.loop, 1);
}

static void an_idle_link_stays_open(void **state)
{
    struct fixture *fixture = *state;
    skipped_ms = 0;
    fixture->worker.loop.advance = advance;
    open_both(fixture);
    for (int i = 0; i < 30; i++)
        pass_time(fixture, 1000);
    assert_int_equal(fixture->near.closed + fixture->far.closed, 0);
    assert_int_equal(fixture->near.frames + fixture->far.frames, 0);
}

static void a_silent_peer_is_cut(void **state)
{
    struct fixture *fixture = *state;
    skipped_ms = 0;
    fixture->worker.loop.advance = advance;
    int fd = authenticate_raw(fixture);
    pass_time(fixture, PEER_SILENCE_MS - 500);
    assert_int_equal(fixture->far.closed, 0);
    pass_time(fixture, PEER_KEEPALIVE_MS);
    assert_int_equal(fixture->far.closed, 1);
    assert_string_equal(fixture->far.why, "the other side is silent");
    close(fd);
}

static void a_peer_that_does_not_read_is_cut(void **state)
{
    struct fixture *fixture = *state;
    char *large = calloc(1, PEER_FRAME_BYTES_MAX);
    skipped_ms = 0;
    fixture->worker.loop.advance = advance;
    int fd = authenticate_raw(fixture);
    assert_true(peer_link_send(fixture->far.link, &(struct slice){large, PEER_FRAME_BYTES_MAX}, 1));
    pass_time(fixture, 0);
    for (int64_t ms = 0; ms < PEER_SILENCE_MS + PEER_KEEPALIVE_MS; ms += 1000) {
        if (fixture->far.closed == 0)
            assert_int_equal(write(fd, "\0\0\0\0", 4), 4); /* a keep-alive */
        pass_time(fixture, 1000);
    }
    assert_int_equal(fixture->far.closed, 1);
    assert_string_equal(fixture->far.why, "the other side does not read");
    free(large);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frames_go_both_ways),
        TEST(a_large_frame_arrives_complete),
        TEST(the_send_queue_is_bounded),
        TEST(a_wrong_secret_is_reported_on_both_sides),
        TEST(a_refused_connection_is_reported),
        TEST(closing_is_reported_once_on_each_side),
        TEST(no_frame_follows_a_close_in_a_callback),
        TEST(a_paused_link_delivers_its_frames_when_resumed),
        TEST(invalid_bytes_close_the_link_at_once),
        TEST(a_slow_handshake_gets_no_more_time),
        TEST(a_frame_that_is_too_long_closes_the_link),
        TEST(a_peer_that_closes_inside_a_frame_is_reported),
        TEST(an_idle_link_stays_open),
        TEST(a_silent_peer_is_cut),
        TEST(a_peer_that_does_not_read_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

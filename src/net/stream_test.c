/* Streams over a socket pair: how bytes come and go, in bounds, and what is called when it ends. */
#include "net/stream.h"

#include "base/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LARGE_BYTES = 1 << 20, IN_BYTES_MAX = 1 << 20 };

/* An owner that keeps what it gets and sends what it is given, in pieces of 1000 bytes. */
struct owner {
    struct stream stream;
    char *in;
    size_t in_len;
    const char *out;
    size_t out_len;
    size_t out_sent;
    unsigned received, gathered, sent, ended, closed;
    bool close_when_received;
};

static struct loop loop;
static struct stream_set set;
static struct owner owner;
static int peer;

static struct owner *owner_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct owner, stream);
}

static void received(struct stream *stream, char *data, size_t len)
{
    struct owner *self = owner_of(stream);
    assert_true(self->in_len + len <= IN_BYTES_MAX);
    memcpy(self->in + self->in_len, data, len);
    self->in_len += len;
    self->received++;
    if (self->close_when_received)
        stream_close(stream);
}

static void ended(struct stream *stream)
{
    owner_of(stream)->ended++;
}

static size_t gather(struct stream *stream, struct iovec *out, size_t max)
{
    struct owner *self = owner_of(stream);
    size_t at = self->out_sent, count = 0;
    self->gathered++;
    for (; count < max && at < self->out_len; count++) {
        size_t len = self->out_len - at < 1000 ? self->out_len - at : 1000;
        out[count] = (struct iovec){(char *)self->out + at, len};
        at += len;
    }
    return count;
}

static bool sent(struct stream *stream, size_t bytes)
{
    struct owner *self = owner_of(stream);
    self->sent++;
    self->out_sent += bytes;
    return self->out_sent < self->out_len;
}

static void closed(struct stream *stream)
{
    owner_of(stream)->closed++;
}

static const struct stream_owner OWNER = {received, ended, gather, sent, closed};

static int open_pair(void **unused)
{
    (void)unused;
    int pair[2];
    memset(&owner, 0, sizeof(owner));
    owner.in = malloc(IN_BYTES_MAX);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0 || !loop_init(&loop) ||
        !stream_set_init(&set, &loop))
        return -1;
    peer = pair[0];
    return stream_open(&owner.stream, &set, &OWNER, pair[1], NULL) ? 0 : -1;
}

static void turn(void)
{
    loop_turn(&loop, 0);
}

static int close_pair(void **unused)
{
    (void)unused;
    stream_close(&owner.stream);
    turn();
    turn();
    assert_int_equal(owner.closed, 1);
    stream_set_free(&set);
    loop_free(&loop);
    close(peer);
    free(owner.in);
    return 0;
}

static void say(const char *text)
{
    assert_int_equal(write(peer, text, strlen(text)), strlen(text));
}

static void give(const char *text, size_t len)
{
    owner.out = text;
    owner.out_len = len;
    owner.out_sent = 0;
    stream_want_write(&owner.stream);
}

static char *make_large(void)
{
    char *large = malloc(LARGE_BYTES);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)(i % 251);
    return large;
}

/* ---- reading ---- */

static void what_the_peer_sends_is_received(void **unused)
{
    (void)unused;
    say("hello");
    turn();
    assert_int_equal(owner.in_len, 5);
    assert_memory_equal(owner.in, "hello", 5);
    turn();
    assert_int_equal(owner.received, 1);
}

static void a_flood_is_read_in_bounds_a_turn_and_the_rest_in_the_next(void **unused)
{
    (void)unused;
    int bytes = 1 << 20;
    char *large = make_large();
    setsockopt(peer, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    ssize_t went = write(peer, large, LARGE_BYTES);
    assert_true(went > 0);
    turn();
    assert_in_range(owner.received, 1, 2 * STREAM_READS_PER_TURN); /* one event, one task */
    while (owner.in_len < (size_t)went) {
        unsigned before = owner.received;
        turn();
        assert_in_range(owner.received - before, 1, 2 * STREAM_READS_PER_TURN);
    }
    assert_memory_equal(owner.in, large, (size_t)went);
    free(large);
}

static void a_paused_stream_waits_and_goes_on(void **unused)
{
    (void)unused;
    stream_pause(&owner.stream, true);
    say("later");
    turn();
    turn();
    assert_int_equal(owner.in_len, 0);
    stream_pause(&owner.stream, false);
    turn();
    assert_int_equal(owner.in_len, 5);
}

static void bytes_before_the_end_are_received_and_the_end_told_once(void **unused)
{
    (void)unused;
    say("last words");
    shutdown(peer, SHUT_WR);
    turn();
    turn();
    assert_int_equal(owner.in_len, 10);
    assert_int_equal(owner.ended, 1);
    assert_false(owner.stream.failed);
    turn();
    assert_int_equal(owner.ended, 1);
}

static void after_the_peer_s_end_words_can_still_be_sent(void **unused)
{
    (void)unused;
    char in[16];
    shutdown(peer, SHUT_WR);
    turn();
    give("goodbye", 7);
    turn();
    assert_int_equal(read(peer, in, sizeof(in)), 7);
}

static void a_stream_closed_from_a_callback_hears_nothing_more(void **unused)
{
    (void)unused;
    int bytes = 1 << 20;
    char *large = make_large();
    owner.close_when_received = true;
    setsockopt(peer, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    assert_true(write(peer, large, LARGE_BYTES) > LOOP_READ_BYTES);
    free(large);
    turn();
    turn();
    assert_int_equal(owner.received, 1);
    assert_int_equal(owner.ended, 0);
    assert_int_equal(owner.closed, 1);
}

/* ---- writing ---- */

static void what_a_turn_produced_leaves_in_one_call(void **unused)
{
    (void)unused;
    char text[3000] = {0}, in[4000];
    for (int i = 0; i < 5; i++)
        give(text, sizeof(text));
    assert_int_equal(owner.gathered, 0);
    turn();
    assert_int_equal(owner.gathered, 1);
    assert_int_equal(owner.sent, 1);
    assert_int_equal(read(peer, in, sizeof(in)), sizeof(text));
}

static void what_the_socket_does_not_take_goes_when_it_does(void **unused)
{
    (void)unused;
    char *large = make_large();
    static char in[LARGE_BYTES];
    size_t in_len = 0;
    give(large, LARGE_BYTES);
    for (int turns = 0; in_len < LARGE_BYTES && turns < 10000; turns++) {
        turn();
        ssize_t got = read(peer, in + in_len, sizeof(in) - in_len);
        in_len += got > 0 ? (size_t)got : 0;
    }
    assert_int_equal(in_len, LARGE_BYTES);
    assert_memory_equal(in, large, LARGE_BYTES);
    free(large);
}

static void a_full_socket_is_not_tried_again_and_again(void **unused)
{
    (void)unused;
    char *large = make_large();
    give(large, LARGE_BYTES);
    do
        turn();
    while (owner.stream.writable);
    unsigned gathered = owner.gathered;
    for (int i = 0; i < 10; i++)
        turn();
    assert_int_equal(owner.gathered, gathered);
    free(large);
}

static void flushing_sends_within_the_turn(void **unused)
{
    (void)unused;
    char in[16];
    give("now", 3);
    stream_flush(&owner.stream);
    assert_int_equal(read(peer, in, sizeof(in)), 3);
}

static void writing_to_a_peer_that_has_gone_ends_it(void **unused)
{
    (void)unused;
    close(peer);
    stream_pause(&owner.stream, true); /* so that only writing can tell */
    give("anybody there?", 14);
    turn();
    turn();
    assert_int_equal(owner.ended, 1);
    assert_true(owner.stream.failed);
    assert_int_equal(owner.sent, 0);
    give("really?", 7);
    turn();
    assert_int_equal(owner.ended, 1);
    peer = dup(0);
}

/* ---- ending and moving ---- */

static void after_a_shutdown_the_peer_sees_the_end_and_is_still_heard(void **unused)
{
    (void)unused;
    char in[16];
    give("the end", 7);
    turn();
    stream_shutdown(&owner.stream);
    assert_int_equal(read(peer, in, sizeof(in)), 7);
    assert_int_equal(read(peer, in, sizeof(in)), 0);
    say("one more thing");
    turn();
    assert_int_equal(owner.in_len, 14);
}

static void a_stream_moves_with_what_it_has_not_read(void **unused)
{
    (void)unused;
    static struct owner heir;
    char in[16];
    memset(&heir, 0, sizeof(heir));
    heir.in = malloc(IN_BYTES_MAX);
    stream_pause(&owner.stream, true);
    say("for the heir");
    turn();
    assert_true(stream_move(&heir.stream, &owner.stream, &OWNER));
    turn();
    turn();
    assert_int_equal(owner.closed, 1); /* without the socket */
    assert_int_equal(owner.in_len, 0);
    assert_int_equal(heir.in_len, 12);
    heir.out = "thanks";
    heir.out_len = 6;
    stream_want_write(&heir.stream);
    turn();
    assert_int_equal(read(peer, in, sizeof(in)), 6);
    stream_close(&heir.stream);
    turn();
    turn();
    assert_int_equal(heir.closed, 1);
    assert_int_equal(read(peer, in, sizeof(in)), 0);
    free(heir.in);
}

/* To another loop, as between two workers. */
static void a_detached_socket_goes_on_in_another_loop(void **unused)
{
    (void)unused;
    static struct owner heir;
    static struct loop other;
    struct stream_set other_set;
    struct tls_session *tls = NULL;
    int fd = -1;
    memset(&heir, 0, sizeof(heir));
    heir.in = malloc(IN_BYTES_MAX);
    assert_true(loop_init(&other) && stream_set_init(&other_set, &other));
    stream_pause(&owner.stream, true);
    say("before");
    turn();
    assert_true(stream_detach(&owner.stream, &fd, &tls));
    assert_false(stream_detach(&owner.stream, &fd, &tls));
    say(" and after");
    turn();
    turn();
    assert_int_equal(owner.closed, 1); /* without the socket */
    assert_int_equal(owner.in_len, 0);
    assert_true(stream_open_moved(&heir.stream, &other_set, &OWNER, fd, tls));
    loop_turn(&other, 0);
    assert_int_equal(heir.in_len, strlen("before and after"));
    stream_close(&heir.stream);
    loop_turn(&other, 0);
    loop_turn(&other, 0);
    assert_int_equal(heir.closed, 1);
    free(heir.in);
    stream_set_free(&other_set);
    loop_free(&other);
}

static void a_stream_that_is_closing_does_not_move(void **unused)
{
    (void)unused;
    struct owner heir = {0};
    stream_close(&owner.stream);
    assert_false(stream_move(&heir.stream, &owner.stream, &OWNER));
}

static void closing_twice_is_closing_once(void **unused)
{
    (void)unused;
    stream_close(&owner.stream);
    stream_close(&owner.stream);
    turn();
    turn();
    assert_int_equal(owner.closed, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
    const struct CMUnitTest tests[] = {
        TEST(what_the_peer_sends_is_received),
        TEST(a_flood_is_read_in_bounds_a_turn_and_the_rest_in_the_next),
        TEST(a_paused_stream_waits_and_goes_on),
        TEST(bytes_before_the_end_are_received_and_the_end_told_once),
        TEST(after_the_peer_s_end_words_can_still_be_sent),
        TEST(a_stream_closed_from_a_callback_hears_nothing_more),
        TEST(what_a_turn_produced_leaves_in_one_call),
        TEST(what_the_socket_does_not_take_goes_when_it_does),
        TEST(a_full_socket_is_not_tried_again_and_again),
        TEST(flushing_sends_within_the_turn),
        TEST(writing_to_a_peer_that_has_gone_ends_it),
        TEST(after_a_shutdown_the_peer_sees_the_end_and_is_still_heard),
        TEST(a_stream_moves_with_what_it_has_not_read),
        TEST(a_detached_socket_goes_on_in_another_loop),
        TEST(a_stream_that_is_closing_does_not_move),
        TEST(closing_twice_is_closing_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

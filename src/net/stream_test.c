/* Streams over a socket pair: reading and writing within bounds, and the callbacks at the end. */
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

/* Keeps received bytes, and sends `out` in pieces of 1000 bytes. */
struct owner {
    struct stream stream;
    char *in;
    size_t in_len;
    const char *out;
    size_t out_len;
    size_t out_sent;
    unsigned received, gathered, sent, ended, closed;
    bool close_on_bytes;
};

static struct loop loop;
static struct stream_set set;
static struct owner owner;
static int other_side;

static struct owner *owner_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct owner, stream);
}

static void on_bytes(struct stream *stream, char *data, size_t len)
{
    struct owner *self = owner_of(stream);
    assert_true(self->in_len + len <= IN_BYTES_MAX);
    memcpy(self->in + self->in_len, data, len);
    self->in_len += len;
    self->received++;
    if (self->close_on_bytes)
        stream_close(stream);
}

static void on_ended(struct stream *stream)
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

static bool on_sent(struct stream *stream, size_t bytes)
{
    struct owner *self = owner_of(stream);
    self->sent++;
    self->out_sent += bytes;
    return self->out_sent < self->out_len;
}

static void on_closed(struct stream *stream)
{
    owner_of(stream)->closed++;
}

static const struct stream_owner OWNER = {on_bytes, on_ended, gather, on_sent, on_closed};

static int open_pair(void **unused)
{
    (void)unused;
    int pair[2];
    memset(&owner, 0, sizeof(owner));
    owner.in = malloc(IN_BYTES_MAX);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0 || !loop_init(&loop) ||
        !stream_set_init(&set, &loop))
        return -1;
    other_side = pair[0];
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
    close(other_side);
    free(owner.in);
    return 0;
}

static void write_from_other_side(const char *text)
{
    assert_int_equal(write(other_side, text, strlen(text)), strlen(text));
}

static void write_to_other_side(const char *text, size_t len)
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

static void bytes_of_the_other_side_are_received(void **unused)
{
    (void)unused;
    write_from_other_side("hello");
    turn();
    assert_int_equal(owner.in_len, 5);
    assert_memory_equal(owner.in, "hello", 5);
    turn();
    assert_int_equal(owner.received, 1);
}

static void reads_per_turn_are_bounded(void **unused)
{
    (void)unused;
    int bytes = 1 << 20;
    char *large = make_large();
    setsockopt(other_side, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    ssize_t written = write(other_side, large, LARGE_BYTES);
    assert_true(written > 0);
    turn();
    assert_in_range(owner.received, 1, 2 * STREAM_READS_PER_TURN); /* one event, one task */
    while (owner.in_len < (size_t)written) {
        unsigned before = owner.received;
        turn();
        assert_in_range(owner.received - before, 1, 2 * STREAM_READS_PER_TURN);
    }
    assert_memory_equal(owner.in, large, (size_t)written);
    free(large);
}

static void paused_stream_reads_after_resuming(void **unused)
{
    (void)unused;
    stream_pause(&owner.stream, true);
    write_from_other_side("later");
    turn();
    turn();
    assert_int_equal(owner.in_len, 0);
    stream_pause(&owner.stream, false);
    turn();
    assert_int_equal(owner.in_len, 5);
}

static void bytes_before_the_end_are_received_and_end_is_reported_once(void **unused)
{
    (void)unused;
    write_from_other_side("last text");
    shutdown(other_side, SHUT_WR);
    turn();
    turn();
    assert_int_equal(owner.in_len, 9);
    assert_int_equal(owner.ended, 1);
    assert_false(owner.stream.failed);
    turn();
    assert_int_equal(owner.ended, 1);
}

static void bytes_can_be_sent_after_the_other_side_ended(void **unused)
{
    (void)unused;
    char in[16];
    shutdown(other_side, SHUT_WR);
    turn();
    write_to_other_side("goodbye", 7);
    turn();
    assert_int_equal(read(other_side, in, sizeof(in)), 7);
}

static void stream_closed_in_a_callback_gets_no_more_callbacks(void **unused)
{
    (void)unused;
    int bytes = 1 << 20;
    char *large = make_large();
    owner.close_on_bytes = true;
    setsockopt(other_side, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    assert_true(write(other_side, large, LARGE_BYTES) > LOOP_READ_BYTES);
    free(large);
    turn();
    turn();
    assert_int_equal(owner.received, 1);
    assert_int_equal(owner.ended, 0);
    assert_int_equal(owner.closed, 1);
}

/* ---- writing ---- */

static void bytes_of_a_turn_are_sent_in_one_write(void **unused)
{
    (void)unused;
    char text[3000] = {0}, in[4000];
    for (int i = 0; i < 5; i++)
        write_to_other_side(text, sizeof(text));
    assert_int_equal(owner.gathered, 0);
    turn();
    assert_int_equal(owner.gathered, 1);
    assert_int_equal(owner.sent, 1);
    assert_int_equal(read(other_side, in, sizeof(in)), sizeof(text));
}

static void rest_is_sent_when_the_socket_is_writable_again(void **unused)
{
    (void)unused;
    char *large = make_large();
    static char in[LARGE_BYTES];
    size_t in_len = 0;
    write_to_other_side(large, LARGE_BYTES);
    for (int turns = 0; in_len < LARGE_BYTES && turns < 10000; turns++) {
        turn();
        ssize_t got = read(other_side, in + in_len, sizeof(in) - in_len);
        in_len += got > 0 ? (size_t)got : 0;
    }
    assert_int_equal(in_len, LARGE_BYTES);
    assert_memory_equal(in, large, LARGE_BYTES);
    free(large);
}

static void full_socket_is_not_retried_until_writable(void **unused)
{
    (void)unused;
    char *large = make_large();
    write_to_other_side(large, LARGE_BYTES);
    do
        turn();
    while (owner.stream.writable);
    unsigned gathered = owner.gathered;
    for (int i = 0; i < 10; i++)
        turn();
    assert_int_equal(owner.gathered, gathered);
    free(large);
}

static void flush_sends_within_the_turn(void **unused)
{
    (void)unused;
    char in[16];
    write_to_other_side("now", 3);
    stream_flush(&owner.stream);
    assert_int_equal(read(other_side, in, sizeof(in)), 3);
}

static void write_to_a_closed_other_side_ends_the_stream(void **unused)
{
    (void)unused;
    close(other_side);
    stream_pause(&owner.stream, true); /* so that only writing detects it */
    write_to_other_side("anybody there?", 14);
    turn();
    turn();
    assert_int_equal(owner.ended, 1);
    assert_true(owner.stream.failed);
    assert_int_equal(owner.sent, 0);
    write_to_other_side("really?", 7);
    turn();
    assert_int_equal(owner.ended, 1);
    other_side = dup(0);
}

/* ---- ending and moving ---- */

static void shutdown_sends_the_end_and_still_receives(void **unused)
{
    (void)unused;
    char in[16];
    write_to_other_side("the end", 7);
    turn();
    stream_shutdown(&owner.stream);
    assert_int_equal(read(other_side, in, sizeof(in)), 7);
    assert_int_equal(read(other_side, in, sizeof(in)), 0);
    write_from_other_side("one more thing");
    turn();
    assert_int_equal(owner.in_len, 14);
}

static void moved_stream_keeps_unread_bytes(void **unused)
{
    (void)unused;
    static struct owner target;
    char in[16];
    memset(&target, 0, sizeof(target));
    target.in = malloc(IN_BYTES_MAX);
    stream_pause(&owner.stream, true);
    write_from_other_side("for another");
    turn();
    assert_true(stream_move(&target.stream, &owner.stream, &OWNER));
    turn();
    turn();
    assert_int_equal(owner.closed, 1); /* without the socket */
    assert_int_equal(owner.in_len, 0);
    assert_int_equal(target.in_len, 11);
    target.out = "thanks";
    target.out_len = 6;
    stream_want_write(&target.stream);
    turn();
    assert_int_equal(read(other_side, in, sizeof(in)), 6);
    stream_close(&target.stream);
    turn();
    turn();
    assert_int_equal(target.closed, 1);
    assert_int_equal(read(other_side, in, sizeof(in)), 0);
    free(target.in);
}

/* Another loop, as between two workers. */
static void detached_socket_continues_in_another_loop(void **unused)
{
    (void)unused;
    static struct owner target;
    static struct loop other;
    struct stream_set other_set;
    struct tls_connection *tls = NULL;
    int fd = -1;
    memset(&target, 0, sizeof(target));
    target.in = malloc(IN_BYTES_MAX);
    assert_true(loop_init(&other) && stream_set_init(&other_set, &other));
    stream_pause(&owner.stream, true);
    write_from_other_side("before");
    turn();
    assert_true(stream_detach(&owner.stream, &fd, &tls));
    assert_false(stream_detach(&owner.stream, &fd, &tls));
    write_from_other_side(" and after");
    turn();
    turn();
    assert_int_equal(owner.closed, 1); /* without the socket */
    assert_int_equal(owner.in_len, 0);
    assert_true(stream_open_moved(&target.stream, &other_set, &OWNER, fd, tls));
    loop_turn(&other, 0);
    assert_int_equal(target.in_len, strlen("before and after"));
    stream_close(&target.stream);
    loop_turn(&other, 0);
    loop_turn(&other, 0);
    assert_int_equal(target.closed, 1);
    free(target.in);
    stream_set_free(&other_set);
    loop_free(&other);
}

static void closing_stream_cannot_be_moved(void **unused)
{
    (void)unused;
    struct owner target = {0};
    stream_close(&owner.stream);
    assert_false(stream_move(&target.stream, &owner.stream, &OWNER));
}

static void closing_twice_reports_closed_once(void **unused)
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
        TEST(bytes_of_the_other_side_are_received),
        TEST(reads_per_turn_are_bounded),
        TEST(paused_stream_reads_after_resuming),
        TEST(bytes_before_the_end_are_received_and_end_is_reported_once),
        TEST(bytes_can_be_sent_after_the_other_side_ended),
        TEST(stream_closed_in_a_callback_gets_no_more_callbacks),
        TEST(bytes_of_a_turn_are_sent_in_one_write),
        TEST(rest_is_sent_when_the_socket_is_writable_again),
        TEST(full_socket_is_not_retried_until_writable),
        TEST(flush_sends_within_the_turn),
        TEST(write_to_a_closed_other_side_ends_the_stream),
        TEST(shutdown_sends_the_end_and_still_receives),
        TEST(moved_stream_keeps_unread_bytes),
        TEST(detached_socket_continues_in_another_loop),
        TEST(closing_stream_cannot_be_moved),
        TEST(closing_twice_reports_closed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

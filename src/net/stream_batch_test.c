/* Streams that share system calls: the bytes of a turn are sent exactly once, whatever one stream does meanwhile. */
#include "net/stream.h"

#include "base/container.h"
#include "net/send_batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* More than one batch; with two descriptors each they are fewer than the usual limit of 1,024. */
enum { OWNERS = SEND_BATCH_MAX + 150, TEXT_BYTES = 16 };

struct owner {
    struct stream stream;
    int other_side;
    char text[TEXT_BYTES];
    size_t left; /* of the text, from its start on */
    size_t pieces;
    unsigned writes, empty_writes, ended, closed;
    void (*then)(struct owner *self); /* runs once in on_sent() */
};

static struct loop loop;
static struct stream_set set;
static struct owner *owners;

static struct owner *owner_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct owner, stream);
}

static void on_bytes(struct stream *stream, char *data, size_t len)
{
    (void)stream, (void)data, (void)len;
}

static void on_ended(struct stream *stream)
{
    owner_of(stream)->ended++;
}

static size_t gather(struct stream *stream, struct iovec *out, size_t max)
{
    struct owner *self = owner_of(stream);
    if (self->left == 0)
        return 0;
    size_t count = self->pieces < max ? self->pieces : max;
    size_t each = self->left / self->pieces;
    for (size_t i = 0; i < count; i++)
        out[i] = (struct iovec){self->text + i * each,
                                i + 1 < self->pieces ? each : self->left - i * each};
    return count;
}

static bool on_sent(struct stream *stream, size_t bytes)
{
    struct owner *self = owner_of(stream);
    assert_true(bytes == 0 || bytes == self->left);
    self->writes++;
    self->empty_writes += bytes == 0;
    self->left -= bytes;
    if (self->then)
        self->then(self);
    return self->left > 0;
}

static void on_closed(struct stream *stream)
{
    owner_of(stream)->closed++;
}

static const struct stream_owner OWNER = {on_bytes, on_ended,  gather,
                                          on_sent,  on_closed, .batched = true};

static bool open_streams(void)
{
    owners = calloc(OWNERS, sizeof(*owners));
    if (!owners || !loop_init(&loop) || !stream_set_init(&set, &loop) ||
        !stream_set_use_batches(&set))
        return false;
    for (size_t i = 0; i < OWNERS; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
            return false;
        owners[i].other_side = pair[0];
        owners[i].pieces = 1;
        if (!stream_open(&owners[i].stream, &set, &OWNER, pair[1], NULL))
            return false;
    }
    return true;
}

static int open_all(void **unused)
{
    (void)unused;
    if (open_streams())
        return 0;
    close_range(STDERR_FILENO + 1, ~0U, 0); /* the leak checker hangs without a free descriptor */
    return -1;
}

static int close_all(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < OWNERS; i++)
        stream_close(&owners[i].stream);
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++) {
        assert_int_equal(owners[i].closed, 1);
        close(owners[i].other_side);
    }
    stream_set_free(&set);
    loop_free(&loop);
    free(owners);
    return 0;
}

/* Makes enough turns to report the readiness of every stream. */
static void turn_for_all(void)
{
    for (int i = 0; i <= OWNERS / LOOP_EVENTS_MAX + 1; i++)
        loop_turn(&loop, 0);
}

static void write_text(struct owner *owner)
{
    owner->left = (size_t)snprintf(owner->text, TEXT_BYTES, "text %zu", (size_t)(owner - owners));
    stream_want_write(&owner->stream);
}

static void write_all(void)
{
    for (size_t i = 0; i < OWNERS; i++)
        write_text(&owners[i]);
}

/* Returns everything that the other side received. */
static const char *read_other_side(const struct owner *owner)
{
    static char text[1024];
    ssize_t got = read(owner->other_side, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static void expect_received_once(const struct owner *owner)
{
    assert_int_equal(owner->left, 0);
    assert_string_equal(read_other_side(owner), owner->text);
}

static void all_streams_are_written_in_one_turn(void **state)
{
    (void)state;
    write_all();
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++) {
        expect_received_once(&owners[i]);
        assert_int_equal(owners[i].writes, 1);
    }
}

static void streams_with_several_pieces_are_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < OWNERS; i += 3)
        owners[i].pieces = 2 + i % 2;
    write_all();
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++)
        expect_received_once(&owners[i]);
}

static void fill(struct owner *owner)
{
    char bytes[4096] = {0};
    while (send(owner->stream.source.fd, bytes, sizeof(bytes), 0) > 0)
        ;
}

static void read_all(const struct owner *owner)
{
    char bytes[4096];
    while (read(owner->other_side, bytes, sizeof(bytes)) > 0)
        ;
}

static void full_socket_does_not_delay_the_others(void **state)
{
    (void)state;
    struct owner *full = &owners[OWNERS / 2];
    fill(full);
    turn_for_all();
    write_all();
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++)
        if (&owners[i] != full)
            expect_received_once(&owners[i]);
    assert_true(full->left > 0);
    assert_int_equal(full->empty_writes, 1); /* so that its owner may change the gathered bytes */
    read_all(full);
    turn_for_all();
    expect_received_once(full);
}

static void lost_other_side_ends_only_its_own_stream(void **state)
{
    (void)state;
    struct owner *lone = &owners[7];
    shutdown(lone->other_side, SHUT_RDWR);
    write_all();
    turn_for_all();
    for (size_t i = 0; i < OWNERS; i++)
        if (&owners[i] != lone)
            expect_received_once(&owners[i]);
    assert_int_equal(lone->ended, 1);
}

static void flush_all_once(struct owner *self)
{
    self->then = NULL;
    for (size_t i = 0; i < OWNERS; i++)
        stream_flush(&owners[i].stream);
}

static void flush_does_not_send_gathered_bytes_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < OWNERS; i += 50)
        owners[i].then = flush_all_once;
    write_all();
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++)
        expect_received_once(&owners[i]);
}

static void close_others_once(struct owner *self)
{
    self->then = NULL;
    for (size_t i = 0; i < OWNERS; i++)
        if (&owners[i] != self)
            stream_close(&owners[i].stream);
}

static void stream_may_close_the_others_while_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < OWNERS; i++)
        owners[i].then = close_others_once;
    write_all();
    loop_turn(&loop, 0);
    loop_turn(&loop, 0);
    unsigned writes = 0, closed = 0;
    for (size_t i = 0; i < OWNERS; i++) {
        writes += owners[i].writes;
        closed += owners[i].closed;
    }
    assert_int_equal(writes, 1);
    assert_int_equal(closed, OWNERS - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_streams_are_written_in_one_turn),
        TEST(streams_with_several_pieces_are_written),
        TEST(full_socket_does_not_delay_the_others),
        TEST(lost_other_side_ends_only_its_own_stream),
        TEST(flush_does_not_send_gathered_bytes_again),
        TEST(stream_may_close_the_others_while_written),
    };
    return cmocka_run_group_tests_name("stream_batch", tests, NULL, NULL);
}

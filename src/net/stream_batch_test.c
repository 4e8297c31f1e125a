/* Streams that share calls: all that a turn produced leaves, once, whatever one of them does meanwhile. */
#include "net/stream.h"

#include "base/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { OWNERS = 600 /* more than two calls' worth */, TEXT_BYTES = 16 };

struct owner {
    struct stream stream;
    int peer;
    char text[TEXT_BYTES];
    size_t left; /* of the text, from its start on */
    size_t pieces;
    unsigned sent_calls, sent_nothing, ended, closed;
    void (*when_sent)(struct owner *self);
};

static struct loop loop;
static struct stream_set set;
static struct owner *owners;

static struct owner *owner_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct owner, stream);
}

static void received(struct stream *stream, char *data, size_t len)
{
    (void)stream, (void)data, (void)len;
}

static void ended(struct stream *stream)
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

static bool sent(struct stream *stream, size_t bytes)
{
    struct owner *self = owner_of(stream);
    assert_true(bytes == 0 || bytes == self->left);
    self->sent_calls++;
    self->sent_nothing += bytes == 0;
    self->left -= bytes;
    if (self->when_sent)
        self->when_sent(self);
    return self->left > 0;
}

static void closed(struct stream *stream)
{
    owner_of(stream)->closed++;
}

static const struct stream_owner OWNER = {received, ended, gather, sent, closed, .batched = true};

static int open_all(void **unused)
{
    (void)unused;
    owners = calloc(OWNERS, sizeof(*owners));
    if (!owners || !loop_init(&loop) || !stream_set_init(&set, &loop) ||
        !stream_set_use_batches(&set))
        return -1;
    for (size_t i = 0; i < OWNERS; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
            return -1;
        owners[i].peer = pair[0];
        owners[i].pieces = 1;
        if (!stream_open(&owners[i].stream, &set, &OWNER, pair[1], NULL))
            return -1;
    }
    return 0;
}

static int close_all(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < OWNERS; i++)
        stream_close(&owners[i].stream);
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++) {
        assert_int_equal(owners[i].closed, 1);
        close(owners[i].peer);
    }
    stream_set_free(&set);
    loop_free(&loop);
    free(owners);
    return 0;
}

/* As many as it takes until each stream's readiness was told. */
static void turn_often(void)
{
    for (int i = 0; i <= OWNERS / LOOP_EVENTS_MAX + 1; i++)
        loop_turn(&loop, 0);
}

static void give(struct owner *owner)
{
    owner->left = (size_t)snprintf(owner->text, TEXT_BYTES, "text %zu", (size_t)(owner - owners));
    stream_want_write(&owner->stream);
}

static void give_all(void)
{
    for (size_t i = 0; i < OWNERS; i++)
        give(&owners[i]);
}

/* Everything its peer has got. */
static const char *heard(const struct owner *owner)
{
    static char text[1024];
    ssize_t got = read(owner->peer, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static void assert_heard_once(const struct owner *owner)
{
    assert_int_equal(owner->left, 0);
    assert_string_equal(heard(owner), owner->text);
}

static void all_leave_in_one_turn(void **state)
{
    (void)state;
    give_all();
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++) {
        assert_heard_once(&owners[i]);
        assert_int_equal(owners[i].sent_calls, 1);
    }
}

static void several_pieces_leave_as_well(void **state)
{
    (void)state;
    for (size_t i = 0; i < OWNERS; i += 3)
        owners[i].pieces = 2 + i % 2;
    give_all();
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++)
        assert_heard_once(&owners[i]);
}

static void fill(struct owner *owner)
{
    char bytes[4096] = {0};
    while (send(owner->stream.source.fd, bytes, sizeof(bytes), 0) > 0)
        ;
}

static void drain(const struct owner *owner)
{
    char bytes[4096];
    while (read(owner->peer, bytes, sizeof(bytes)) > 0)
        ;
}

static void a_full_socket_waits_and_keeps_nobody_back(void **state)
{
    (void)state;
    struct owner *full = &owners[OWNERS / 2];
    fill(full);
    turn_often();
    give_all();
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++)
        if (&owners[i] != full)
            assert_heard_once(&owners[i]);
    assert_true(full->left > 0);
    assert_int_equal(full->sent_nothing, 1); /* so that its owner may change what waits */
    drain(full);
    turn_often();
    assert_heard_once(full);
}

static void a_peer_that_is_gone_ends_only_its_own(void **state)
{
    (void)state;
    struct owner *lone = &owners[7];
    shutdown(lone->peer, SHUT_RDWR);
    give_all();
    turn_often();
    for (size_t i = 0; i < OWNERS; i++)
        if (&owners[i] != lone)
            assert_heard_once(&owners[i]);
    assert_int_equal(lone->ended, 1);
}

static void flush_all(struct owner *self)
{
    self->when_sent = NULL;
    for (size_t i = 0; i < OWNERS; i++)
        stream_flush(&owners[i].stream);
}

static void what_is_with_the_kernel_is_not_sent_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < OWNERS; i += 50)
        owners[i].when_sent = flush_all;
    give_all();
    loop_turn(&loop, 0);
    for (size_t i = 0; i < OWNERS; i++)
        assert_heard_once(&owners[i]);
}

static void close_others(struct owner *self)
{
    self->when_sent = NULL;
    for (size_t i = 0; i < OWNERS; i++)
        if (&owners[i] != self)
            stream_close(&owners[i].stream);
}

static void one_may_close_the_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < OWNERS; i++)
        owners[i].when_sent = close_others;
    give_all();
    loop_turn(&loop, 0);
    loop_turn(&loop, 0);
    unsigned told = 0, gone = 0;
    for (size_t i = 0; i < OWNERS; i++) {
        told += owners[i].sent_calls;
        gone += owners[i].closed;
    }
    assert_int_equal(told, 1);
    assert_int_equal(gone, OWNERS - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_leave_in_one_turn),
        TEST(several_pieces_leave_as_well),
        TEST(a_full_socket_waits_and_keeps_nobody_back),
        TEST(a_peer_that_is_gone_ends_only_its_own),
        TEST(what_is_with_the_kernel_is_not_sent_again),
        TEST(one_may_close_the_others),
    };
    return cmocka_run_group_tests_name("stream_batch", tests, NULL, NULL);
}

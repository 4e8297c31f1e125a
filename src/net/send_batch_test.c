/* Many sends in one system call: each succeeds or fails on its own, with and without io_uring. */
#include "net/send_batch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT_BYTES = 16 };

struct pairs {
    struct send_batch *batch;
    int theirs[SEND_BATCH_MAX];
    char texts[SEND_BATCH_MAX][TEXT_BYTES];
    struct send sends[SEND_BATCH_MAX];
};

/* Without descriptors the kernel makes no ring. */
static struct send_batch *make_without_ring(void)
{
    struct rlimit usual, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct send_batch *batch = send_batch_make();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_false(send_batch_is_native(batch));
    return batch;
}

/* Whether the current test uses io_uring. */
static bool with_ring;

static int use_ring(void **unused)
{
    (void)unused;
    with_ring = true;
    return 0;
}

static int use_no_ring(void **unused)
{
    (void)unused;
    with_ring = false;
    return 0;
}

static void open_pairs(struct pairs *pairs)
{
    pairs->batch = with_ring ? send_batch_make() : make_without_ring();
    assert_non_null(pairs->batch);
    for (size_t i = 0; i < SEND_BATCH_MAX; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        int len = snprintf(pairs->texts[i], TEXT_BYTES, "message %zu", i);
        pairs->theirs[i] = pair[1];
        pairs->sends[i] =
            (struct send){.fd = pair[0], .data = pairs->texts[i], .len = (size_t)len, .result = -1};
    }
}

static void close_pairs(struct pairs *pairs)
{
    for (size_t i = 0; i < SEND_BATCH_MAX; i++) {
        close(pairs->sends[i].fd);
        close(pairs->theirs[i]);
    }
    send_batch_free(&pairs->batch);
    assert_null(pairs->batch);
}

static void expect_arrived(const struct pairs *pairs, size_t i)
{
    char text[TEXT_BYTES];
    assert_int_equal(pairs->sends[i].result, pairs->sends[i].len);
    assert_int_equal(read(pairs->theirs[i], text, sizeof(text)), pairs->sends[i].len);
    assert_memory_equal(text, pairs->texts[i], pairs->sends[i].len);
    assert_int_equal(read(pairs->theirs[i], text, sizeof(text)), -1); /* only once */
}

static void batches_of_any_size_arrive(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 3, 4, 5, SEND_BATCH_MAX - 1, SEND_BATCH_MAX};
    struct pairs pairs;
    open_pairs(&pairs);
    for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
        send_batch_run(pairs.batch, pairs.sends, counts[n]);
        for (size_t i = 0; i < counts[n]; i++)
            expect_arrived(&pairs, i);
    }
    close_pairs(&pairs);
}

static void fill(int fd)
{
    char bytes[4096] = {0};
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
}

static void failed_send_does_not_affect_the_others(void **state)
{
    (void)state;
    struct pairs pairs;
    open_pairs(&pairs);
    int full = 3, closed = 5, no_socket = 7;
    fill(pairs.sends[full].fd);
    close(pairs.theirs[closed]);
    int fd = pairs.sends[no_socket].fd;
    pairs.sends[no_socket].fd = -1;
    send_batch_run(pairs.batch, pairs.sends, SEND_BATCH_MAX);
    assert_int_equal(pairs.sends[full].result, -EAGAIN);
    assert_int_equal(pairs.sends[closed].result, -EPIPE);
    assert_int_equal(pairs.sends[no_socket].result, -EBADF);
    pairs.sends[no_socket].fd = fd;
    for (int i = 0; i < SEND_BATCH_MAX; i++)
        if (i != full && i != closed && i != no_socket)
            expect_arrived(&pairs, (size_t)i);
    pairs.theirs[closed] = dup(pairs.theirs[0]);
    close_pairs(&pairs);
}

/* The result is the number of bytes that the socket took. */
static void partial_send_is_reported(void **state)
{
    (void)state;
    static char large[8 << 20];
    struct pairs pairs;
    open_pairs(&pairs);
    pairs.sends[2] = (struct send){.fd = pairs.sends[2].fd, .data = large, .len = sizeof(large)};
    send_batch_run(pairs.batch, pairs.sends, 8);
    assert_in_range(pairs.sends[2].result, 1, sizeof(large) - 1);
    for (size_t i = 0; i < 8; i++)
        if (i != 2)
            expect_arrived(&pairs, i);
    close_pairs(&pairs);
}

#define BOTH(test)                                                                                 \
    {#test ", with a ring", test, use_ring, NULL, NULL},                                           \
    {                                                                                              \
#test ", without", test, use_no_ring, NULL, NULL                                           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(batches_of_any_size_arrive),
        BOTH(failed_send_does_not_affect_the_others),
        BOTH(partial_send_is_reported),
    };
    return cmocka_run_group_tests_name("send_batch", tests, NULL, NULL);
}

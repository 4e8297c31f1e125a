#include "net/fd_passing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECEIVED_MAX = 256, OTHER_UID = 65534 };

struct fixture {
    struct loop loop;
    struct fd_passing receiver;
    char name[FD_PASSING_NAME_BYTES_MAX];
    int fds[RECEIVED_MAX];
    size_t count;
    char *bytes; /* of the last datagram */
    size_t bytes_len;
};

static void on_received(void *arg, int fd, struct slice bytes)
{
    struct fixture *fixture = arg;
    assert_true(fixture->count < RECEIVED_MAX);
    fixture->fds[fixture->count++] = fd;
    free(fixture->bytes);
    fixture->bytes = malloc(bytes.len);
    memcpy(fixture->bytes, bytes.data, bytes.len);
    fixture->bytes_len = bytes.len;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    *state = fixture;
    snprintf(fixture->name, sizeof(fixture->name), "rollcall-test-%ld", (long)getpid());
    return loop_init(&fixture->loop) &&
                   fd_passing_open(&fixture->receiver, &fixture->loop, slice_of(fixture->name),
                                   on_received, fixture)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fd_passing_close(&fixture->receiver);
    for (size_t i = 0; i < fixture->count; i++)
        close(fixture->fds[i]);
    loop_free(&fixture->loop);
    free(fixture->bytes);
    free(fixture);
    return 0;
}

static void receive(struct fixture *fixture, size_t until_count)
{
    for (int turns = 0; fixture->count < until_count && turns < 100; turns++)
        loop_turn(&fixture->loop, 100);
    assert_int_equal(fixture->count, until_count);
}

static void socket_arrives_with_its_bytes(void **state)
{
    struct fixture *fixture = *state;
    int pair[2];
    char text[8] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_true(fd_passing_send(slice_of(fixture->name), pair[1], SLICE("GET /")));
    close(pair[1]);
    receive(fixture, 1);
    assert_int_equal(fixture->bytes_len, 5);
    assert_memory_equal(fixture->bytes, "GET /", 5);
    assert_int_equal(write(pair[0], "later", 5), 5);
    assert_int_equal(read(fixture->fds[0], text, sizeof(text)), 5);
    assert_string_equal(text, "later");
    close(pair[0]);
}

static void bytes_are_limited(void **state)
{
    struct fixture *fixture = *state;
    char *bytes = malloc(FD_PASSING_BYTES_MAX + 1);
    memset(bytes, 'x', FD_PASSING_BYTES_MAX + 1);
    struct slice all = {bytes, FD_PASSING_BYTES_MAX};
    struct slice more = {bytes, FD_PASSING_BYTES_MAX + 1};
    assert_true(fd_passing_send(slice_of(fixture->name), STDIN_FILENO, all));
    receive(fixture, 1);
    assert_int_equal(fixture->bytes_len, FD_PASSING_BYTES_MAX);
    assert_false(fd_passing_send(slice_of(fixture->name), STDIN_FILENO, more));
    assert_false(fd_passing_send(slice_of(fixture->name), STDIN_FILENO, SLICE_NONE));
    free(bytes);
}

static void sending_to_an_unknown_name_fails(void **state)
{
    struct fixture *fixture = *state;
    assert_false(fd_passing_send(SLICE("rollcall-test-unknown"), STDIN_FILENO, SLICE("x")));
    fd_passing_close(&fixture->receiver);
    assert_false(fd_passing_send(slice_of(fixture->name), STDIN_FILENO, SLICE("x")));
    fd_passing_close(&fixture->receiver); /* harmless */
}

static void name_in_use_cannot_be_opened_again(void **state)
{
    struct fixture *fixture = *state;
    struct fd_passing other;
    assert_false(
        fd_passing_open(&other, &fixture->loop, slice_of(fixture->name), on_received, fixture));
    fd_passing_close(&other);
    assert_true(fd_passing_send(slice_of(fixture->name), STDIN_FILENO, SLICE("x")));
    receive(fixture, 1);
}

/* Connects as a sender, without sending a datagram. */
static int connect_sender(const struct fixture *fixture)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(fixture->name);
    memcpy(address.sun_path + 1, fixture->name, len);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)),
                     0);
    return fd;
}

/* Senders without a datagram must not keep out one that sends. */
static void waiting_senders_are_bounded(void **state)
{
    enum { SENDERS = FD_PASSING_SENDERS_MAX * 2 };
    struct fixture *fixture = *state;
    int fds[SENDERS];
    char byte;
    for (int i = 0; i < SENDERS; i++)
        fds[i] = connect_sender(fixture);
    loop_turn(&fixture->loop, 100);
    assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), 0); /* the oldest was closed */
    assert_int_equal(recv(fds[SENDERS - 1], &byte, 1, MSG_DONTWAIT), -1);
    assert_true(fd_passing_send(slice_of(fixture->name), STDIN_FILENO, SLICE("x")));
    receive(fixture, 1);
    for (int i = 0; i < SENDERS; i++)
        close(fds[i]);
}

/* A sender may be delayed between its connection and its datagram, while many others send theirs. */
static void slow_sender_is_kept(void **state)
{
    struct fixture *fixture = *state;
    char byte;
    int fd = connect_sender(fixture);
    for (size_t i = 0; i < 2 * FD_PASSING_SENDERS_MAX; i++) {
        assert_true(fd_passing_send(slice_of(fixture->name), STDIN_FILENO, SLICE("x")));
        receive(fixture, i + 1);
    }
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    close(fd);
}

static void datagram_without_descriptor_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    int fd = connect_sender(fixture);
    loop_turn(&fixture->loop, 100);
    assert_int_equal(send(fd, "x", 1, 0), 1);
    loop_turn(&fixture->loop, 100);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
    assert_int_equal(fixture->count, 0);
    close(fd);
}

/* Sends a datagram of `bytes_len` bytes with `copies` of a descriptor. */
static void send_raw(int to, int fd, size_t copies, size_t bytes_len)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } rights = {.bytes = {0}};
    char *bytes = calloc(1, bytes_len + 1);
    struct iovec piece = {bytes, bytes_len};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = rights.bytes,
                             .msg_controllen = CMSG_SPACE(copies * sizeof(int))};
    rights.header.cmsg_level = SOL_SOCKET;
    rights.header.cmsg_type = SCM_RIGHTS;
    rights.header.cmsg_len = CMSG_LEN(copies * sizeof(int));
    for (size_t i = 0; i < copies; i++)
        memcpy(CMSG_DATA(&rights.header) + i * sizeof(int), &fd, sizeof(fd));
    assert_int_equal(sendmsg(to, &message, 0), bytes_len);
    free(bytes);
}

/* End of file on one end of the pair shows that the other end was closed. */
static void descriptors_of_a_dropped_datagram_are_closed(void **state)
{
    static const struct {
        size_t copies, bytes_len;
    } DATAGRAMS[] = {{1, 0}, {2, 0}, {2, 1}, {1, FD_PASSING_BYTES_MAX + 1}};
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof(DATAGRAMS) / sizeof(DATAGRAMS[0]); i++) {
        int pair[2];
        char byte;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        int fd = connect_sender(fixture);
        send_raw(fd, pair[1], DATAGRAMS[i].copies, DATAGRAMS[i].bytes_len);
        close(pair[1]);
        loop_turn(&fixture->loop, 100);
        assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0); /* it was read */
        assert_int_equal(recv(pair[0], &byte, 1, MSG_DONTWAIT), 0);
        assert_int_equal(fixture->count, 0);
        close(fd);
        close(pair[0]);
    }
}

/* Sends as another user, which only root can. Returns 0 when the datagram was refused. */
static int send_as_other_user(const struct fixture *fixture)
{
    if (setresuid(OTHER_UID, OTHER_UID, OTHER_UID) != 0)
        return 1;
    return fd_passing_send(slice_of(fixture->name), STDIN_FILENO, SLICE("x")) ? 2 : 0;
}

static void other_users_are_refused(void **state)
{
    struct fixture *fixture = *state;
    int status;
    if (geteuid() != 0)
        skip();
    pid_t child = fork();
    if (child == 0)
        _exit(send_as_other_user(fixture));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    int fd = connect_sender(fixture);
    assert_int_equal(setresuid(-1, OTHER_UID, 0), 0);
    loop_turn(&fixture->loop, 100); /* the sender runs as another user than we do now */
    assert_int_equal(setresuid(-1, 0, 0), 0);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
    close(fd);
}

/* The loop must not spin meanwhile. */
static void receiver_pauses_when_descriptors_run_out(void **state)
{
    struct fixture *fixture = *state;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    assert_true(fd_passing_send(slice_of(fixture->name), STDIN_FILENO, SLICE("x")));
    int next = dup(STDIN_FILENO);
    close(next);
    struct rlimit none = {(rlim_t)next, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    loop_turn(&fixture->loop, 100);
    assert_int_equal(fixture->count, 0);
    assert_true(wheel_is_set(&fixture->receiver.pause));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    receive(fixture, 1);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(socket_arrives_with_its_bytes),
        with_fixture(bytes_are_limited),
        with_fixture(sending_to_an_unknown_name_fails),
        with_fixture(name_in_use_cannot_be_opened_again),
        with_fixture(waiting_senders_are_bounded),
        with_fixture(slow_sender_is_kept),
        with_fixture(datagram_without_descriptor_is_dropped),
        with_fixture(other_users_are_refused),
        with_fixture(receiver_pauses_when_descriptors_run_out),
        with_fixture(descriptors_of_a_dropped_datagram_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

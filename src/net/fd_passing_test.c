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

enum { RECEIVED_MAX = 256, STRANGER_UID = 65534 };

struct house {
    struct loop loop;
    struct fd_passing receiver;
    char name[FD_PASSING_NAME_BYTES_MAX];
    int fds[RECEIVED_MAX];
    size_t count;
    char *bytes; /* of the last */
    size_t bytes_len;
};

static void received(void *arg, int fd, struct slice bytes)
{
    struct house *house = arg;
    assert_true(house->count < RECEIVED_MAX);
    house->fds[house->count++] = fd;
    free(house->bytes);
    house->bytes = malloc(bytes.len);
    memcpy(house->bytes, bytes.data, bytes.len);
    house->bytes_len = bytes.len;
}

static int set_up(void **state)
{
    struct house *house = calloc(1, sizeof(*house));
    *state = house;
    snprintf(house->name, sizeof(house->name), "rollcall-test-%ld", (long)getpid());
    return loop_init(&house->loop) && fd_passing_open(&house->receiver, &house->loop,
                                                      slice_of(house->name), received, house)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct house *house = *state;
    fd_passing_close(&house->receiver);
    for (size_t i = 0; i < house->count; i++)
        close(house->fds[i]);
    loop_free(&house->loop);
    free(house->bytes);
    free(house);
    return 0;
}

static void turn(struct house *house, size_t until_count)
{
    for (int turns = 0; house->count < until_count && turns < 100; turns++)
        loop_turn(&house->loop, 100);
    assert_int_equal(house->count, until_count);
}

/* What is written to one end of a pair is read from the end that was sent. */
static void a_socket_arrives_with_its_bytes(void **state)
{
    struct house *house = *state;
    int pair[2];
    char text[8] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_true(fd_passing_send(slice_of(house->name), pair[1], SLICE("GET /")));
    close(pair[1]);
    turn(house, 1);
    assert_int_equal(house->bytes_len, 5);
    assert_memory_equal(house->bytes, "GET /", 5);
    assert_int_equal(write(pair[0], "later", 5), 5);
    assert_int_equal(read(house->fds[0], text, sizeof(text)), 5);
    assert_string_equal(text, "later");
    close(pair[0]);
}

static void as_many_bytes_as_are_allowed(void **state)
{
    struct house *house = *state;
    char *bytes = malloc(FD_PASSING_BYTES_MAX + 1);
    memset(bytes, 'x', FD_PASSING_BYTES_MAX + 1);
    struct slice all = {bytes, FD_PASSING_BYTES_MAX};
    struct slice more = {bytes, FD_PASSING_BYTES_MAX + 1};
    assert_true(fd_passing_send(slice_of(house->name), STDIN_FILENO, all));
    turn(house, 1);
    assert_int_equal(house->bytes_len, FD_PASSING_BYTES_MAX);
    assert_false(fd_passing_send(slice_of(house->name), STDIN_FILENO, more));
    assert_false(fd_passing_send(slice_of(house->name), STDIN_FILENO, SLICE_NONE));
    free(bytes);
}

static void who_is_not_there_gets_nothing(void **state)
{
    struct house *house = *state;
    assert_false(fd_passing_send(SLICE("rollcall-test-nobody"), STDIN_FILENO, SLICE("x")));
    fd_passing_close(&house->receiver);
    assert_false(fd_passing_send(slice_of(house->name), STDIN_FILENO, SLICE("x")));
    fd_passing_close(&house->receiver); /* harmless */
}

static void a_name_is_one_passages_alone(void **state)
{
    struct house *house = *state;
    struct fd_passing other;
    assert_false(fd_passing_open(&other, &house->loop, slice_of(house->name), received, house));
    fd_passing_close(&other);
    assert_true(fd_passing_send(slice_of(house->name), STDIN_FILENO, SLICE("x")));
    turn(house, 1);
}

static int knock(const struct house *house)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(house->name);
    memcpy(address.sun_path + 1, house->name, len);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)),
                     0);
    return fd;
}

/* Those who knock and say nothing take no place from those who do. */
static void silent_guests_are_bounded(void **state)
{
    enum { KNOCKS = FD_PASSING_SENDERS_MAX * 2 };
    struct house *house = *state;
    int fds[KNOCKS];
    char byte;
    for (int i = 0; i < KNOCKS; i++)
        fds[i] = knock(house);
    loop_turn(&house->loop, 100);
    assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), 0); /* the oldest had to go */
    assert_int_equal(recv(fds[KNOCKS - 1], &byte, 1, MSG_DONTWAIT), -1);
    assert_true(fd_passing_send(slice_of(house->name), STDIN_FILENO, SLICE("x")));
    turn(house, 1);
    for (int i = 0; i < KNOCKS; i++)
        close(fds[i]);
}

/* A sender may be held up between its connection and its packet, however many come meanwhile. */
static void who_takes_a_while_is_waited_for(void **state)
{
    struct house *house = *state;
    char byte;
    int fd = knock(house);
    for (size_t i = 0; i < 2 * FD_PASSING_SENDERS_MAX; i++) {
        assert_true(fd_passing_send(slice_of(house->name), STDIN_FILENO, SLICE("x")));
        turn(house, i + 1);
    }
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    close(fd);
}

static void a_packet_without_a_socket_is_none(void **state)
{
    struct house *house = *state;
    int fd = knock(house);
    loop_turn(&house->loop, 100); /* waited for */
    assert_int_equal(send(fd, "x", 1, 0), 1);
    loop_turn(&house->loop, 100);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
    assert_int_equal(house->count, 0);
    close(fd);
}

/* A packet of so many bytes with so many copies of a descriptor. */
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

/* Whether nobody has the other end any more is told by end of file. */
static void a_socket_that_is_not_taken_is_closed(void **state)
{
    static const struct {
        size_t copies, bytes_len;
    } PACKETS[] = {{1, 0}, {2, 0}, {2, 1}, {1, FD_PASSING_BYTES_MAX + 1}};
    struct house *house = *state;
    for (size_t i = 0; i < sizeof(PACKETS) / sizeof(PACKETS[0]); i++) {
        int pair[2];
        char byte;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        int fd = knock(house);
        send_raw(fd, pair[1], PACKETS[i].copies, PACKETS[i].bytes_len);
        close(pair[1]);
        loop_turn(&house->loop, 100);
        assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0); /* it was read */
        assert_int_equal(recv(pair[0], &byte, 1, MSG_DONTWAIT), 0);
        assert_int_equal(house->count, 0);
        close(fd);
        close(pair[0]);
    }
}

/* Runs as another user, which only root can. 0: nothing came through. */
static int be_a_stranger(const struct house *house)
{
    if (setresuid(STRANGER_UID, STRANGER_UID, STRANGER_UID) != 0)
        return 1;
    return fd_passing_send(slice_of(house->name), STDIN_FILENO, SLICE("x")) ? 2 : 0;
}

static void strangers_neither_send_nor_get(void **state)
{
    struct house *house = *state;
    int status;
    if (geteuid() != 0)
        skip();
    pid_t child = fork();
    if (child == 0)
        _exit(be_a_stranger(house));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    int fd = knock(house);
    assert_int_equal(setresuid(-1, STRANGER_UID, 0), 0);
    loop_turn(&house->loop, 100); /* the one who knocked is a stranger to who we are now */
    assert_int_equal(setresuid(-1, 0, 0), 0);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
    close(fd);
}

/* Without descriptors nothing is accepted, and the loop does not spin; it goes on when there are some. */
static void it_rests_when_descriptors_run_out(void **state)
{
    struct house *house = *state;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    assert_true(fd_passing_send(slice_of(house->name), STDIN_FILENO, SLICE("x")));
    int next = dup(STDIN_FILENO);
    close(next);
    struct rlimit none = {(rlim_t)next, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    loop_turn(&house->loop, 100);
    assert_int_equal(house->count, 0);
    assert_true(wheel_is_set(&house->receiver.pause));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    turn(house, 1);
}

#define with_house(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_house(a_socket_arrives_with_its_bytes),
        with_house(as_many_bytes_as_are_allowed),
        with_house(who_is_not_there_gets_nothing),
        with_house(a_name_is_one_passages_alone),
        with_house(silent_guests_are_bounded),
        with_house(who_takes_a_while_is_waited_for),
        with_house(a_packet_without_a_socket_is_none),
        with_house(strangers_neither_send_nor_get),
        with_house(it_rests_when_descriptors_run_out),
        with_house(a_socket_that_is_not_taken_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

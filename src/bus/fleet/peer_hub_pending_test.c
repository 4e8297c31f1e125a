/* Hubs, connections that never authenticate, and authenticated peers that misbehave. */
#include "bus/fleet/peer_hub.h"

#include "support/peer_processes.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { CONNECTIONS = 3 * PEER_HUB_PENDING_MAX };

/* ---- unauthenticated connections ---- */

static void a_peer_with_a_wrong_secret_gets_no_link(void **state)
{
    struct peer_processes *processes = *state;
    peer_process_open(&processes->at[1], "west", "another secret", "127.0.0.1:0");
    peer_hub_add(processes->at[1].hub, processes->at[0].address);
    for (int i = 0; i < 5; i++) {
        peer_processes_turn(processes, PEER_PROCESSES_QUIET_TURNS);
        assert_int_equal(peer_hub_open_links(processes->at[0].hub), 0);
        assert_int_equal(peer_hub_open_links(processes->at[1].hub), 0);
        peer_process_send(&processes->at[0], "broadcast", "secret");
    }
    assert_string_equal(processes->at[1].received, "");
    peer_process_close(&processes->at[1]);
    peer_processes_turn(processes, PEER_PROCESSES_QUIET_TURNS);
    peer_processes_join(processes); /* a peer with the right secret is still linked */
}

static int connect_to(const struct peer_process *process)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(peer_hub_port(process->hub)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Some send nothing, others send random bytes; none of them keeps a peer out for long. */
static void unauthenticated_connections_keep_no_peer_out(void **state)
{
    struct peer_processes *processes = *state;
    int fds[CONNECTIONS];
    char noise[4096];
    for (size_t i = 0; i < CONNECTIONS; i++) {
        fds[i] = connect_to(&processes->at[0]);
        random_bytes(&processes->at[0].worker.random, noise, sizeof(noise));
        if (i % 3 == 0)
            memcpy(noise, "RCPL\1D\377", 7); /* a hello that begins well */
        if (i % 3 != 2)
            (void)!send(fds[i], noise, i % 7 ? sizeof(noise) : 5, MSG_NOSIGNAL);
        peer_processes_turn(processes, 1);
    }
    peer_processes_join(processes);
    for (size_t i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    peer_processes_turn(processes, PEER_PROCESSES_QUIET_TURNS);
    peer_process_send(&processes->at[1], "broadcast", "1");
    peer_processes_await_received(processes, 0, "broadcast=1;");
    assert_int_equal(processes->at[0].count, 1);
}

static bool is_cut(int fd)
{
    char hello[256];
    ssize_t len;
    while ((len = recv(fd, hello, sizeof(hello), MSG_DONTWAIT)) > 0)
        ;
    return len == 0;
}

/* A peer does not wait until the pending ones time out. */
static void the_oldest_pending_peer_is_displaced(void **state)
{
    struct peer_processes *processes = *state;
    int fds[CONNECTIONS];
    for (size_t i = 0; i < CONNECTIONS; i++) {
        fds[i] = connect_to(&processes->at[0]);
        peer_processes_turn(processes, 1);
    }
    peer_processes_join(processes);
    assert_true(is_cut(fds[0]));
    assert_false(is_cut(fds[CONNECTIONS - 1]));
    for (size_t i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
}

/* ---- peers that misbehave ---- */

struct rogue {
    struct worker_loop worker;
    struct peer_link *link;
    bool open;
};

static void on_rogue_opened(struct peer_link *link, void *arg, struct slice name)
{
    (void)link, (void)name;
    ((struct rogue *)arg)->open = true;
}

static void on_rogue_frame(struct peer_link *link, void *arg, struct slice frame)
{
    (void)link, (void)arg, (void)frame;
}

static void on_rogue_closed(struct peer_link *link, void *arg, const char *why)
{
    (void)link, (void)why;
    ((struct rogue *)arg)->link = NULL;
}

static void open_rogue(struct peer_processes *processes, struct rogue *rogue)
{
    static const struct peer_link_owner owner = {on_rogue_opened, on_rogue_frame, on_rogue_closed};
    memset(rogue, 0, sizeof(*rogue));
    worker_loop_open(&rogue->worker);
    rogue->link =
        peer_link_dial(&(struct peer_link_options){.loop = &rogue->worker.loop,
                                                   .streams = &rogue->worker.streams,
                                                   .random = &rogue->worker.random,
                                                   .secret = slice_of(PEER_PROCESS_SECRET),
                                                   .name = SLICE("rogue")},
                       processes->at[0].address, &owner, rogue);
    for (int i = 0; !rogue->open && i < PEER_PROCESSES_SOON_TURNS; i++) {
        loop_turn(&rogue->worker.loop, PEER_PROCESSES_TURN_MS);
        peer_processes_turn(processes, 1);
    }
    assert_true(rogue->open);
    peer_processes_await_links(processes, 1, 0);
}

static void close_rogue(struct rogue *rogue)
{
    if (rogue->link)
        peer_link_drop(&rogue->link);
    worker_loop_close(&rogue->worker);
}

static void invalid_frames_are_ignored(void **state)
{
    struct peer_processes *processes = *state;
    struct slice frames[] = {SLICE("x"), SLICE("\0\0payload"), SLICE("\0\7short"),
                             SLICE("\377\377long"), SLICE("\0\1tfine")};
    struct rogue rogue;
    open_rogue(processes, &rogue);
    for (size_t i = 0; i < 5; i++)
        assert_true(peer_link_send(rogue.link, &frames[i], 1));
    worker_loop_run(&rogue.worker, 50);
    peer_processes_await_received(processes, 0, "t=fine;");
    assert_int_equal(peer_process_metric(&processes->at[0], METRIC_PEER_FRAMES_RECEIVED), 1);
    close_rogue(&rogue);
    peer_processes_await_links(processes, 0, 0);
}

/* A peer that reads nothing loses its own events and costs a bounded amount of memory. */
static void a_peer_that_does_not_read_is_skipped(void **state)
{
    enum { EVENT_BYTES = 64 * 1024, EVENTS = 2 * PEER_HUB_QUEUE_BYTES_MAX / EVENT_BYTES };
    struct peer_processes *processes = *state;
    struct peer_process *east = &processes->at[0];
    struct rogue rogue;
    char *payload = calloc(1, EVENT_BYTES);
    open_rogue(processes, &rogue);
    for (int i = 0; i < EVENTS; i++) {
        peer_hub_send(east->hub, &east->worker.metrics, SLICE("t"),
                      (struct slice){payload, EVENT_BYTES});
        peer_processes_turn(processes, 1);
    }
    int64_t sent = peer_process_metric(east, METRIC_PEER_FRAMES_SENT);
    int64_t skipped = peer_process_metric(east, METRIC_PEER_FRAMES_SKIPPED);
    assert_int_equal(sent + skipped, EVENTS);
    assert_true(skipped > 0 && sent * EVENT_BYTES >= PEER_HUB_QUEUE_BYTES_MAX / 2);
    close_rogue(&rogue);
    free(payload);
    peer_processes_await_links(processes, 0, 0);
    peer_processes_join(processes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PEER_PROCESSES_TEST(a_peer_with_a_wrong_secret_gets_no_link),
        PEER_PROCESSES_TEST(unauthenticated_connections_keep_no_peer_out),
        PEER_PROCESSES_TEST(the_oldest_pending_peer_is_displaced),
        PEER_PROCESSES_TEST(invalid_frames_are_ignored),
        PEER_PROCESSES_TEST(a_peer_that_does_not_read_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

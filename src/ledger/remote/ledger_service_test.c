/* The service of a ledger: what it accepts, what it refuses, and its bounds. */
#include "ledger/remote/ledger_service.h"

#include "ledger/remote/ledger_wire.h"
#include "support/script_ledger.h"
#include "support/worker_loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON_MS = 30000, WALL_MS = 1234567, FRAMES_OF_ONE_READ_MAX = 64 * 1024 / 16 * 4 };
enum { SURPLUS = 8, PENDING = LEDGER_SERVICE_PENDING_MAX + SURPLUS };

struct client {
    struct peer_link *link;
    unsigned opened, closed;
    size_t answers;
    struct ledger_wire_head last;
    struct slice last_body;
};

struct fixture {
    struct worker_loop worker;
    struct script_ledger script;
    struct ledger_service *service;
    struct peer_link_options options;
    struct client client;
    size_t wanted;
    char address[64];
};

/* ---- a client ---- */

static void on_client_opened(struct peer_link *link, void *arg, struct slice name)
{
    (void)link;
    (void)name;
    ((struct client *)arg)->opened++;
}

static void on_client_frame(struct peer_link *link, void *arg, struct slice frame)
{
    struct client *client = arg;
    (void)link;
    assert_true(ledger_wire_decode_answer_head(frame, &client->last, &client->last_body));
    client->answers++;
}

static void on_client_closed(struct peer_link *link, void *arg, const char *why)
{
    struct client *client = arg;
    (void)link;
    (void)why;
    client->link = NULL;
    client->closed++;
}

static const struct peer_link_owner owner = {
    .on_opened = on_client_opened, .on_frame = on_client_frame, .on_closed = on_client_closed};

static void dial_service(struct fixture *fixture, struct client *client)
{
    client->link = peer_link_dial(&fixture->options, fixture->address, &owner, client);
    assert_non_null(client->link);
}

static bool is_open(void *arg)
{
    return ((struct client *)arg)->opened == 1;
}

static bool is_closed(void *arg)
{
    return ((struct client *)arg)->closed == 1;
}

static bool has_answers(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->client.answers == fixture->wanted;
}

static bool has_requests(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->script.submitted[LEDGER_CURSOR_PUT] >= fixture->wanted;
}

static bool is_drained(void *arg)
{
    return ledger_service_is_drained(((struct fixture *)arg)->service);
}

static bool is_held_request_abandoned(void *arg)
{
    return ((struct fixture *)arg)->script.held->abandoned;
}

static void await_answers(struct fixture *fixture, size_t count)
{
    fixture->wanted = count;
    assert_true(worker_loop_until(&fixture->worker, has_answers, fixture, SOON_MS));
}

static void await_requests(struct fixture *fixture, size_t count)
{
    fixture->wanted = count;
    assert_true(worker_loop_until(&fixture->worker, has_requests, fixture, SOON_MS));
}

static void send_request(struct fixture *fixture, uint64_t id)
{
    struct ledger_client requester = {.clock = &fixture->worker.loop.clock};
    struct buffer frame = BUFFER_INIT;
    struct ledger_request *request = ledger_request_make(&requester, LEDGER_CURSOR_PUT, NULL);
    request->wall_ms = WALL_MS;
    request->input.chat = SLICE("c");
    request->input.user = SLICE("u");
    request->input.device = SLICE("d");
    ledger_wire_encode_request(&frame, id, request);
    struct slice piece = buffer_slice(&frame);
    assert_true(peer_link_send(fixture->client.link, &piece, 1));
    ledger_request_free(request);
    buffer_free(&frame);
}

static int set_up(void **state)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    *state = fixture;
    worker_loop_open(&fixture->worker);
    script_ledger_init(&fixture->script);
    fixture->options = (struct peer_link_options){.loop = &fixture->worker.loop,
                                                  .streams = &fixture->worker.streams,
                                                  .random = &fixture->worker.random,
                                                  .secret = SLICE("secret"),
                                                  .name = SLICE("client")};
    fixture->service =
        ledger_service_open(&fixture->options, &fixture->script.ledger, "127.0.0.1:0", error);
    assert_non_null(fixture->service);
    snprintf(fixture->address, sizeof(fixture->address), "127.0.0.1:%u",
             ledger_service_port(fixture->service));
    dial_service(fixture, &fixture->client);
    assert_true(worker_loop_until(&fixture->worker, is_open, &fixture->client, SOON_MS));
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    peer_link_drop(&fixture->client.link);
    script_ledger_turn(&fixture->script);
    ledger_service_free(&fixture->service);
    worker_loop_close(&fixture->worker);
    free(fixture);
    return 0;
}

/* ---- requests ---- */

static void answer_changed(void *arg, struct ledger_request *request)
{
    (void)arg;
    assert_int_equal(request->wall_ms, WALL_MS);
    assert_true(slice_is(request->input.device, "d"));
    request->outcome.change.changed = true;
}

static void test_request_is_executed_and_answered_under_its_id(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.answer = answer_changed;
    send_request(fixture, 4711);
    await_answers(fixture, 1);
    assert_int_equal(fixture->client.last.id, 4711);
    assert_int_equal(fixture->client.last.status, LEDGER_OK);
    fixture->script.status = LEDGER_BUSY;
    send_request(fixture, 4712);
    await_answers(fixture, 2);
    assert_int_equal(fixture->client.last.status, LEDGER_BUSY);
}

static void expect_link_closed(struct fixture *fixture, struct slice frame)
{
    assert_true(peer_link_send(fixture->client.link, &frame, 1));
    assert_true(worker_loop_until(&fixture->worker, is_closed, &fixture->client, SOON_MS));
    for (int operation = 0; operation < LEDGER_OPERATION_COUNT; operation++)
        assert_int_equal(fixture->script.submitted[operation], 0);
}

static void test_frame_that_is_no_request_closes_the_link(void **state)
{
    expect_link_closed(*state, SLICE("GET / HTTP/1.1\r\n\r\n"));
}

static void test_incomplete_request_closes_the_link(void **state)
{
    struct fixture *fixture = *state;
    struct ledger_client requester = {.clock = &fixture->worker.loop.clock};
    struct buffer frame = BUFFER_INIT;
    struct ledger_request *request = ledger_request_make(&requester, LEDGER_CALL_APPEND, NULL);
    ledger_wire_encode_request(&frame, 1, request);
    expect_link_closed(fixture, buffer_slice(&frame));
    ledger_request_free(request);
    buffer_free(&frame);
}

static void test_request_of_a_closed_link_is_executed_without_answer(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    send_request(fixture, 1);
    await_requests(fixture, 1);
    peer_link_close(fixture->client.link, "closed");
    assert_true(worker_loop_until(&fixture->worker, is_closed, &fixture->client, SOON_MS));
    worker_loop_run(&fixture->worker, 50);
    assert_false(ledger_service_is_drained(fixture->service));
    script_ledger_turn(&fixture->script);
    assert_true(worker_loop_until(&fixture->worker, is_drained, fixture, SOON_MS));
    assert_int_equal(fixture->client.answers, 0);
}

/* ---- bounds ---- */

static void test_link_with_too_many_unanswered_requests_is_not_read(void **state)
{
    struct fixture *fixture = *state;
    size_t count = LEDGER_SERVICE_LINK_REQUESTS_MAX + 3 * FRAMES_OF_ONE_READ_MAX;
    fixture->script.holding = true;
    for (size_t i = 0; i < count; i++)
        send_request(fixture, i);
    await_requests(fixture, LEDGER_SERVICE_LINK_REQUESTS_MAX);
    worker_loop_run(&fixture->worker, 500); /* in which nothing more may be read */
    assert_in_range(fixture->script.submitted[LEDGER_CURSOR_PUT], LEDGER_SERVICE_LINK_REQUESTS_MAX,
                    LEDGER_SERVICE_LINK_REQUESTS_MAX + FRAMES_OF_ONE_READ_MAX);
    fixture->script.holding = false;
    script_ledger_turn(&fixture->script);
    await_answers(fixture, count);
}

static void test_links_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    static struct client clients[LEDGER_SERVICE_LINKS_MAX];
    memset(clients, 0, sizeof(clients));
    for (size_t i = 0; i < LEDGER_SERVICE_LINKS_MAX; i++) {
        dial_service(fixture, &clients[i]);
        if (i < LEDGER_SERVICE_LINKS_MAX - 1)
            assert_true(worker_loop_until(&fixture->worker, is_open, &clients[i], SOON_MS));
    }
    struct client *surplus = &clients[LEDGER_SERVICE_LINKS_MAX - 1];
    assert_true(worker_loop_until(&fixture->worker, is_closed, surplus, SOON_MS));
    for (size_t i = 0; i < LEDGER_SERVICE_LINKS_MAX - 1; i++)
        assert_int_equal(clients[i].closed, 0);
    for (size_t i = 0; i < LEDGER_SERVICE_LINKS_MAX; i++)
        peer_link_drop(&clients[i].link);
}

static int connect_without_authenticating(const struct fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(ledger_service_port(fixture->service)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static bool is_connection_closed(void *arg)
{
    char hello[256];
    ssize_t len;
    while ((len = recv(*(int *)arg, hello, sizeof(hello), MSG_DONTWAIT)) > 0)
        ;
    return len == 0;
}

static void test_oldest_pending_link_makes_way_for_a_newer_one(void **state)
{
    struct fixture *fixture = *state;
    int fds[PENDING];
    for (size_t i = 0; i < PENDING; i++)
        fds[i] = connect_without_authenticating(fixture);
    for (size_t i = 0; i < SURPLUS; i++)
        assert_true(worker_loop_until(&fixture->worker, is_connection_closed, &fds[i], SOON_MS));
    assert_false(is_connection_closed(&fds[SURPLUS]));
    struct client newer = {0};
    dial_service(fixture, &newer);
    assert_true(worker_loop_until(&fixture->worker, is_open, &newer, SOON_MS));
    assert_true(worker_loop_until(&fixture->worker, is_connection_closed, &fds[SURPLUS], SOON_MS));
    assert_false(is_connection_closed(&fds[PENDING - 1])); /* and no link has timed out */
    assert_int_equal(fixture->client.closed, 0);
    for (size_t i = 0; i < PENDING; i++)
        close(fds[i]);
    peer_link_drop(&newer.link);
}

static int64_t passed_ms; /* what the test adds to the system's clock */

static void advance_clock(struct clock *clock)
{
    clock_advance(clock);
    clock->now_ms += passed_ms;
}

static void test_overdue_request_is_abandoned(void **state)
{
    struct fixture *fixture = *state;
    passed_ms = 0;
    fixture->worker.loop.advance = advance_clock;
    fixture->script.holding = true;
    send_request(fixture, 1);
    await_requests(fixture, 1);
    assert_false(fixture->script.held->abandoned);
    passed_ms = LEDGER_TIME_LIMIT_MS;
    assert_true(worker_loop_until(&fixture->worker, is_held_request_abandoned, fixture, SOON_MS));
}

/* ---- draining ---- */

static void test_drain_refuses_new_requests_and_answers_accepted_ones(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    send_request(fixture, 1);
    await_requests(fixture, 1);
    ledger_service_drain(fixture->service);
    send_request(fixture, 2);
    worker_loop_run(&fixture->worker, 100);
    assert_int_equal(fixture->script.submitted[LEDGER_CURSOR_PUT], 1);
    assert_false(ledger_service_is_drained(fixture->service));
    script_ledger_turn(&fixture->script);
    await_answers(fixture, 1);
    assert_true(ledger_service_is_drained(fixture->service));
    struct client late = {0};
    dial_service(fixture, &late);
    assert_true(worker_loop_until(&fixture->worker, is_closed, &late, SOON_MS));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_request_is_executed_and_answered_under_its_id),
        TEST(test_frame_that_is_no_request_closes_the_link),
        TEST(test_incomplete_request_closes_the_link),
        TEST(test_request_of_a_closed_link_is_executed_without_answer),
        TEST(test_link_with_too_many_unanswered_requests_is_not_read),
        TEST(test_links_are_bounded),
        TEST(test_oldest_pending_link_makes_way_for_a_newer_one),
        TEST(test_overdue_request_is_abandoned),
        TEST(test_drain_refuses_new_requests_and_answers_accepted_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The serving end of a ledger: what it takes, what it refuses, and its bounds. */
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

enum { SOON_MS = 5000, WALL_MS = 1234567, FRAMES_OF_ONE_READ_MAX = 64 * 1024 / 16 * 4 };
enum { SURPLUS = 8, STRANGERS = LEDGER_SERVICE_PENDING_MAX + SURPLUS };

struct asker {
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
    struct asker asker;
    size_t wanted;
    char address[64];
};

/* ---- one who asks ---- */

static void opened(struct peer_link *link, void *arg, struct slice name)
{
    (void)link;
    (void)name;
    ((struct asker *)arg)->opened++;
}

static void received(struct peer_link *link, void *arg, struct slice frame)
{
    struct asker *asker = arg;
    (void)link;
    assert_true(ledger_wire_decode_answer_head(frame, &asker->last, &asker->last_body));
    asker->answers++;
}

static void closed(struct peer_link *link, void *arg, const char *why)
{
    struct asker *asker = arg;
    (void)link;
    (void)why;
    asker->link = NULL;
    asker->closed++;
}

static const struct peer_link_owner owner = {opened, received, closed};

static void dial(struct fixture *fixture, struct asker *asker)
{
    asker->link = peer_link_dial(&fixture->options, fixture->address, &owner, asker);
    assert_non_null(asker->link);
}

static bool is_open(void *arg)
{
    return ((struct asker *)arg)->opened == 1;
}

static bool is_closed(void *arg)
{
    return ((struct asker *)arg)->closed == 1;
}

static bool has_answers(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->asker.answers == fixture->wanted;
}

static bool has_asked(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->script.asked[LEDGER_CURSOR_PUT] >= fixture->wanted;
}

static void await_answers(struct fixture *fixture, size_t count)
{
    fixture->wanted = count;
    assert_true(worker_loop_until(&fixture->worker, has_answers, fixture, SOON_MS));
}

static void await_asked(struct fixture *fixture, size_t count)
{
    fixture->wanted = count;
    assert_true(worker_loop_until(&fixture->worker, has_asked, fixture, SOON_MS));
}

static void ask(struct fixture *fixture, uint64_t id)
{
    struct ledger_client client = {.clock = &fixture->worker.loop.clock};
    struct buffer frame = BUFFER_INIT;
    struct ledger_request *request = ledger_request_make(&client, LEDGER_CURSOR_PUT, NULL);
    request->wall_ms = WALL_MS;
    request->input.chat = SLICE("c");
    request->input.user = SLICE("u");
    request->input.device = SLICE("d");
    ledger_wire_encode_request(&frame, id, request);
    struct slice piece = buffer_slice(&frame);
    assert_true(peer_link_send(fixture->asker.link, &piece, 1));
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
                                                  .name = SLICE("asker")};
    fixture->service =
        ledger_service_open(&fixture->options, &fixture->script.ledger, "127.0.0.1:0", error);
    assert_non_null(fixture->service);
    snprintf(fixture->address, sizeof(fixture->address), "127.0.0.1:%u",
             ledger_service_port(fixture->service));
    dial(fixture, &fixture->asker);
    assert_true(worker_loop_until(&fixture->worker, is_open, &fixture->asker, SOON_MS));
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    peer_link_drop(&fixture->asker.link);
    script_ledger_turn(&fixture->script);
    ledger_service_free(&fixture->service);
    worker_loop_close(&fixture->worker);
    free(fixture);
    return 0;
}

/* ---- what it takes ---- */

static void change(void *arg, struct ledger_request *request)
{
    (void)arg;
    assert_int_equal(request->wall_ms, WALL_MS);
    assert_true(slice_is(request->input.device, "d"));
    request->outcome.change.changed = true;
}

static void test_a_request_is_asked_and_answered_under_its_id(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.answer = change;
    ask(fixture, 4711);
    await_answers(fixture, 1);
    assert_int_equal(fixture->asker.last.id, 4711);
    assert_int_equal(fixture->asker.last.status, LEDGER_OK);
    fixture->script.status = LEDGER_BUSY;
    ask(fixture, 4712);
    await_answers(fixture, 2);
    assert_int_equal(fixture->asker.last.status, LEDGER_BUSY);
}

static void expect_cut(struct fixture *fixture, struct slice frame)
{
    assert_true(peer_link_send(fixture->asker.link, &frame, 1));
    assert_true(worker_loop_until(&fixture->worker, is_closed, &fixture->asker, SOON_MS));
    for (int operation = 0; operation < LEDGER_OPERATION_COUNT; operation++)
        assert_int_equal(fixture->script.asked[operation], 0);
}

static void test_what_is_no_request_ends_the_link(void **state)
{
    expect_cut(*state, SLICE("GET / HTTP/1.1\r\n\r\n"));
}

static void test_a_request_that_lacks_something_ends_the_link(void **state)
{
    struct fixture *fixture = *state;
    struct ledger_client client = {.clock = &fixture->worker.loop.clock};
    struct buffer frame = BUFFER_INIT;
    struct ledger_request *request = ledger_request_make(&client, LEDGER_CALL_APPEND, NULL);
    ledger_wire_encode_request(&frame, 1, request);
    expect_cut(fixture, buffer_slice(&frame));
    ledger_request_free(request);
    buffer_free(&frame);
}

static void test_who_has_gone_misses_the_answer_only(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    ask(fixture, 1);
    await_asked(fixture, 1);
    peer_link_close(fixture->asker.link);
    assert_true(worker_loop_until(&fixture->worker, is_closed, &fixture->asker, SOON_MS));
    worker_loop_run(&fixture->worker, 50);
    assert_false(ledger_service_is_drained(fixture->service));
    script_ledger_turn(&fixture->script);
    worker_loop_run(&fixture->worker, 50);
    assert_true(ledger_service_is_drained(fixture->service));
    assert_int_equal(fixture->asker.answers, 0);
}

/* ---- bounds ---- */

static void test_a_link_is_not_read_while_too_much_is_unanswered(void **state)
{
    struct fixture *fixture = *state;
    size_t count = LEDGER_SERVICE_LINK_REQUESTS_MAX + 3 * FRAMES_OF_ONE_READ_MAX;
    fixture->script.holding = true;
    for (size_t i = 0; i < count; i++)
        ask(fixture, i);
    worker_loop_run(&fixture->worker, 500);
    assert_in_range(fixture->script.asked[LEDGER_CURSOR_PUT], LEDGER_SERVICE_LINK_REQUESTS_MAX,
                    LEDGER_SERVICE_LINK_REQUESTS_MAX + FRAMES_OF_ONE_READ_MAX);
    fixture->script.holding = false;
    script_ledger_turn(&fixture->script);
    await_answers(fixture, count);
}

static void test_links_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    static struct asker askers[LEDGER_SERVICE_LINKS_MAX];
    memset(askers, 0, sizeof(askers));
    for (size_t i = 0; i < LEDGER_SERVICE_LINKS_MAX; i++) {
        dial(fixture, &askers[i]);
        if (i < LEDGER_SERVICE_LINKS_MAX - 1)
            assert_true(worker_loop_until(&fixture->worker, is_open, &askers[i], SOON_MS));
    }
    struct asker *surplus = &askers[LEDGER_SERVICE_LINKS_MAX - 1];
    assert_true(worker_loop_until(&fixture->worker, is_closed, surplus, SOON_MS));
    for (size_t i = 0; i < LEDGER_SERVICE_LINKS_MAX - 1; i++)
        assert_int_equal(askers[i].closed, 0);
    for (size_t i = 0; i < LEDGER_SERVICE_LINKS_MAX; i++)
        peer_link_drop(&askers[i].link);
}

static int knock(const struct fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(ledger_service_port(fixture->service)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static bool is_cut(void *arg)
{
    char hello[256];
    ssize_t len;
    while ((len = recv(*(int *)arg, hello, sizeof(hello), MSG_DONTWAIT)) > 0)
        ;
    return len == 0;
}

static void test_the_oldest_stranger_gives_way_to_a_newcomer(void **state)
{
    struct fixture *fixture = *state;
    int fds[STRANGERS];
    for (size_t i = 0; i < STRANGERS; i++)
        fds[i] = knock(fixture);
    for (size_t i = 0; i < SURPLUS; i++)
        assert_true(worker_loop_until(&fixture->worker, is_cut, &fds[i], SOON_MS));
    assert_false(is_cut(&fds[SURPLUS]));
    struct asker newcomer = {0};
    dial(fixture, &newcomer);
    assert_true(worker_loop_until(&fixture->worker, is_open, &newcomer, SOON_MS));
    assert_true(worker_loop_until(&fixture->worker, is_cut, &fds[SURPLUS], SOON_MS));
    assert_false(is_cut(&fds[STRANGERS - 1])); /* nor has anybody's time run out */
    assert_int_equal(fixture->asker.closed, 0);
    for (size_t i = 0; i < STRANGERS; i++)
        close(fds[i]);
    peer_link_drop(&newcomer.link);
}

static int64_t passed_ms; /* what the test adds to the system's time */

static void advance(struct clock *clock)
{
    clock_advance(clock);
    clock->now_ms += passed_ms;
}

static void test_what_nobody_waits_for_any_more_may_be_skipped(void **state)
{
    struct fixture *fixture = *state;
    passed_ms = 0;
    fixture->worker.loop.advance = advance;
    fixture->script.holding = true;
    ask(fixture, 1);
    await_asked(fixture, 1);
    assert_false(fixture->script.held->abandoned);
    passed_ms = LEDGER_TIME_LIMIT_MS;
    worker_loop_run(&fixture->worker, 50);
    assert_true(fixture->script.held->abandoned);
}

/* ---- the end ---- */

static void test_a_drain_takes_no_more_and_answers_what_it_has(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    ask(fixture, 1);
    await_asked(fixture, 1);
    ledger_service_drain(fixture->service);
    ask(fixture, 2);
    worker_loop_run(&fixture->worker, 100);
    assert_int_equal(fixture->script.asked[LEDGER_CURSOR_PUT], 1);
    assert_false(ledger_service_is_drained(fixture->service));
    script_ledger_turn(&fixture->script);
    await_answers(fixture, 1);
    assert_true(ledger_service_is_drained(fixture->service));
    struct asker late = {0};
    dial(fixture, &late);
    assert_true(worker_loop_until(&fixture->worker, is_closed, &late, SOON_MS));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_request_is_asked_and_answered_under_its_id),
        TEST(test_what_is_no_request_ends_the_link),
        TEST(test_a_request_that_lacks_something_ends_the_link),
        TEST(test_who_has_gone_misses_the_answer_only),
        TEST(test_a_link_is_not_read_while_too_much_is_unanswered),
        TEST(test_links_are_bounded),
        TEST(test_the_oldest_stranger_gives_way_to_a_newcomer),
        TEST(test_what_nobody_waits_for_any_more_may_be_skipped),
        TEST(test_a_drain_takes_no_more_and_answers_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

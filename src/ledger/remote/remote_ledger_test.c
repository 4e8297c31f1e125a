/* A ledger over a link: the conformance suite, and what happens to requests when the link or the other process
 * fails. */
#include "ledger/remote/remote_ledger.h"

#include "conformance/ledger_harness.h"
#include "conformance/ledger_suite.h"
#include "ledger/remote/ledger_service.h"
#include "ledger/remote/ledger_wire.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger/sqlite/sqlite_test_file.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TURN_MS = 5, SOON_MS = 30000 };
/* So many requests that it shows, even on a busy machine, if each of them waited for the link. */
enum {
    FAILING_REQUESTS = 100,
    FAIL_FAST_MS_MAX = FAILING_REQUESTS * REMOTE_LEDGER_FIRST_LINK_MS / 10
};

static const struct slice SECRET = SLICE("the installation's secret");

/* ---- the other process, on a thread ---- */

struct server {
    struct worker_loop worker;
    struct test_file file;
    struct ledger *ledger;
    struct ledger_service *service;
    pthread_t thread;
    _Atomic bool stop;
    char address[64];
};

static struct peer_link_options make_link_options(struct worker_loop *worker, const char *name)
{
    return (struct peer_link_options){.loop = &worker->loop,
                                      .streams = &worker->streams,
                                      .random = &worker->random,
                                      .secret = SECRET,
                                      .name = slice_of(name)};
}

static void *run_server(void *arg)
{
    struct server *server = arg;
    while (!atomic_load(&server->stop))
        loop_turn(&server->worker.loop, TURN_MS);
    return NULL;
}

static void start_server(struct server *server, const char *address)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    struct sqlite_ledger_error sqlite_error;
    worker_loop_open(&server->worker);
    struct peer_link_options options = make_link_options(&server->worker, "ledger");
    server->ledger = sqlite_ledger_open(server->file.path, NULL, &sqlite_error);
    assert_non_null(server->ledger);
    server->service = ledger_service_open(&options, server->ledger, address, error);
    if (!server->service)
        fail_msg("%s", error);
    snprintf(server->address, sizeof(server->address), "127.0.0.1:%u",
             ledger_service_port(server->service));
    atomic_store(&server->stop, false);
    assert_int_equal(pthread_create(&server->thread, NULL, run_server, server), 0);
}

static void stop_server(struct server *server)
{
    atomic_store(&server->stop, true);
    pthread_join(server->thread, NULL);
    ledger_close(&server->ledger);
    ledger_service_free(&server->service);
    worker_loop_close(&server->worker);
}

static struct ledger *open_remote_ledger(const char *address, struct slice secret)
{
    struct remote_ledger_options options = {
        .address = address, .secret = secret, .name = SLICE("gateway")};
    struct ledger *ledger = remote_ledger_open(&options);
    assert_non_null(ledger);
    return ledger;
}

/* ---- the suite ---- */

static struct ledger *open_empty_ledger(void *context)
{
    struct server *server = context;
    test_file_make(&server->file);
    start_server(server, "127.0.0.1:0");
    return open_remote_ledger(server->address, SECRET);
}

static void stop_and_clean(void *context)
{
    struct server *server = context;
    stop_server(server);
    test_file_remove(&server->file);
}

/* ---- failures ---- */

struct fixture {
    struct server server;
    struct harness harness;
    struct ledger *ledger;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    *state = fixture;
    fixture->ledger = open_empty_ledger(&fixture->server);
    harness_init(&fixture->harness, fixture->ledger);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ledger_close(&fixture->ledger);
    harness_free(&fixture->harness);
    stop_and_clean(&fixture->server);
    free(fixture);
    return 0;
}

static int64_t now_ms(void)
{
    return clock_microseconds() / 1000;
}

static void test_requests_fail_fast_while_the_other_process_is_down(void **state)
{
    struct fixture *fixture = *state;
    struct harness *harness = &fixture->harness;
    assert_string_equal(harness_chat_create(harness, "c", "a", "b"),
                        "ok created c by a (2 a b) 0/0");
    stop_server(&fixture->server);
    harness_send(harness, "c", "a", "1", "may have waited for the link");
    int64_t begun_ms = now_ms();
    for (int i = 0; i < FAILING_REQUESTS; i++)
        assert_string_equal(harness_send(harness, "c", "a", "2", "x"), "unavailable");
    assert_in_range(now_ms() - begun_ms, 0, FAIL_FAST_MS_MAX);
    start_server(&fixture->server, fixture->server.address);
    begun_ms = now_ms();
    while (strcmp(harness_send(harness, "c", "a", "1", "again"), "unavailable") == 0)
        assert_true(now_ms() - begun_ms < SOON_MS);
    assert_non_null(strstr(harness_after(harness, "c", "a", 0, 10), "again"));
}

static void test_requests_fail_when_nobody_listens_at_the_start(void **state)
{
    (void)state;
    struct harness harness;
    struct ledger *ledger = open_remote_ledger("127.0.0.1:1", SECRET);
    harness_init(&harness, ledger);
    int64_t begun_ms = now_ms();
    assert_string_equal(harness_settings(&harness, "alice"), "unavailable");
    assert_in_range(now_ms() - begun_ms, REMOTE_LEDGER_FIRST_LINK_MS - 300, SOON_MS);
    begun_ms = now_ms();
    for (int i = 0; i < FAILING_REQUESTS; i++)
        assert_string_equal(harness_settings(&harness, "alice"), "unavailable");
    assert_in_range(now_ms() - begun_ms, 0, FAIL_FAST_MS_MAX);
    ledger_close(&ledger);
    harness_free(&harness);
}

static void test_wrong_secret_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct harness harness;
    struct ledger *ledger = open_remote_ledger(fixture->server.address, SLICE("a guess"));
    harness_init(&harness, ledger);
    assert_string_equal(harness_settings(&harness, "alice"), "unavailable");
    ledger_close(&ledger);
    harness_free(&harness);
}

static void test_close_waits_for_requests_in_flight(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = 500 };
    for (int i = 0; i < COUNT; i++) {
        struct ledger_last_seen seen = {SLICE("alice"), i, (uint64_t)i};
        ledger_last_seen_put(&fixture->harness.client, &seen, 1, harness_count_change,
                             &fixture->harness);
    }
    ledger_close(&fixture->ledger);
    harness_settle(&fixture->harness);
    assert_int_equal(fixture->harness.statuses[LEDGER_OK], COUNT);
}

static void test_requests_beyond_the_queue_are_busy(void **state)
{
    struct fixture *fixture = *state;
    struct harness *harness = &fixture->harness;
    enum { COUNT = LEDGER_QUEUE_MAX * 2 };
    for (int i = 0; i < COUNT; i++)
        ledger_cursor_put(&harness->client, SLICE("c"), SLICE("a"), SLICE("d"), 1,
                          harness_count_cursor, harness);
    harness_await(harness, COUNT);
    assert_true(harness->statuses[LEDGER_BUSY] > 0);
    assert_int_equal(harness->statuses[LEDGER_BUSY] + harness->statuses[LEDGER_NOT_FOUND], COUNT);
}

/* Each message is sent until it is acknowledged, while the other process restarts. */
static void test_restarts_lose_and_duplicate_no_message(void **state)
{
    struct fixture *fixture = *state;
    struct harness *harness = &fixture->harness;
    enum { COUNT = 60 };
    char id[16], expected[64];
    harness_chat_create(harness, "c", "a", "b");
    for (int i = 1; i <= COUNT; i++) {
        const char *line;
        int64_t begun_ms = now_ms();
        snprintf(id, sizeof(id), "k%d", i);
        if (i % 15 == 0) {
            stop_server(&fixture->server);
            start_server(&fixture->server, fixture->server.address);
        }
        do {
            line = harness_send(harness, "c", "a", id, "x");
            assert_true(now_ms() - begun_ms < SOON_MS);
        } while (strncmp(line, "ok", 2) != 0);
        snprintf(expected, sizeof(expected), "ok %d m-%s", i, id);
        assert_true(slice_starts_with(slice_of(line), slice_of(expected)));
    }
    assert_non_null(strstr(harness_after(harness, "c", "a", 0, 100), " /60"));
}

/* ---- a peer that the test scripts ---- */

/* With `closes_link`, drops the first request and closes the link. Then answers requests, the last first. */
struct scripted {
    struct worker_loop worker;
    struct listener listener;
    struct peer_link *link;
    unsigned links, requests, answers;
    uint64_t ids[8];
    size_t id_count;
    size_t answers_after; /* this number of requests */
    bool closes_link;
    pthread_t thread;
    _Atomic bool stop;
};

static void on_scripted_opened(struct peer_link *link, void *arg, struct slice name)
{
    (void)link;
    (void)name;
    ((struct scripted *)arg)->links++;
}

static void send_scripted_answer(struct scripted *scripted, uint64_t id)
{
    struct ledger_client client = {.clock = &scripted->worker.loop.clock};
    struct ledger_request *request = ledger_request_make(&client, LEDGER_OUTBOX_REMOVE, NULL);
    struct buffer frame = BUFFER_INIT;
    request->outcome.change.changed = true;
    ledger_wire_encode_answer(&frame, id, request);
    struct slice piece = buffer_slice(&frame);
    peer_link_send(scripted->link, &piece, 1);
    peer_link_send(scripted->link, &piece, 1); /* a repeated answer does no harm */
    scripted->answers++;
    buffer_free(&frame);
    ledger_request_free(request);
}

static void on_scripted_frame(struct peer_link *link, void *arg, struct slice frame)
{
    struct scripted *scripted = arg;
    struct ledger_wire_head head;
    struct slice body;
    assert_true(ledger_wire_decode_request_head(frame, &head, &body));
    scripted->requests++;
    if (scripted->closes_link) {
        peer_link_close(link, "closed");
        return;
    }
    scripted->ids[scripted->id_count++] = head.id;
    while (scripted->id_count > 0 && scripted->requests >= scripted->answers_after)
        send_scripted_answer(scripted, scripted->ids[--scripted->id_count]);
}

static void on_scripted_closed(struct peer_link *link, void *arg, const char *why)
{
    struct scripted *scripted = arg;
    (void)link;
    (void)why;
    scripted->link = NULL;
}

static const struct peer_link_owner scripted_owner = {.on_opened = on_scripted_opened,
                                                      .on_frame = on_scripted_frame,
                                                      .on_closed = on_scripted_closed};

static void on_scripted_connection(void *arg, int fd)
{
    struct scripted *scripted = arg;
    struct peer_link_options options = make_link_options(&scripted->worker, "scripted");
    if (scripted->links > 0)
        scripted->closes_link = scripted->answers_after == SIZE_MAX;
    assert_null(scripted->link);
    scripted->link = peer_link_accept(&options, fd, &scripted_owner, scripted);
}

static void *run_scripted(void *arg)
{
    struct scripted *scripted = arg;
    while (!atomic_load(&scripted->stop))
        loop_turn(&scripted->worker.loop, TURN_MS);
    return NULL;
}

static struct ledger *open_scripted(struct scripted *scripted)
{
    char error[LISTENER_ERROR_TEXT_MAX], address[64];
    struct listener_options listening = {.address = "127.0.0.1:0", .accept_queue_max = 8};
    worker_loop_open(&scripted->worker);
    assert_true(listener_open(&scripted->listener, &scripted->worker.loop, &listening,
                              on_scripted_connection, scripted, error));
    snprintf(address, sizeof(address), "127.0.0.1:%u", scripted->listener.port);
    assert_int_equal(pthread_create(&scripted->thread, NULL, run_scripted, scripted), 0);
    return open_remote_ledger(address, SECRET);
}

static void stop_scripted(struct scripted *scripted)
{
    atomic_store(&scripted->stop, true);
    pthread_join(scripted->thread, NULL);
    peer_link_drop(&scripted->link);
    listener_close(&scripted->listener);
    peer_link_drop(&scripted->link);
    worker_loop_close(&scripted->worker);
}

static void test_request_in_flight_is_sent_again_over_the_next_link(void **state)
{
    (void)state;
    struct scripted scripted = {.closes_link = true, .answers_after = 1};
    struct ledger *ledger = open_scripted(&scripted);
    struct harness harness;
    harness_init(&harness, ledger);
    assert_string_equal(harness_outbox_remove(&harness, "c", 1, 5000), "ok changed");
    assert_int_equal(harness.answers, 1);
    ledger_close(&ledger);
    stop_scripted(&scripted);
    assert_int_equal(scripted.links, 2);
    assert_int_equal(scripted.requests, 2);
    harness_free(&harness);
}

static void test_request_that_breaks_every_link_is_given_up(void **state)
{
    (void)state;
    struct scripted scripted = {.closes_link = true, .answers_after = SIZE_MAX};
    struct ledger *ledger = open_scripted(&scripted);
    struct harness harness;
    harness_init(&harness, ledger);
    assert_string_equal(harness_outbox_remove(&harness, "c", 1, 5000), "unavailable");
    ledger_close(&ledger);
    stop_scripted(&scripted);
    assert_int_equal(scripted.requests, REMOTE_LEDGER_SENDS_MAX);
    harness_free(&harness);
}

static void test_answers_in_any_order_reach_their_requests(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    struct scripted scripted = {.answers_after = COUNT};
    struct ledger *ledger = open_scripted(&scripted);
    struct harness harness;
    harness_init(&harness, ledger);
    for (int i = 0; i < COUNT; i++)
        ledger_chat_member_check(&harness.client, SLICE("c"), SLICE("a"), harness_count_change,
                                 &harness);
    harness_await(&harness, COUNT);
    assert_int_equal(harness.statuses[LEDGER_OK], COUNT);
    ledger_close(&ledger);
    stop_scripted(&scripted);
    harness_free(&harness);
}

static void test_request_without_answer_times_out(void **state)
{
    (void)state;
    struct scripted scripted = {.answers_after = 2};
    struct ledger *ledger = open_scripted(&scripted);
    struct harness harness;
    harness_init(&harness, ledger);
    ledger_chat_member_check(&harness.client, SLICE("c"), SLICE("a"), harness_count_change,
                             &harness);
    harness.clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&harness.client);
    assert_int_equal(harness.statuses[LEDGER_TIMEOUT], 1);
    harness_settle(&harness); /* the slot is free again without an answer */
    assert_int_equal(harness.answers, 1);
    ledger_close(&ledger);
    stop_scripted(&scripted);
    harness_free(&harness);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    struct server server = {0};
    struct ledger_suite_factory factory = {"remote", &server, open_empty_ledger, stop_and_clean};
    const struct CMUnitTest tests[] = {
        TEST(test_requests_fail_fast_while_the_other_process_is_down),
        cmocka_unit_test(test_requests_fail_when_nobody_listens_at_the_start),
        TEST(test_wrong_secret_is_refused),
        TEST(test_close_waits_for_requests_in_flight),
        TEST(test_requests_beyond_the_queue_are_busy),
        TEST(test_restarts_lose_and_duplicate_no_message),
        cmocka_unit_test(test_request_in_flight_is_sent_again_over_the_next_link),
        cmocka_unit_test(test_request_that_breaks_every_link_is_given_up),
        cmocka_unit_test(test_answers_in_any_order_reach_their_requests),
        cmocka_unit_test(test_request_without_answer_times_out),
    };
    int failed = ledger_suite_run(&factory);
    return failed ? failed : cmocka_run_group_tests(tests, NULL, NULL);
}

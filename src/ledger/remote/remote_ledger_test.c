/* A ledger over a link: the suite that every backend must pass, and what becomes of requests when the link
 * or the other process does not last. */
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

enum { TURN_MS = 5, SOON_MS = 5000 };

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

static struct peer_link_options linking(struct worker_loop *worker, const char *name)
{
    return (struct peer_link_options){.loop = &worker->loop,
                                      .streams = &worker->streams,
                                      .random = &worker->random,
                                      .secret = SECRET,
                                      .name = slice_of(name)};
}

static void *serve(void *arg)
{
    struct server *server = arg;
    while (!atomic_load(&server->stop))
        loop_turn(&server->worker.loop, TURN_MS);
    return NULL;
}

static void start(struct server *server, const char *address)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    struct sqlite_ledger_error sqlite_error;
    worker_loop_open(&server->worker);
    struct peer_link_options options = linking(&server->worker, "ledger");
    server->ledger = sqlite_ledger_open(server->file.path, NULL, &sqlite_error);
    assert_non_null(server->ledger);
    server->service = ledger_service_open(&options, server->ledger, address, error);
    if (!server->service)
        fail_msg("%s", error);
    snprintf(server->address, sizeof(server->address), "127.0.0.1:%u",
             ledger_service_port(server->service));
    atomic_store(&server->stop, false);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop(struct server *server)
{
    atomic_store(&server->stop, true);
    pthread_join(server->thread, NULL);
    ledger_close(&server->ledger);
    ledger_service_free(&server->service);
    worker_loop_close(&server->worker);
}

static struct ledger *open_at(const char *address, struct slice secret)
{
    struct remote_ledger_options options = {
        .address = address, .secret = secret, .name = SLICE("gateway")};
    struct ledger *ledger = remote_ledger_open(&options);
    assert_non_null(ledger);
    return ledger;
}

/* ---- the suite ---- */

static struct ledger *open_empty(void *context)
{
    struct server *server = context;
    test_file_make(&server->file);
    start(server, "127.0.0.1:0");
    return open_at(server->address, SECRET);
}

static void clean(void *context)
{
    struct server *server = context;
    stop(server);
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
    fixture->ledger = open_empty(&fixture->server);
    harness_init(&fixture->harness, fixture->ledger);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ledger_close(&fixture->ledger);
    harness_free(&fixture->harness);
    clean(&fixture->server);
    free(fixture);
    return 0;
}

static int64_t now_ms(void)
{
    return clock_microseconds() / 1000;
}

static void test_fails_fast_while_the_other_process_is_gone(void **state)
{
    struct fixture *fixture = *state;
    struct harness *harness = &fixture->harness;
    assert_string_equal(harness_chat_create(harness, "c", "a", "b"),
                        "ok created c by a (2 a b) 0/0");
    stop(&fixture->server);
    harness_send(harness, "c", "a", "1", "may have waited for the link");
    int64_t begun_ms = now_ms();
    for (int i = 0; i < 100; i++)
        assert_string_equal(harness_send(harness, "c", "a", "2", "x"), "unavailable");
    assert_true(now_ms() - begun_ms < 500);
    start(&fixture->server, fixture->server.address);
    begun_ms = now_ms();
    while (strcmp(harness_send(harness, "c", "a", "1", "again"), "unavailable") == 0)
        assert_true(now_ms() - begun_ms < SOON_MS);
    assert_non_null(strstr(harness_after(harness, "c", "a", 0, 10), "again"));
}

static void test_nobody_there_at_the_start(void **state)
{
    (void)state;
    struct harness harness;
    struct ledger *ledger = open_at("127.0.0.1:1", SECRET);
    harness_init(&harness, ledger);
    int64_t begun_ms = now_ms();
    assert_string_equal(harness_settings(&harness, "alice"), "unavailable");
    assert_in_range(now_ms() - begun_ms, REMOTE_LEDGER_FIRST_LINK_MS - 300,
                    REMOTE_LEDGER_FIRST_LINK_MS + 1500);
    begun_ms = now_ms();
    assert_string_equal(harness_settings(&harness, "alice"), "unavailable");
    assert_true(now_ms() - begun_ms < 100);
    ledger_close(&ledger);
    harness_free(&harness);
}

static void test_a_wrong_secret_gets_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct harness harness;
    struct ledger *ledger = open_at(fixture->server.address, SLICE("a guess"));
    harness_init(&harness, ledger);
    assert_string_equal(harness_settings(&harness, "alice"), "unavailable");
    ledger_close(&ledger);
    harness_free(&harness);
}

static void test_closing_waits_for_what_was_asked(void **state)
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

static void test_more_than_the_queue_holds_is_busy(void **state)
{
    struct fixture *fixture = *state;
    struct harness *harness = &fixture->harness;
    enum { COUNT = LEDGER_QUEUE_MAX * 2 };
    for (int i = 0; i < COUNT; i++)
        ledger_cursor_put(&harness->client, SLICE("c"), SLICE("a"), SLICE("d"), 1,
                          harness_count_change, harness);
    harness_await(harness, COUNT);
    assert_true(harness->statuses[LEDGER_BUSY] > 0);
    assert_int_equal(harness->statuses[LEDGER_BUSY] + harness->statuses[LEDGER_NOT_FOUND], COUNT);
}

/* Every message is asked for until it is there, while the other process comes and goes. */
static void test_nothing_is_lost_or_doubled_over_restarts(void **state)
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
            stop(&fixture->server);
            start(&fixture->server, fixture->server.address);
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

/* ---- a peer that does as the test pleases ---- */

/* Swallows the first request and cuts the link, then answers what comes, the last first. */
struct fickle {
    struct worker_loop worker;
    struct listener listener;
    struct peer_link *link;
    unsigned links, requests, answers;
    uint64_t ids[8];
    size_t id_count;
    size_t answers_after; /* so many requests */
    bool cuts;
    pthread_t thread;
    _Atomic bool stop;
};

static void fickle_opened(struct peer_link *link, void *arg, struct slice name)
{
    (void)link;
    (void)name;
    ((struct fickle *)arg)->links++;
}

static void answer_one(struct fickle *fickle, uint64_t id)
{
    struct ledger_client client = {.clock = &fickle->worker.loop.clock};
    struct ledger_request *request = ledger_request_make(&client, LEDGER_OUTBOX_REMOVE, NULL);
    struct buffer frame = BUFFER_INIT;
    request->outcome.change.changed = true;
    ledger_wire_encode_answer(&frame, id, request);
    struct slice piece = buffer_slice(&frame);
    peer_link_send(fickle->link, &piece, 1);
    peer_link_send(fickle->link, &piece, 1); /* an answer too many does no harm */
    fickle->answers++;
    buffer_free(&frame);
    ledger_request_free(request);
}

static void fickle_received(struct peer_link *link, void *arg, struct slice frame)
{
    struct fickle *fickle = arg;
    struct ledger_wire_head head;
    struct slice body;
    assert_true(ledger_wire_decode_request_head(frame, &head, &body));
    fickle->requests++;
    if (fickle->cuts) {
        peer_link_close(link);
        return;
    }
    fickle->ids[fickle->id_count++] = head.id;
    while (fickle->id_count > 0 && fickle->requests >= fickle->answers_after)
        answer_one(fickle, fickle->ids[--fickle->id_count]);
}

static void fickle_closed(struct peer_link *link, void *arg, const char *why)
{
    struct fickle *fickle = arg;
    (void)link;
    (void)why;
    fickle->link = NULL;
}

static const struct peer_link_owner fickle_owner = {fickle_opened, fickle_received, fickle_closed};

static void fickle_accepted(void *arg, int fd)
{
    struct fickle *fickle = arg;
    struct peer_link_options options = linking(&fickle->worker, "fickle");
    if (fickle->links > 0)
        fickle->cuts = fickle->answers_after == SIZE_MAX;
    assert_null(fickle->link);
    fickle->link = peer_link_accept(&options, fd, &fickle_owner, fickle);
}

static void *serve_fickle(void *arg)
{
    struct fickle *fickle = arg;
    while (!atomic_load(&fickle->stop))
        loop_turn(&fickle->worker.loop, TURN_MS);
    return NULL;
}

static struct ledger *open_fickle(struct fickle *fickle)
{
    char error[LISTENER_ERROR_TEXT_MAX], address[64];
    struct listener_options listening = {.address = "127.0.0.1:0", .backlog = 8};
    worker_loop_open(&fickle->worker);
    assert_true(listener_open(&fickle->listener, &fickle->worker.loop, &listening, fickle_accepted,
                              fickle, error));
    snprintf(address, sizeof(address), "127.0.0.1:%u", fickle->listener.port);
    assert_int_equal(pthread_create(&fickle->thread, NULL, serve_fickle, fickle), 0);
    return open_at(address, SECRET);
}

static void stop_fickle(struct fickle *fickle)
{
    atomic_store(&fickle->stop, true);
    pthread_join(fickle->thread, NULL);
    peer_link_drop(&fickle->link);
    listener_close(&fickle->listener);
    peer_link_drop(&fickle->link);
    worker_loop_close(&fickle->worker);
}

static void test_what_was_in_flight_is_asked_again(void **state)
{
    (void)state;
    struct fickle fickle = {.cuts = true, .answers_after = 1};
    struct ledger *ledger = open_fickle(&fickle);
    struct harness harness;
    harness_init(&harness, ledger);
    assert_string_equal(harness_published(&harness, "c", 1), "ok changed");
    assert_int_equal(harness.answers, 1);
    ledger_close(&ledger);
    stop_fickle(&fickle);
    assert_int_equal(fickle.links, 2);
    assert_int_equal(fickle.requests, 2);
    harness_free(&harness);
}

static void test_what_ends_every_link_is_given_up(void **state)
{
    (void)state;
    struct fickle fickle = {.cuts = true, .answers_after = SIZE_MAX};
    struct ledger *ledger = open_fickle(&fickle);
    struct harness harness;
    harness_init(&harness, ledger);
    assert_string_equal(harness_published(&harness, "c", 1), "unavailable");
    ledger_close(&ledger);
    stop_fickle(&fickle);
    assert_int_equal(fickle.requests, REMOTE_LEDGER_SENDS_MAX);
    harness_free(&harness);
}

static void test_answers_may_come_in_any_order(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    struct fickle fickle = {.answers_after = COUNT};
    struct ledger *ledger = open_fickle(&fickle);
    struct harness harness;
    harness_init(&harness, ledger);
    for (int i = 0; i < COUNT; i++)
        ledger_chat_member_check(&harness.client, SLICE("c"), SLICE("a"), harness_count_change,
                                 &harness);
    harness_await(&harness, COUNT);
    assert_int_equal(harness.statuses[LEDGER_OK], COUNT);
    ledger_close(&ledger);
    stop_fickle(&fickle);
    harness_free(&harness);
}

static void test_the_time_limit_holds_when_no_answer_comes(void **state)
{
    (void)state;
    struct fickle fickle = {.answers_after = 2};
    struct ledger *ledger = open_fickle(&fickle);
    struct harness harness;
    harness_init(&harness, ledger);
    ledger_chat_member_check(&harness.client, SLICE("c"), SLICE("a"), harness_count_change,
                             &harness);
    harness.clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&harness.client);
    assert_int_equal(harness.statuses[LEDGER_TIMEOUT], 1);
    harness_settle(&harness); /* the slot is free again, though nobody answered */
    assert_int_equal(harness.answers, 1);
    ledger_close(&ledger);
    stop_fickle(&fickle);
    harness_free(&harness);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    struct server server = {0};
    struct ledger_suite_factory factory = {"remote", &server, open_empty, clean};
    const struct CMUnitTest tests[] = {
        TEST(test_fails_fast_while_the_other_process_is_gone),
        cmocka_unit_test(test_nobody_there_at_the_start),
        TEST(test_a_wrong_secret_gets_nothing),
        TEST(test_closing_waits_for_what_was_asked),
        TEST(test_more_than_the_queue_holds_is_busy),
        TEST(test_nothing_is_lost_or_doubled_over_restarts),
        cmocka_unit_test(test_what_was_in_flight_is_asked_again),
        cmocka_unit_test(test_what_ends_every_link_is_given_up),
        cmocka_unit_test(test_answers_may_come_in_any_order),
        cmocka_unit_test(test_the_time_limit_holds_when_no_answer_comes),
    };
    int failed = ledger_suite_run(&factory);
    return failed ? failed : cmocka_run_group_tests(tests, NULL, NULL);
}

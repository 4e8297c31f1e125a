#include "messages/message_send.h"

#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* A feed that accepts or refuses events. */
struct fake_feed {
    struct feed_producer producer;
    bool refusing;
    int64_t deadline_ms; /* of the last publish */
    unsigned published;
    char last[64]; /* sequence and body of the last event */
};

struct fixture {
    struct script_ledger script;
    struct fake_feed feed;
    struct config config;
    struct random random;
    struct metrics metrics;
    struct message_plane plane;
    struct ledger_append_outcome outcome;
    const char *stored_body;
    unsigned results;
    bool accepted;
    struct message_ack ack;
    struct message_error error;
    char client_message_id[16];
    char ended_typing[32];
};

static void fake_publish(struct feed_producer *producer, const struct feed_event *event,
                         int64_t deadline_ms, feed_publish_done done, void *arg)
{
    struct fake_feed *fake = (struct fake_feed *)producer;
    fake->deadline_ms = deadline_ms;
    if (!fake->refusing) {
        fake->published++;
        snprintf(fake->last, sizeof(fake->last), "%llu %.*s", (unsigned long long)event->sequence,
                 SLICE_FORMAT(event->body));
    }
    done(arg, !fake->refusing);
}

static const struct feed_producer_operations FAKE_FEED = {.publish = fake_publish};

static void answer_request(void *arg, struct ledger_request *request)
{
    struct fixture *fixture = arg;
    if (request->operation == LEDGER_MESSAGE_APPEND) {
        request->outcome.append = fixture->outcome;
        if (!fixture->outcome.message_id.data)
            request->outcome.append.message_id = request->input.id;
        return;
    }
    assert_int_equal(request->operation, LEDGER_MESSAGES_AFTER);
    assert_int_equal(request->input.sequence, fixture->outcome.sequence - 1);
    struct ledger_message *message = ledger_request_alloc(request, sizeof(*message));
    *message = (struct ledger_message){.body = slice_of(fixture->stored_body)};
    request->outcome.messages.messages = message;
    request->outcome.messages.count = 1;
}

static void on_send_done(void *arg, const struct message_send_result *result)
{
    struct fixture *fixture = arg;
    struct slice id =
        result->accepted ? result->ack.client_message_id : result->error.client_message_id;
    fixture->results++;
    fixture->accepted = result->accepted;
    fixture->ack = result->ack;
    fixture->error = result->error;
    snprintf(fixture->client_message_id, sizeof(fixture->client_message_id), "%.*s",
             SLICE_FORMAT(id));
}

static void on_message_sent(void *arg, struct slice chat, struct slice user)
{
    struct fixture *fixture = arg;
    snprintf(fixture->ended_typing, sizeof(fixture->ended_typing), "%.*s %.*s", SLICE_FORMAT(chat),
             SLICE_FORMAT(user));
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.feed.producer = {.operations = &FAKE_FEED, .uses_outbox = true},
                               .outcome = {.sequence = 7, .members_version = 1}};
    fixture.config.gateway.backpressure.inbound.max_message_size_bytes = 8;
    fixture.config.gateway.timeouts.durability_rpc_ms = 5000;
    script_ledger_init(&fixture.script);
    fixture.script.answer = answer_request;
    fixture.script.arg = &fixture;
    random_init_seeded(&fixture.random, 1);
    fixture.plane = (struct message_plane){.config = &fixture.config,
                                           .clock = &fixture.script.clock,
                                           .random = &fixture.random,
                                           .ledger = &fixture.script.client,
                                           .feed = &fixture.feed.producer,
                                           .metrics = &fixture.metrics,
                                           .on_sent = on_message_sent,
                                           .on_sent_arg = &fixture};
    assert_true(message_plane_init(&fixture.plane, 1));
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->script.client.outstanding, 0);
    assert_true(message_plane_idle(&fixture->plane));
    message_plane_free(&fixture->plane);
    return 0;
}

static void start_send(struct fixture *fixture, const char *body)
{
    struct message_send_order order = {.chat = SLICE("c"),
                                       .sender = SLICE("alice"),
                                       .client_message_id = SLICE("id-1"),
                                       .body = slice_of(body)};
    fixture->results = 0;
    message_send(&fixture->plane, &order, on_send_done, fixture);
}

static void send_and_complete(struct fixture *fixture, const char *body)
{
    start_send(fixture, body);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->results, 1);
    assert_string_equal(fixture->client_message_id, "id-1");
}

static void test_send_is_acknowledged_after_commit_and_publish(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    start_send(fixture, "hello");
    assert_int_equal(fixture->results, 0);
    assert_int_equal(fixture->feed.published, 0);
    assert_false(message_plane_idle(&fixture->plane));
    script_ledger_turn(&fixture->script);
    assert_true(fixture->accepted);
    assert_int_equal(fixture->ack.sequence, 7);
    assert_false(fixture->ack.duplicate);
    assert_string_equal(fixture->feed.last, "7 hello");
    assert_string_equal(fixture->ended_typing, "c alice");
    assert_int_equal(fixture->metrics.values[METRIC_MESSAGES_PERSISTED], 1);
}

static void test_body_size_is_limited_in_bytes(void **state)
{
    struct fixture *fixture = *state;
    send_and_complete(fixture, "12345678");
    assert_true(fixture->accepted);
    send_and_complete(fixture, "éééé1"); /* 5 characters, 9 bytes */
    assert_int_equal(fixture->error.code, ERROR_MESSAGE_TOO_LARGE);
    assert_int_equal(fixture->script.submitted[LEDGER_MESSAGE_APPEND], 1);
}

static void test_failed_publish_fails_the_send_and_its_repetition_publishes(void **state)
{
    struct fixture *fixture = *state;
    fixture->feed.refusing = true;
    send_and_complete(fixture, "first");
    assert_false(fixture->accepted);
    assert_int_equal(fixture->error.code, ERROR_SERVICE_UNAVAILABLE);
    assert_true(fixture->error.retry_after_ms > 0);
    assert_string_equal(fixture->ended_typing, "");

    fixture->feed.refusing = false;
    fixture->outcome.duplicate = true;
    fixture->outcome.body_differs = true;
    fixture->stored_body = "first";
    send_and_complete(fixture, "second");
    assert_true(fixture->accepted);
    assert_int_equal(fixture->ack.sequence, 7);
    assert_true(fixture->ack.duplicate && fixture->ack.body_differs);
    assert_string_equal(fixture->feed.last, "7 first");

    fixture->outcome.published = true;
    send_and_complete(fixture, "first");
    assert_true(fixture->accepted);
    assert_int_equal(fixture->feed.published, 1);
    assert_int_equal(fixture->metrics.values[METRIC_IDEMPOTENCY_HITS], 2);
}

/* F 2.2: without an outbox, only a publish makes sure that the event reaches a consumer. */
static void test_repetition_is_published_again_without_an_outbox(void **state)
{
    struct fixture *fixture = *state;
    fixture->feed.producer.uses_outbox = false;
    fixture->outcome.duplicate = true;
    fixture->outcome.published = true;
    fixture->stored_body = "first";
    send_and_complete(fixture, "first");
    assert_true(fixture->accepted && fixture->ack.duplicate);
    assert_string_equal(fixture->feed.last, "7 first");
}

static void test_publish_has_what_is_left_of_the_time_limit(void **state)
{
    struct fixture *fixture = *state;
    int64_t started_ms = fixture->script.clock.now_ms;
    fixture->script.holding = true;
    start_send(fixture, "slow");
    fixture->script.clock.now_ms += 1234;
    script_ledger_turn(&fixture->script);
    assert_true(fixture->accepted);
    assert_int_equal(fixture->feed.deadline_ms, started_ms + 5000);
}

static void test_every_ledger_status_has_its_error(void **state)
{
    static const enum error_code ERRORS[LEDGER_STATUS_COUNT] = {
        [LEDGER_INVALID] = ERROR_INVALID_MESSAGE,
        [LEDGER_NOT_FOUND] = ERROR_NOT_FOUND,
        [LEDGER_CONFLICT] = ERROR_INVALID_MESSAGE,
        [LEDGER_FORBIDDEN] = ERROR_FORBIDDEN,
        [LEDGER_LIMIT] = ERROR_INVALID_MESSAGE,
        [LEDGER_HALTED] = ERROR_CHAT_HALTED,
        [LEDGER_BUSY] = ERROR_SERVER_BUSY,
        [LEDGER_TIMEOUT] = ERROR_SERVICE_UNAVAILABLE,
        [LEDGER_UNAVAILABLE] = ERROR_SERVICE_UNAVAILABLE,
    };
    struct fixture *fixture = *state;
    for (int status = LEDGER_OK + 1; status < LEDGER_STATUS_COUNT; status++) {
        fixture->script.status = (enum ledger_status)status;
        send_and_complete(fixture, "text");
        assert_false(fixture->accepted);
        assert_int_equal(fixture->error.code, ERRORS[status]);
    }
    assert_int_equal(fixture->metrics.values[METRIC_COUNTER_CORRUPTION], 1);
    assert_int_equal(fixture->feed.published, 0);
}

static void test_timeout_fails_the_send_and_a_late_commit_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    start_send(fixture, "late");
    fixture->script.clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&fixture->script.client);
    assert_int_equal(fixture->results, 1);
    assert_int_equal(fixture->error.code, ERROR_SERVICE_UNAVAILABLE);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->results, 1);
    assert_int_equal(fixture->feed.published, 0);
}

static void test_stop_fails_sends_under_way(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    start_send(fixture, "going");
    fixture->plane.stopped = true;
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->results, 1);
    assert_int_equal(fixture->error.code, ERROR_SERVICE_UNAVAILABLE);
    send_and_complete(fixture, "late");
    assert_int_equal(fixture->error.code, ERROR_SERVICE_UNAVAILABLE);
    assert_int_equal(fixture->feed.published, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_send_is_acknowledged_after_commit_and_publish, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_body_size_is_limited_in_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_failed_publish_fails_the_send_and_its_repetition_publishes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_repetition_is_published_again_without_an_outbox,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_publish_has_what_is_left_of_the_time_limit, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_every_ledger_status_has_its_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_timeout_fails_the_send_and_a_late_commit_is_dropped,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stop_fails_sends_under_way, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A queue of a scripted ledger, with a scripted endpoint, on virtual time. */
#include "base/container.h"
#include "support/script_ledger.h"
#include "support/script_server.h"
#include "webhooks/webhook_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TAKEN "HTTP/1.1 204 No Content\r\n\r\n"
#define REFUSED "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"

enum { EVENTS_MAX = 16, TURNS_MAX = 4000, STEP_MS = 25 };

/* What the scripted ledger holds. */
struct shelf {
    struct ledger_event events[EVENTS_MAX];
    size_t count;
    size_t buried;
    char holder[32];
    uint64_t version;
};

struct fixture {
    struct script_ledger ledger;
    struct script_server server;
    struct shelf shelf;
    struct config config;
    struct webhook_endpoint endpoint;
    struct loop loop;
    struct random random;
    struct metrics metrics;
    struct http_client *client;
    struct webhook_queue queue;
};

static int64_t read_metric(const struct metrics *metrics, enum metric metric)
{
    return atomic_load(&metrics->values[metric]);
}

/* ---- the ledger ---- */

static void take_off_shelf(struct shelf *shelf, const struct ledger_request_input *input)
{
    for (size_t i = 0; i < input->id_count; i++)
        for (size_t j = 0; j < shelf->count; j++)
            if (slice_equal(shelf->events[j].position, input->ids[i])) {
                memmove(&shelf->events[j], &shelf->events[j + 1],
                        (--shelf->count - j) * sizeof(shelf->events[0]));
                break;
            }
}

static void answer_request(void *arg, struct ledger_request *request)
{
    struct shelf *shelf = &((struct fixture *)arg)->shelf;
    const struct ledger_request_input *input = &request->input;
    switch (request->operation) {
    case LEDGER_EVENTS_LIST:
        request->outcome.events.events = shelf->events;
        request->outcome.events.count = shelf->count;
        break;
    case LEDGER_EVENTS_BURY:
        shelf->buried += input->id_count;
        take_off_shelf(shelf, input);
        break;
    case LEDGER_EVENTS_REMOVE:
        take_off_shelf(shelf, input);
        break;
    case LEDGER_EVENT_LEASE:
        if (!shelf->holder[0] || slice_is(input->device, shelf->holder) ||
            input->sequence == shelf->version) {
            snprintf(shelf->holder, sizeof(shelf->holder), "%.*s", SLICE_FORMAT(input->device));
            shelf->version++;
        }
        __attribute__((fallthrough));
    case LEDGER_EVENT_QUEUE_GET:
        request->outcome.event_queue.holder = slice_of(shelf->holder);
        request->outcome.event_queue.lease_version = shelf->version;
        request->outcome.event_queue.event_count = shelf->count;
        break;
    default:
        break;
    }
}

static void shelve(struct fixture *f, const char *position, const char *subject)
{
    f->shelf.events[f->shelf.count++] = (struct ledger_event){.position = slice_of(position),
                                                              .type = LEDGER_EVENT_MESSAGE_CREATED,
                                                              .subject = slice_of(subject),
                                                              .time_ms = f->loop.clock.wall_ms,
                                                              .data = SLICE("{\"chat_id\":\"c\"}")};
}

/* ---- time ---- */

static void step_clock(struct clock *clock)
{
    clock->now_ms += STEP_MS;
    clock->wall_ms += STEP_MS;
}

static bool turn_until(struct fixture *f, bool (*holds)(struct fixture *f))
{
    for (int i = 0; i < TURNS_MAX; i++) {
        if (holds(f))
            return true;
        loop_turn(&f->loop, 1);
        script_server_serve(&f->server);
        script_ledger_turn(&f->ledger);
    }
    return false;
}

static bool is_shelf_empty(struct fixture *f)
{
    return f->shelf.count == 0;
}

static bool is_queue_held(struct fixture *f)
{
    return f->queue.is_held;
}

static bool is_queue_not_held(struct fixture *f)
{
    return !f->queue.is_held;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    script_server_start(&f->server);
    script_ledger_init(&f->ledger);
    f->ledger.answer = answer_request;
    f->ledger.arg = f;
    assert_true(loop_init(&f->loop));
    f->loop.advance = step_clock;
    random_init_seeded(&f->random, 7);
    f->config.webhooks.batch_max = 4;
    f->config.webhooks.batch_ms = 100;
    f->config.webhooks.give_up_ms = 60000;
    f->config.webhooks.timeout_ms = 1000000;
    f->config.webhooks.ca_file = "";
    snprintf(f->endpoint.url, sizeof(f->endpoint.url), "%s/hook", f->server.url);
    snprintf(f->endpoint.queue, sizeof(f->endpoint.queue), "q");
    f->client = http_client_make(&f->loop, 2);
    assert_non_null(f->client);
    webhook_queue_init(&f->queue, &(struct webhook_queue_parts){.config = &f->config,
                                                                .endpoint = &f->endpoint,
                                                                .name = f->endpoint.queue,
                                                                .holder = SLICE("gw-1"),
                                                                .loop = &f->loop,
                                                                .random = &f->random,
                                                                .metrics = &f->metrics,
                                                                .client = f->client,
                                                                .ledger = &f->ledger.client});
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    webhook_queue_stop(&f->queue);
    script_ledger_turn(&f->ledger);
    http_client_free(&f->client);
    webhook_queue_free(&f->queue);
    loop_free(&f->loop);
    script_server_stop(&f->server);
    free(f);
    return 0;
}

/* ---- tests ---- */

static void events_are_removed_when_they_were_taken(void **state)
{
    struct fixture *f = *state;
    const char *const positions[] = {"1", "2", "3", "4", "5"};
    for (size_t i = 0; i < 5; i++)
        shelve(f, positions[i], "c");
    script_server_then(&f->server, TAKEN);
    script_server_then(&f->server, TAKEN);
    webhook_queue_start(&f->queue);
    assert_true(turn_until(f, is_shelf_empty));
    assert_int_equal(f->server.request_count, 2); /* four and one */
    assert_non_null(strstr(f->server.requests[0], "{\"events\":[{\"id\":\"evt_"));
    assert_non_null(strstr(f->server.requests[0], "\"type\":\"message.created\""));
    assert_int_equal(f->shelf.buried, 0);
    assert_int_equal(read_metric(&f->metrics, METRIC_WEBHOOKS_SENT), 5);
}

static size_t count_events(const char *request)
{
    size_t count = 0;
    while ((request = strstr(request, "\"id\":\"evt_"))) {
        request++;
        count++;
    }
    return count;
}

static bool has_sent_one(struct fixture *f)
{
    return read_metric(&f->metrics, METRIC_WEBHOOKS_SENT) >= 1;
}

static void a_refused_event_goes_alone_and_keeps_its_place_before_its_own_subject(void **state)
{
    struct fixture *f = *state;
    shelve(f, "1", "bad");
    shelve(f, "2", "bad");
    shelve(f, "3", "good");
    script_server_then(&f->server, REFUSED); /* all three */
    script_server_then(&f->server, REFUSED); /* "1" alone */
    for (int i = 0; i < 3; i++)
        script_server_then(&f->server, TAKEN);
    webhook_queue_start(&f->queue);
    assert_true(turn_until(f, has_sent_one));
    assert_int_equal(count_events(f->server.requests[0]), 3);
    assert_int_equal(count_events(f->server.requests[1]), 1);
    assert_int_equal(count_events(f->server.requests[2]), 1); /* "1" again, or "3" */
    assert_true(turn_until(f, is_shelf_empty));
    assert_int_equal(read_metric(&f->metrics, METRIC_WEBHOOKS_FAILED), 2);
    assert_int_equal(read_metric(&f->metrics, METRIC_WEBHOOKS_SENT), 3);
}

static void what_is_not_taken_in_time_is_a_dead_letter(void **state)
{
    struct fixture *f = *state;
    f->config.webhooks.give_up_ms = 3000;
    shelve(f, "1", "c");
    shelve(f, "2", "d");
    for (int i = 0; i < 20; i++)
        script_server_then(&f->server, REFUSED);
    webhook_queue_start(&f->queue);
    assert_true(turn_until(f, is_shelf_empty));
    assert_int_equal(f->shelf.buried, 2);
    assert_int_equal(read_metric(&f->metrics, METRIC_WEBHOOKS_DEAD), 2);
    assert_true(f->server.request_count < 20); /* with back-off */
}

static bool has_waited_a_lease(struct fixture *f)
{
    return f->loop.clock.now_ms - f->queue.version_seen_at_ms >= LEDGER_EVENT_LEASE_MS - 1000 &&
           f->queue.lease_version == 7;
}

static void a_queue_is_taken_over_when_its_lease_is_not_renewed(void **state)
{
    struct fixture *f = *state;
    snprintf(f->shelf.holder, sizeof(f->shelf.holder), "gw-2");
    f->shelf.version = 7;
    shelve(f, "1", "c");
    script_server_then(&f->server, TAKEN);
    webhook_queue_start(&f->queue);
    assert_true(turn_until(f, has_waited_a_lease));
    assert_false(f->queue.is_held);
    assert_int_equal(f->server.request_count, 0);
    assert_true(turn_until(f, is_queue_held));
    assert_true(turn_until(f, is_shelf_empty));
    assert_string_equal(f->shelf.holder, "gw-1");
}

static void a_queue_is_given_up_when_somebody_else_has_it_or_the_ledger_is_silent(void **state)
{
    struct fixture *f = *state;
    webhook_queue_start(&f->queue);
    assert_true(turn_until(f, is_queue_held));
    snprintf(f->shelf.holder, sizeof(f->shelf.holder), "gw-2");
    f->shelf.version += 5;
    shelve(f, "1", "c");
    shelve(f, "2", "c");
    assert_true(turn_until(f, is_queue_not_held));
    assert_int_equal(f->queue.lane.count, f->queue.lane.in_flight_count);

    f->shelf.holder[0] = '\0';
    assert_true(turn_until(f, is_queue_held));
    f->ledger.status = LEDGER_UNAVAILABLE;
    f->ledger.answer = NULL;
    assert_true(turn_until(f, is_queue_not_held));
}

static bool has_failed_twice(struct fixture *f)
{
    return read_metric(&f->metrics, METRIC_WEBHOOKS_FAILED) >= 2;
}

static void an_event_is_sent_again_only_if_its_removal_was_not_needed(void **state)
{
    struct fixture *f = *state;
    shelve(f, "1", "c");
    script_server_then(&f->server, REFUSED);
    script_server_then(&f->server, REFUSED);
    webhook_queue_start(&f->queue);
    assert_true(turn_until(f, has_failed_twice));
    shelve(f, "2", "d"); /* listed while the first one waits */
    script_server_then(&f->server, TAKEN);
    script_server_then(&f->server, TAKEN);
    assert_true(turn_until(f, is_shelf_empty));
    assert_int_equal(read_metric(&f->metrics, METRIC_WEBHOOKS_SENT), 2);
    assert_int_equal(f->server.request_count, 4);
}

static void shelve_message(struct fixture *f, const char *position, const char *chat,
                           const char *body)
{
    shelve(f, position, chat);
    f->shelf.events[f->shelf.count - 1].sequence = 1;
    f->shelf.events[f->shelf.count - 1].body = slice_of(body);
}

static const char *find_event_id(const char *request)
{
    return strstr(request, "\"id\":\"evt_");
}

static void an_event_has_the_body_of_its_message_at_the_end_of_its_data(void **state)
{
    struct fixture *f = *state;
    shelve_message(f, "1", "c", "he \"said\"");
    script_server_then(&f->server, TAKEN);
    webhook_queue_start(&f->queue);
    assert_true(turn_until(f, is_shelf_empty));
    assert_non_null(strstr(f->server.requests[0],
                           "\"data\":{\"chat_id\":\"c\",\"body\":\"he \\\"said\\\"\"}}]}"));
}

static bool has_failed(struct fixture *f)
{
    return read_metric(&f->metrics, METRIC_WEBHOOKS_FAILED) >= 1;
}

/* The message is deleted while its event waits for the next try, long before events would be listed again. */
static void the_body_of_a_deleted_message_is_not_sent_again(void **state)
{
    struct fixture *f = *state;
    f->config.webhooks.batch_ms = 50000;
    shelve_message(f, "1", "c", "secret");
    script_server_then(&f->server, REFUSED);
    webhook_queue_start(&f->queue);
    assert_true(turn_until(f, has_failed));
    int64_t failed_at_ms = f->loop.clock.now_ms;
    f->shelf.events[0].body = SLICE("");
    CONTAINER_OF(f->queue.lane.events.next, struct webhook_event, item)->read_at_ms -=
        WEBHOOK_READ_AGE_MAX_MS;
    script_server_then(&f->server, TAKEN);
    assert_true(turn_until(f, is_shelf_empty));
    const char *const *requests =
        (const char *const[]){f->server.requests[0], f->server.requests[1]};
    assert_int_equal(f->server.request_count, 2);
    assert_true(f->loop.clock.now_ms - failed_at_ms < 10000);
    assert_non_null(strstr(requests[0], "\"body\":\"secret\""));
    assert_null(strstr(requests[1], "secret"));
    assert_non_null(strstr(requests[1], "\"data\":{\"chat_id\":\"c\",\"deleted\":true}}]}"));
    assert_memory_equal(find_event_id(requests[0]), find_event_id(requests[1]),
                        sizeof("\"id\":\"") - 1 + WEBHOOK_EVENT_ID_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_are_removed_when_they_were_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_refused_event_goes_alone_and_keeps_its_place_before_its_own_subject, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_taken_in_time_is_a_dead_letter, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_queue_is_taken_over_when_its_lease_is_not_renewed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_queue_is_given_up_when_somebody_else_has_it_or_the_ledger_is_silent, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(an_event_is_sent_again_only_if_its_removal_was_not_needed,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_event_has_the_body_of_its_message_at_the_end_of_its_data,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_body_of_a_deleted_message_is_not_sent_again, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "feed/kafka/kafka_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <time.h>

#include <cmocka.h>

enum { WAIT_MS = 60000, STEP_MS = 10 };

static struct config config;
static struct loop loop;

/* Nobody listens at this address, which librdkafka reports. */
static int set_up(void **state)
{
    (void)state;
    static const char *const SETS[] = {"feed.url=kafka://127.0.0.1:1"};
    struct config_inputs inputs = {.assignments = SETS, .assignment_count = 1};
    struct config_error error;
    return config_load(&config, &inputs, &error) && loop_init(&loop) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    loop_free(&loop);
    config_free(&config);
    return 0;
}

static void ignore_event(void *arg, rd_kafka_event_t *event)
{
    (void)arg, (void)event;
}

static void count_turn(void *arg)
{
    ++*(unsigned *)arg;
}

static void wait_for_events(rd_kafka_queue_t *queue)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    for (int waited_ms = 0; rd_kafka_queue_length(queue) == 0; waited_ms += STEP_MS) {
        assert_true(waited_ms < WAIT_MS);
        nanosleep(&step, NULL);
    }
}

/* librdkafka's threads may report before the queue is watched, on a busy machine. */
static void test_events_from_before_the_watch_are_handled(void **state)
{
    (void)state;
    static const struct kafka_property NONE[] = {{NULL, NULL}};
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX] = "";
    unsigned turns = 0;
    eventfd_t count;
    struct kafka_client client;
    struct kafka_client_options options = {.config = &config,
                                           .loop = &loop,
                                           .type = RD_KAFKA_PRODUCER,
                                           .properties = NONE,
                                           .on_event = ignore_event,
                                           .on_turn = count_turn,
                                           .arg = &turns};
    assert_true(kafka_client_start(&client, &options, error));
    rd_kafka_queue_io_event_enable(client.queue, -1, NULL, 0);
    eventfd_read(client.source.fd, &count);
    wait_for_events(client.queue);
    kafka_client_watch(&client, client.queue);
    loop_turn(&loop, STEP_MS);
    assert_int_equal(turns, 1);
    kafka_client_stop(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_events_from_before_the_watch_are_handled, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "metrics/exposition.h"

#include "metrics/exposition_text.h"
#include "metrics/metric_row.h"
#include "metrics/process.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { START_MS = 5000, WORKERS = 2 };

struct fixture {
    struct exposition exposition;
    struct metrics workers[WORKERS];
    struct buffer text;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    exposition_init(&fixture->exposition, START_MS, 1700000000500);
    for (size_t i = 0; i < WORKERS; i++)
        exposition_add(&fixture->exposition, &fixture->workers[i]);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    exposition_free(&fixture->exposition);
    buffer_free(&fixture->text);
    free(fixture);
    return 0;
}

static const char *write_text(struct fixture *fixture, int64_t now_ms)
{
    buffer_clear(&fixture->text);
    exposition_write(&fixture->text, &fixture->exposition, now_ms);
    buffer_append_byte(&fixture->text, '\0');
    assert_false(fixture->text.failed);
    return fixture->text.data;
}

/* Returns the value of that series; fails if there is none. */
static double shown_value(const char *text, const char *series)
{
    char start[160];
    snprintf(start, sizeof start, "\nrollcall_%s ", series);
    const char *line = strstr(text, start);
    if (!line) {
        fail_msg("no series %s", series);
        return NAN;
    }
    return strtod(line + strlen(start), NULL);
}

static void assert_shown(const char *text, const char *series, double expected)
{
    double value = shown_value(text, series);
    if (!(fabs(value - expected) <= 1e-6))
        fail_msg("%s is %.9g, not %.9g", series, value, expected);
}

static void every_metric_has_help_type_and_value(void **state)
{
    const char *text = write_text(*state, START_MS);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metric_row *row = &metric_rows[metric];
        char head[400];
        bool is_counter =
            row->shown == METRIC_SHOWN_COUNTER || row->shown == METRIC_SHOWN_LARGEST_COUNTER;
        snprintf(head, sizeof head, "# HELP rollcall_%s %s\n# TYPE rollcall_%s %s\nrollcall_%s ",
                 row->name, row->help, row->name, is_counter ? "counter" : "gauge", row->name);
        if (!strstr(text, head))
            fail_msg("not found: %s", head);
    }
    assert_memory_equal(text, "# HELP ", 7);
}

static bool is_exposition_line(const char *line)
{
    char name[128], value[64];
    if (strncmp(line, "# HELP rollcall_", 16) == 0 || strncmp(line, "# TYPE rollcall_", 16) == 0)
        return true;
    const char *at = line + strspn(line, "abcdefghijklmnopqrstuvwxyz_0123456789");
    if (at == line)
        return false;
    if (*at == '{' && sscanf(at, "{%127[^}]}", name) == 1)
        at = strchr(at, '}') + 1;
    return sscanf(at, " %63s", value) == 1 && strspn(value, "0123456789.e+-") == strlen(value);
}

static void every_line_follows_the_format(void **state)
{
    struct fixture *fixture = *state;
    metrics_latency(&fixture->workers[0], LATENCY_PERSIST, 12345);
    char *text = (char *)write_text(fixture, START_MS + 100);
    assert_int_equal(text[fixture->text.len - 2], '\n');
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (!is_exposition_line(line))
            fail_msg("malformed line: %s", line);
}

static void gauges_add_up_workers_or_choose_one(void **state)
{
    struct fixture *fixture = *state;
    metrics_add(&fixture->workers[0], METRIC_HEARTBEATS, 3);
    metrics_add(&fixture->workers[1], METRIC_HEARTBEATS, 4);
    metrics_set(&fixture->workers[0], METRIC_SUBSCRIPTIONS, -2);
    metrics_set(&fixture->workers[1], METRIC_SUBSCRIPTIONS, 10);
    metrics_set(&fixture->workers[0], METRIC_FANOUT_DLQ_DEPTH, 6);
    metrics_set(&fixture->workers[1], METRIC_FANOUT_DLQ_DEPTH, 5);
    metrics_set(&fixture->workers[1], METRIC_PRESENCE_STALE_RATIO, 125);
    metrics_set(&fixture->workers[1], METRIC_REDIS_AVAILABLE, 0);
    const char *text = write_text(fixture, START_MS);
    assert_shown(text, "heartbeat_received", 7);
    assert_shown(text, "presence_subscriptions", 8);
    assert_shown(text, "fanout_dlq_depth", 6);
    assert_shown(text, "presence_stale_ratio", 0.125);
    assert_shown(text, "redis_available", 0);
    assert_shown(text, "durability_feed_available", 1);
    assert_shown(text, "durability_kafka_available", 1);
}

static void counters_of_others_are_not_added(void **state)
{
    struct fixture *fixture = *state;
    metrics_set(&fixture->workers[0], METRIC_REDIS_EVICTED_KEYS, 30);
    metrics_set(&fixture->workers[1], METRIC_REDIS_EVICTED_KEYS, 40);
    const char *text = write_text(fixture, START_MS);
    assert_shown(text, "redis_evicted_keys", 40);
    assert_non_null(strstr(text, "# TYPE rollcall_redis_evicted_keys counter\n"));
}

static void rate_covers_its_period_only(void **state)
{
    struct fixture *fixture = *state;
    assert_shown(write_text(fixture, START_MS), "heartbeat_qps", 0);
    metrics_add(&fixture->workers[0], METRIC_HEARTBEATS, 10);
    assert_shown(write_text(fixture, START_MS + 500), "heartbeat_qps", 20);

    /* Add 10, then 100 a second for half a minute: the first 10 are outside of the period. */
    for (int second = 1; second <= 30; second++) {
        exposition_sample(&fixture->exposition, START_MS + second * 1000);
        metrics_add(&fixture->workers[second % WORKERS], METRIC_HEARTBEATS, 100);
    }
    assert_shown(write_text(fixture, START_MS + 31000), "heartbeat_qps", 100);
    assert_shown(write_text(fixture, START_MS + 31000), "presence_transitions_per_sec", 0);

    /* A stalled sampler makes the period longer. */
    assert_shown(write_text(fixture, START_MS + 50000), "heartbeat_qps", 100. / 20);
}

static void sample_ring_wraps_around(void **state)
{
    struct fixture *fixture = *state;
    int second = 0;
    while (++second <= 5 * EXPOSITION_SAMPLES) {
        metrics_add(&fixture->workers[0], METRIC_MESSAGES_PERSISTED, second);
        exposition_sample(&fixture->exposition, START_MS + second * 1000);
    }
    double expected = 0;
    for (int i = 1; i <= METRICS_RATE_PERIOD_S; i++)
        expected += (double)(second - i) / METRICS_RATE_PERIOD_S;
    const char *text = write_text(fixture, START_MS + (second - 1) * 1000);
    assert_shown(text, "durability_messages_persisted_rate", expected);
}

/* The ring then does not reach back to the start of the period, so its oldest sample is used. */
static void frequent_samples_make_periods_shorter(void **state)
{
    enum { STEP_MS = 10, STEPS = 2 * EXPOSITION_SAMPLES + 7 };
    struct fixture *fixture = *state;
    for (int step = 1; step <= STEPS; step++) {
        metrics_add(&fixture->workers[0], METRIC_MESSAGES_PERSISTED, step);
        exposition_sample(&fixture->exposition, START_MS + step * STEP_MS);
    }
    double expected = 0;
    for (int i = 0; i < EXPOSITION_SAMPLES - 1; i++)
        expected += (STEPS - i) * 1000.0 / (STEP_MS * (EXPOSITION_SAMPLES - 1));
    const char *text = write_text(fixture, START_MS + STEPS * STEP_MS);
    assert_shown(text, "durability_messages_persisted_rate", expected);
}

static void shares_cover_the_last_minute(void **state)
{
    struct fixture *fixture = *state;
    const char *text = write_text(fixture, START_MS);
    assert_shown(text, "routing_lookup_errors_rate", 0);
    assert_shown(text, "durability_idempotency_hit_rate", 0);

    metrics_add(&fixture->workers[0], METRIC_ROUTING_LOOKUPS, 100);
    metrics_add(&fixture->workers[1], METRIC_ROUTING_LOOKUP_ERRORS, 25);
    metrics_add(&fixture->workers[0], METRIC_MESSAGES_PERSISTED, 60);
    metrics_add(&fixture->workers[0], METRIC_IDEMPOTENCY_HITS, 20);
    metrics_set(&fixture->workers[0], METRIC_TRANSACTION_COMMITS, 60);
    metrics_set(&fixture->workers[0], METRIC_TRANSACTION_CONFLICTS, 40);
    metrics_add(&fixture->workers[0], METRIC_FANOUT_SKIPPED, 5);
    text = write_text(fixture, START_MS + 10);
    assert_shown(text, "routing_lookup_errors_rate", 0.25);
    assert_shown(text, "durability_idempotency_hit_rate", 0.25);
    assert_shown(text, "durability_transaction_conflict_rate", 0.4);
    assert_shown(text, "fanout_delivery_skip_rate", 1);

    for (int second = 1; second <= METRICS_RECENT_PERIOD_S; second++)
        exposition_sample(&fixture->exposition, START_MS + second * 1000);
    int64_t later_ms = START_MS + (METRICS_RECENT_PERIOD_S + 1) * 1000;
    metrics_add(&fixture->workers[0], METRIC_ROUTING_LOOKUPS, 10);
    metrics_add(&fixture->workers[0], METRIC_ROUTING_LOOKUP_ERRORS, 1);
    text = write_text(fixture, later_ms);
    assert_shown(text, "routing_lookup_errors_rate", 0.1);
    assert_shown(text, "fanout_delivery_skip_rate", 0);
}

static void percentile_ignores_durations_older_than_a_minute(void **state)
{
    struct fixture *fixture = *state;
    assert_shown(write_text(fixture, START_MS), "durability_persist_latency_p99", 0);
    for (int i = 0; i < 1000; i++)
        metrics_latency(&fixture->workers[i % WORKERS], LATENCY_PERSIST, 1000000);
    double slow = shown_value(write_text(fixture, START_MS + 10), "durability_persist_latency_p99");
    assert_true(slow > 0.5 && slow <= 1.05);

    for (int second = 1; second <= METRICS_RECENT_PERIOD_S; second++)
        exposition_sample(&fixture->exposition, START_MS + second * 1000);
    metrics_latency(&fixture->workers[1], LATENCY_PERSIST, 100);
    int64_t later_ms = START_MS + (METRICS_RECENT_PERIOD_S + 1) * 1000;
    double fast = shown_value(write_text(fixture, later_ms), "durability_persist_latency_p99");
    assert_true(fast > 0.000064 && fast <= 0.000128);
}

static void quantile_is_interpolated(void **state)
{
    (void)state;
    struct exposition_histogram now = {0}, base = {0};
    assert_float_equal(exposition_text_quantile(&now, &base, 0.99), 0, 0);
    now.buckets[10] = 100;
    assert_float_equal(exposition_text_quantile(&now, &base, 0.5), 768e-6, 1e-9);
    now.buckets[0] = 100;
    assert_float_equal(exposition_text_quantile(&now, &base, 0.25), 0.5e-6, 1e-9);
    assert_float_equal(exposition_text_quantile(&now, &base, 0.5), 1e-6, 1e-9);
    assert_float_equal(exposition_text_quantile(&now, &base, 1), 1024e-6, 1e-9);
    base = now;
    now.buckets[METRICS_HISTOGRAM_BUCKETS - 1] = 1;
    assert_float_equal(exposition_text_quantile(&now, &base, 0.99), 16.777216, 1e-9);
}

static void histograms_are_cumulative(void **state)
{
    struct fixture *fixture = *state;
    metrics_latency(&fixture->workers[0], LATENCY_TYPING, 1);
    metrics_latency(&fixture->workers[1], LATENCY_TYPING, 3);
    metrics_latency(&fixture->workers[1], LATENCY_TYPING, 60000000);
    const char *text = write_text(fixture, START_MS);
    assert_non_null(strstr(text, "# TYPE rollcall_typing_delivery_time_seconds histogram\n"));
    assert_shown(text, "typing_delivery_time_seconds_bucket{le=\"1e-06\"}", 1);
    assert_shown(text, "typing_delivery_time_seconds_bucket{le=\"2e-06\"}", 1);
    assert_shown(text, "typing_delivery_time_seconds_bucket{le=\"4e-06\"}", 2);
    assert_shown(text, "typing_delivery_time_seconds_bucket{le=\"16.777216\"}", 2);
    assert_shown(text, "typing_delivery_time_seconds_bucket{le=\"+Inf\"}", 3);
    assert_shown(text, "typing_delivery_time_seconds_count", 3);
    assert_shown(text, "typing_delivery_time_seconds_sum", 60.000004);
    assert_shown(text, "heartbeat_latency_seconds_count", 0);
}

static void process_facts_are_shown(void **state)
{
    const char *text = write_text(*state, START_MS);
    assert_shown(text, "build_info{version=\"" ROLLCALL_VERSION "\"}", 1);
    assert_shown(text, "process_start_time_seconds", 1700000000.5);
    assert_true(shown_value(text, "process_resident_memory_bytes") > 500000);
    int64_t before = process_open_fds();
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(process_open_fds(), before + 1);
    close(fd);
    assert_int_equal(process_open_fds(), before);
}

static void full_buffer_fails_without_a_crash(void **state)
{
    struct fixture *fixture = *state;
    struct buffer small = BUFFER_BOUNDED(1000);
    exposition_write(&small, &fixture->exposition, START_MS);
    assert_true(small.failed);
    buffer_free(&small);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(every_metric_has_help_type_and_value),
        with_fixture(every_line_follows_the_format),
        with_fixture(gauges_add_up_workers_or_choose_one),
        with_fixture(counters_of_others_are_not_added),
        with_fixture(rate_covers_its_period_only),
        with_fixture(sample_ring_wraps_around),
        with_fixture(frequent_samples_make_periods_shorter),
        with_fixture(shares_cover_the_last_minute),
        with_fixture(percentile_ignores_durations_older_than_a_minute),
        cmocka_unit_test(quantile_is_interpolated),
        with_fixture(histograms_are_cumulative),
        with_fixture(process_facts_are_shown),
        with_fixture(full_buffer_fails_without_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

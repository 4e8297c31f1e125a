#include "conformance/ledger_harness_internal.h"

#include "ledger/ledger_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* ---- the worker ---- */

static void post_to_harness(void *arg, struct ledger_request *done)
{
    struct harness *harness = arg;
    pthread_mutex_lock(&harness->mutex);
    struct ledger_request **end = &harness->posted;
    while (*end)
        end = &(*end)->next;
    *end = done;
    pthread_cond_signal(&harness->arrived);
    pthread_mutex_unlock(&harness->mutex);
}

void harness_init(struct harness *harness, struct ledger *ledger)
{
    *harness = (struct harness){.clock = {.now_ms = 1000, .wall_ms = 5000}};
    pthread_mutex_init(&harness->mutex, NULL);
    pthread_cond_init(&harness->arrived, NULL);
    ledger_client_init(&harness->client, ledger, &harness->clock, post_to_harness, harness);
}

void harness_free(struct harness *harness)
{
    harness_turn(harness, false);
    assert_int_equal(harness->client.outstanding, 0);
    buffer_free(&harness->line);
    pthread_cond_destroy(&harness->arrived);
    pthread_mutex_destroy(&harness->mutex);
}

static struct ledger_request *take_posted(struct harness *harness, bool wait)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += HARNESS_PATIENCE_SECONDS;
    pthread_mutex_lock(&harness->mutex);
    while (wait && !harness->posted)
        if (pthread_cond_timedwait(&harness->arrived, &harness->mutex, &limit) != 0)
            break;
    struct ledger_request *chain = harness->posted;
    harness->posted = NULL;
    pthread_mutex_unlock(&harness->mutex);
    if (wait && !chain)
        fail_msg("the ledger did not answer in time");
    return chain;
}

void harness_turn(struct harness *harness, bool wait)
{
    ledger_complete(take_posted(harness, wait));
}

void harness_await(struct harness *harness, unsigned count)
{
    while (harness->answers < count)
        harness_turn(harness, true);
    assert_int_equal(harness->answers, count);
}

void harness_settle(struct harness *harness)
{
    while (harness->client.outstanding > 0)
        harness_turn(harness, true);
}

/* ---- writing answers ---- */

bool harness_begin(struct harness *harness, enum ledger_status status)
{
    harness->answers++;
    harness->statuses[status]++;
    buffer_clear(&harness->line);
    buffer_append_text(&harness->line, ledger_status_name(status));
    return status == LEDGER_OK;
}

const char *harness_line(struct harness *harness)
{
    harness_await(harness, harness->answers + 1);
    buffer_append_byte(&harness->line, '\0');
    assert_false(harness->line.failed);
    return harness->line.data;
}

void harness_add(struct harness *harness, const char *format, ...)
{
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    buffer_append(&harness->line, text, (size_t)len);
}

void harness_count_change(void *arg, const struct ledger_change_outcome *outcome)
{
    harness_begin(arg, outcome->status);
}

void harness_count_append(void *arg, const struct ledger_append_outcome *outcome)
{
    harness_begin(arg, outcome->status);
}

void harness_count_cursor(void *arg, const struct ledger_cursor_outcome *outcome)
{
    harness_begin(arg, outcome->status);
}

void harness_write_change(void *arg, const struct ledger_change_outcome *outcome)
{
    if (harness_begin(arg, outcome->status) && outcome->changed)
        harness_add(arg, " changed");
}

size_t harness_split(const char *list, struct slice *ids, size_t count_max)
{
    size_t count = 0;
    struct slice rest = slice_of(list);
    while (rest.len > 0) {
        assert_true(count < count_max);
        rest = slice_split(rest, ',', &ids[count++]);
    }
    return count;
}

#include "net/loop.h"

#include "base/container.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct probe {
    struct loop_source source;
    struct loop_task task;
    struct wheel_timer timer;
    struct loop *loop;
    uint32_t events; /* all events of the last turn */
    unsigned readied;
    unsigned runs;
    unsigned fired;
    unsigned defers_left; /* how often the task defers itself */
};

struct fixture {
    struct loop loop;
    int pair[2];
    struct probe probe;
};

static void on_probe_ready(struct loop_source *source, uint32_t events)
{
    struct probe *probe = CONTAINER_OF(source, struct probe, source);
    probe->events |= events;
    probe->readied++;
}

static void run_probe_task(struct loop_task *task)
{
    struct probe *probe = CONTAINER_OF(task, struct probe, task);
    probe->runs++;
    if (probe->defers_left) {
        probe->defers_left--;
        loop_defer(probe->loop, task);
    }
}

static void on_probe_timer(struct wheel_timer *timer)
{
    CONTAINER_OF(timer, struct probe, timer)->fired++;
}

/* Virtual time: one millisecond per turn. */
static void advance_one_ms(struct clock *clock)
{
    clock->now_ms++;
    clock->wall_ms++;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    *state = fixture;
    if (!loop_init(&fixture->loop))
        return -1;
    fixture->probe = (struct probe){.source = {.on_ready = on_probe_ready},
                                    .task = {.run = run_probe_task},
                                    .timer = {.fire = on_probe_timer},
                                    .loop = &fixture->loop};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fixture->pair) < 0)
        return -1;
    fixture->probe.source.fd = fixture->pair[0];
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    close(fixture->pair[0]);
    close(fixture->pair[1]);
    loop_free(&fixture->loop);
    free(fixture);
    return 0;
}

static uint32_t turn(struct fixture *fixture)
{
    fixture->probe.events = 0;
    fixture->probe.readied = 0;
    loop_turn(&fixture->loop, 0);
    return fixture->probe.events;
}

static void write_to_source(struct fixture *fixture, const char *text)
{
    assert_int_equal(write(fixture->pair[1], text, strlen(text)), (ssize_t)strlen(text));
}

static void sources_get_edge_triggered_events(void **state)
{
    struct fixture *fixture = *state;
    assert_true(loop_add(&fixture->loop, &fixture->probe.source));
    assert_int_equal(turn(fixture), EPOLLOUT);
    assert_int_equal(turn(fixture), 0);
    write_to_source(fixture, "x");
    assert_true(turn(fixture) & EPOLLIN);
    assert_int_equal(turn(fixture), 0); /* reported once, though nothing was read */
    shutdown(fixture->pair[1], SHUT_WR);
    assert_true(turn(fixture) & EPOLLRDHUP);
    loop_remove(&fixture->loop, &fixture->probe.source);
}

static void level_sources_get_events_again(void **state)
{
    struct fixture *fixture = *state;
    assert_true(loop_add_level(&fixture->loop, &fixture->probe.source));
    assert_int_equal(turn(fixture), 0);
    write_to_source(fixture, "x");
    assert_int_equal(turn(fixture), EPOLLIN);
    assert_int_equal(turn(fixture), EPOLLIN);
    loop_remove(&fixture->loop, &fixture->probe.source);
    assert_int_equal(turn(fixture), 0);
}

/* Two sources that remove each other: the first one called keeps the other from being called. */
struct rival {
    struct probe probe;
    struct rival *other;
};

static void on_ready_remove_other(struct loop_source *source, uint32_t events)
{
    struct rival *rival = CONTAINER_OF(source, struct rival, probe.source);
    on_probe_ready(source, events);
    loop_remove(rival->probe.loop, &rival->other->probe.source);
}

static void removed_source_gets_no_event_of_the_same_turn(void **state)
{
    struct fixture *fixture = *state;
    struct rival rivals[2];
    for (size_t i = 0; i < 2; i++) {
        rivals[i] = (struct rival){.probe = fixture->probe, .other = &rivals[1 - i]};
        rivals[i].probe.source =
            (struct loop_source){.fd = fixture->pair[i], .on_ready = on_ready_remove_other};
        assert_true(loop_add(&fixture->loop, &rivals[i].probe.source)); /* both are writable */
    }
    loop_turn(&fixture->loop, 0);
    assert_int_equal(rivals[0].probe.readied + rivals[1].probe.readied, 1);
}

static void events_go_to_the_source_bound_last(void **state)
{
    struct fixture *fixture = *state;
    struct probe other = fixture->probe;
    assert_true(loop_add(&fixture->loop, &fixture->probe.source));
    turn(fixture);
    assert_true(loop_rebind(&fixture->loop, &other.source));
    write_to_source(fixture, "x");
    assert_int_equal(turn(fixture), 0);
    assert_true(other.events & EPOLLIN);
}

static void invalid_descriptor_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct loop_source source = {.fd = -1, .on_ready = on_probe_ready};
    assert_false(loop_add(&fixture->loop, &source));
    assert_false(loop_add_level(&fixture->loop, &source));
}

static void tasks_run_once_at_the_end_of_the_turn(void **state)
{
    struct fixture *fixture = *state;
    loop_defer(&fixture->loop, &fixture->probe.task);
    loop_defer(&fixture->loop, &fixture->probe.task);
    assert_int_equal(fixture->probe.runs, 0);
    loop_turn(&fixture->loop, -1); /* does not wait: there is a task */
    assert_int_equal(fixture->probe.runs, 1);
    turn(fixture);
    assert_int_equal(fixture->probe.runs, 1);
}

static void task_deferred_by_a_task_runs_in_the_next_turn(void **state)
{
    struct fixture *fixture = *state;
    fixture->probe.defers_left = 2;
    loop_defer(&fixture->loop, &fixture->probe.task);
    for (unsigned runs = 1; runs <= 3; runs++) {
        loop_turn(&fixture->loop, -1);
        assert_int_equal(fixture->probe.runs, runs);
    }
    turn(fixture);
    assert_int_equal(fixture->probe.runs, 3);
}

static void timers_fire_when_due(void **state)
{
    struct fixture *fixture = *state;
    fixture->loop.advance = advance_one_ms;
    int64_t start_ms = fixture->loop.clock.now_ms;
    loop_set_timer(&fixture->loop, &fixture->probe.timer, start_ms + 3);
    turn(fixture);
    turn(fixture);
    assert_int_equal(fixture->probe.fired, 0);
    turn(fixture);
    assert_int_equal(fixture->probe.fired, 1);
    loop_set_timer(&fixture->loop, &fixture->probe.timer, start_ms + 5);
    loop_cancel_timer(&fixture->loop, &fixture->probe.timer);
    for (int i = 0; i < 10; i++)
        turn(fixture);
    assert_int_equal(fixture->probe.fired, 1);
}

static void loop_sleeps_until_the_next_timer(void **state)
{
    struct fixture *fixture = *state;
    int64_t start_ms = fixture->loop.clock.now_ms;
    loop_set_timer(&fixture->loop, &fixture->probe.timer, start_ms + 30);
    unsigned turns = 0;
    for (; fixture->probe.fired == 0 && turns < 20; turns++)
        loop_turn(&fixture->loop, -1);
    assert_int_equal(fixture->probe.fired, 1);
    assert_true(turns < 20);
    assert_true(fixture->loop.clock.now_ms >= start_ms + 30);
}

static void wait_ends_at_its_limit(void **state)
{
    struct fixture *fixture = *state;
    int64_t start_ms = fixture->loop.clock.now_ms;
    loop_set_timer(&fixture->loop, &fixture->probe.timer, start_ms + 3600000);
    loop_turn(&fixture->loop, 10);
    assert_true(fixture->loop.clock.now_ms - start_ms < 3000000);
    assert_int_equal(fixture->probe.fired, 0);
    assert_true(loop_turn_us(&fixture->loop) >= 0);
}

static void timers_per_turn_are_bounded(void **state)
{
    enum { TIMERS = LOOP_TIMERS_MAX + 10 };
    struct fixture *fixture = *state;
    struct probe *probes = calloc(TIMERS, sizeof(*probes));
    for (size_t i = 0; i < TIMERS; i++) {
        probes[i].timer.fire = on_probe_timer;
        loop_set_timer(&fixture->loop, &probes[i].timer, 0);
    }
    unsigned fired = 0;
    loop_turn(&fixture->loop, -1);
    for (size_t i = 0; i < TIMERS; i++)
        fired += probes[i].fired;
    assert_int_equal(fired, LOOP_TIMERS_MAX);
    loop_turn(&fixture->loop, -1);
    for (size_t i = 0; i < TIMERS; i++)
        assert_int_equal(probes[i].fired, 1);
    free(probes);
}

static void *run_stopping_thread(void *arg)
{
    struct fixture *fixture = arg;
    loop_stop(&fixture->loop);
    write_to_source(fixture, "wake up");
    return NULL;
}

static void loop_runs_until_it_is_stopped(void **state)
{
    struct fixture *fixture = *state;
    pthread_t thread;
    assert_true(loop_add_level(&fixture->loop, &fixture->probe.source));
    pthread_create(&thread, NULL, run_stopping_thread, fixture);
    loop_run(&fixture->loop);
    pthread_join(thread, NULL);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(sources_get_edge_triggered_events),
        with_fixture(level_sources_get_events_again),
        with_fixture(removed_source_gets_no_event_of_the_same_turn),
        with_fixture(events_go_to_the_source_bound_last),
        with_fixture(invalid_descriptor_is_refused),
        with_fixture(tasks_run_once_at_the_end_of_the_turn),
        with_fixture(task_deferred_by_a_task_runs_in_the_next_turn),
        with_fixture(timers_fire_when_due),
        with_fixture(loop_sleeps_until_the_next_timer),
        with_fixture(wait_ends_at_its_limit),
        with_fixture(timers_per_turn_are_bounded),
        with_fixture(loop_runs_until_it_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

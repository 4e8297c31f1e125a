/* A dialler over loopback: it dials again, waits between attempts, and can be ended at any time. */
#include "peer/peer_dialer.h"

#include "net/listener.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SOON_MS = 30000 };

struct fixture {
    struct worker_loop worker;
    struct listener listener;
    struct peer_link_options options;
    struct peer_link *far;
    struct peer_dialer *dialer;
    unsigned opened, closed, greeted, frames;
    bool end_when_opened;
    char why[PEER_REASON_TEXT_MAX];
    char address[64];
};

/* ---- the side that accepts ---- */

static void on_far_opened(struct peer_link *link, void *arg, struct slice name)
{
    (void)link;
    (void)name;
    ((struct fixture *)arg)->greeted++;
}

static void on_far_frame(struct peer_link *link, void *arg, struct slice frame)
{
    (void)link;
    assert_true(slice_is(frame, "here again"));
    ((struct fixture *)arg)->frames++;
}

static void on_far_closed(struct peer_link *link, void *arg, const char *why)
{
    (void)link;
    (void)why;
    ((struct fixture *)arg)->far = NULL;
}

static const struct peer_link_owner far_owner = {on_far_opened, on_far_frame, on_far_closed};

static void on_accepted(void *arg, int fd)
{
    struct fixture *fixture = arg;
    assert_null(fixture->far);
    fixture->far = peer_link_accept(&fixture->options, fd, &far_owner, fixture);
    assert_non_null(fixture->far);
}

static void listen_at(struct fixture *fixture, const char *address)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    struct listener_options options = {.address = address, .accept_queue_max = 16};
    assert_true(listener_open(&fixture->listener, &fixture->worker.loop, &options, on_accepted,
                              fixture, error));
}

/* ---- the side that dials ---- */

static void on_dialer_opened(struct peer_dialer *dialer, void *arg, struct slice name)
{
    struct fixture *fixture = arg;
    assert_true(slice_is(name, "one of us"));
    fixture->opened++;
    assert_true(peer_dialer_send(dialer, &SLICE("here again"), 1));
    if (fixture->end_when_opened)
        peer_dialer_end(fixture->dialer);
}

static void on_dialer_frame(struct peer_dialer *dialer, void *arg, struct slice frame)
{
    (void)dialer;
    (void)arg;
    (void)frame;
    fail();
}

static void on_dialer_closed(struct peer_dialer *dialer, void *arg, const char *why)
{
    struct fixture *fixture = arg;
    assert_false(peer_dialer_is_open(dialer));
    assert_false(peer_dialer_send(dialer, &SLICE("lost"), 1));
    fixture->closed++;
    snprintf(fixture->why, sizeof(fixture->why), "%s", why);
}

static void on_dialer_ended(void *arg)
{
    ((struct fixture *)arg)->dialer = NULL;
}

static const struct peer_dialer_owner owner = {on_dialer_opened, on_dialer_frame, on_dialer_closed,
                                               on_dialer_ended};

static void dial(struct fixture *fixture)
{
    fixture->dialer = peer_dialer_make(&fixture->options, fixture->address, &owner, fixture);
    assert_non_null(fixture->dialer);
    assert_false(peer_dialer_is_open(fixture->dialer));
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    *state = fixture;
    worker_loop_open(&fixture->worker);
    listen_at(fixture, "127.0.0.1:0");
    snprintf(fixture->address, sizeof(fixture->address), "127.0.0.1:%u", fixture->listener.port);
    fixture->options = (struct peer_link_options){
        .loop = &fixture->worker.loop,
        .streams = &fixture->worker.streams,
        .random = &fixture->worker.random,
        .secret = SLICE("a secret of the installation"),
        .name = SLICE("one of us"),
    };
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    peer_dialer_drop(&fixture->dialer);
    peer_link_drop(&fixture->far);
    listener_close(&fixture->listener);
    peer_link_drop(&fixture->far);
    worker_loop_close(&fixture->worker);
    free(fixture);
    return 0;
}

static void until(struct fixture *fixture, bool (*holds)(void *arg))
{
    assert_true(worker_loop_until(&fixture->worker, holds, fixture, SOON_MS));
}

static bool is_linked(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->opened == 1 && fixture->frames == 1;
}

static bool is_linked_again(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->opened == 2 && fixture->frames == 2;
}

static bool has_failed_thrice(void *arg)
{
    return ((struct fixture *)arg)->closed >= 3;
}

static bool has_failed(void *arg)
{
    return ((struct fixture *)arg)->closed > 0;
}

static bool far_is_closed(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->greeted && !fixture->far;
}

static bool has_ended(void *arg)
{
    return ((struct fixture *)arg)->dialer == NULL;
}

static void a_broken_link_is_dialled_again(void **state)
{
    struct fixture *fixture = *state;
    dial(fixture);
    until(fixture, is_linked);
    assert_true(peer_dialer_is_open(fixture->dialer));
    peer_link_close(fixture->far, "closed");
    until(fixture, is_linked_again);
    assert_int_equal(fixture->closed, 1);
    peer_dialer_end(fixture->dialer);
    until(fixture, far_is_closed);
    assert_null(fixture->dialer);
    assert_int_equal(fixture->closed, 1);
}

static void dialling_repeats_until_the_peer_listens(void **state)
{
    struct fixture *fixture = *state;
    listener_close(&fixture->listener);
    dial(fixture);
    until(fixture, has_failed_thrice);
    assert_string_equal(fixture->why, "Connection refused");
    listen_at(fixture, fixture->address);
    until(fixture, is_linked);
}

static void attempts_are_apart_by_the_back_off(void **state)
{
    struct fixture *fixture = *state;
    listener_close(&fixture->listener);
    dial(fixture);
    worker_loop_run(&fixture->worker, 1000);
    assert_in_range(fixture->closed, 2, 10);
}

static void a_waiting_dialler_can_be_ended(void **state)
{
    struct fixture *fixture = *state;
    listener_close(&fixture->listener);
    dial(fixture);
    until(fixture, has_failed);
    unsigned closed_before = fixture->closed;
    peer_dialer_end(fixture->dialer);
    until(fixture, has_ended);
    worker_loop_run(&fixture->worker, 200);
    assert_int_equal(fixture->closed, closed_before);
}

static void a_dialler_can_be_ended_in_its_callback(void **state)
{
    struct fixture *fixture = *state;
    fixture->end_when_opened = true;
    dial(fixture);
    until(fixture, far_is_closed);
    until(fixture, has_ended);
    worker_loop_run(&fixture->worker, 200);
    assert_int_equal(fixture->opened, 1);
    assert_int_equal(fixture->closed, 0);
}

/* The sanitizer finds what is not freed. */
static void an_ended_dialler_can_be_dropped_before_on_ended(void **state)
{
    struct fixture *fixture = *state;
    dial(fixture);
    until(fixture, is_linked);
    peer_dialer_end(fixture->dialer);
    peer_dialer_end(fixture->dialer);
    assert_false(peer_dialer_is_open(fixture->dialer));
    peer_dialer_drop(&fixture->dialer);
    assert_null(fixture->dialer);
    dial(fixture);
    peer_dialer_end(fixture->dialer); /* it has not dialled yet */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_broken_link_is_dialled_again),
        TEST(dialling_repeats_until_the_peer_listens),
        TEST(attempts_are_apart_by_the_back_off),
        TEST(a_waiting_dialler_can_be_ended),
        TEST(a_dialler_can_be_ended_in_its_callback),
        TEST(an_ended_dialler_can_be_dropped_before_on_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The queue in front of a backend: it is fair among users, keeps each user's order and is bounded. */
#include "ledger/ledger_request_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT_MAX = 1024, SLICE_IDS = 99, CHAIN_MAX = 16 };

struct fixture {
    struct ledger_request_queue queue;
    _Atomic int64_t gauge;
    _Atomic uint64_t over_share;
};

/* A request that the test owns. `number` tells the requests of one user apart. */
static struct ledger_request *make_request(enum ledger_operation operation, const char *user,
                                           uint64_t number, size_t ids)
{
    struct ledger_request *request = calloc(1, sizeof(*request));
    assert_non_null(request);
    request->operation = operation;
    request->input.user = user ? slice_of(user) : SLICE_NONE;
    request->input.sequence = number;
    request->input.id_count = ids;
    return request;
}

static bool put(struct fixture *fixture, enum ledger_operation operation, const char *user,
                uint64_t number, size_t ids)
{
    struct ledger_request *request = make_request(operation, user, number, ids);
    bool accepted = ledger_request_queue_put(&fixture->queue, request);
    if (!accepted)
        free(request);
    return accepted;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    *state = fixture;
    return fixture && ledger_request_queue_init(&fixture->queue,
                                                &(struct ledger_request_queue_options){
                                                    .count_max = COUNT_MAX,
                                                    .slice_cost = SLICE_IDS + 1,
                                                    .seed = 7,
                                                    .gauge = &fixture->gauge,
                                                    .over_share = &fixture->over_share})
               ? 0
               : -1;
}

static size_t free_chain(struct ledger_request *chain)
{
    size_t count = 0;
    while (chain) {
        struct ledger_request *next = chain->next;
        free(chain);
        chain = next;
        count++;
    }
    return count;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ledger_request_queue_close(&fixture->queue);
    struct ledger_request *chain;
    while ((chain = ledger_request_queue_take(&fixture->queue, CHAIN_MAX)))
        free_chain(chain);
    assert_int_equal(fixture->gauge, 0);
    assert_int_equal(fixture->queue.lanes[0].flows.size + fixture->queue.lanes[1].flows.size, 0);
    ledger_request_queue_destroy(&fixture->queue);
    free(fixture);
    return 0;
}

/* Takes chains until the user's request comes; returns the cost of everything that came before it. */
static uint64_t cost_before(struct fixture *fixture, const char *user)
{
    uint64_t cost = 0;
    for (;;) {
        struct ledger_request *chain = ledger_request_queue_take(&fixture->queue, CHAIN_MAX);
        bool found = false;
        for (struct ledger_request *at = chain; at && !found; at = at->next) {
            found = slice_is(at->input.user, user);
            cost += found ? 0 : ledger_request_cost(at);
        }
        free_chain(chain);
        if (found)
            return cost;
    }
}

static void each_user_keeps_the_order_of_their_requests(void **state)
{
    struct fixture *fixture = *state;
    uint64_t next[2] = {0, 0};
    for (uint64_t i = 0; i < 200; i++) {
        assert_true(put(fixture, LEDGER_MESSAGE_APPEND, "alice", i, 0));
        assert_true(put(fixture, LEDGER_MESSAGE_APPEND, "bob", i, 0));
    }
    while (fixture->gauge) {
        struct ledger_request *chain = ledger_request_queue_take(&fixture->queue, CHAIN_MAX);
        for (struct ledger_request *at = chain; at; at = at->next)
            assert_int_equal(at->input.sequence, next[slice_is(at->input.user, "bob")]++);
        free_chain(chain);
    }
    assert_int_equal(next[0], 200);
    assert_int_equal(next[1], 200);
}

static void message_waits_for_one_turn_of_a_user_with_very_many(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t i = 0; i < 250; i++)
        assert_true(put(fixture, LEDGER_MESSAGE_APPEND, "mallory", i, 0));
    assert_true(put(fixture, LEDGER_MESSAGE_APPEND, "alice", 0, 0));
    assert_in_range(cost_before(fixture, "alice"), 0, LEDGER_LANE_QUANTUM);
}

/* Does one slice of a request, and puts it back unless that was the last. */
static bool do_slice(struct fixture *fixture, struct ledger_request *request)
{
    size_t left = request->input.id_count - request->ids_done;
    request->ids_done += (uint32_t)(left < SLICE_IDS ? left : SLICE_IDS);
    bool is_last = request->ids_done == request->input.id_count;
    if (is_last)
        free(request);
    else
        assert_true(ledger_request_queue_put_back(&fixture->queue, request));
    return is_last;
}

static void message_waits_for_one_slice_at_most(void **state)
{
    struct fixture *fixture = *state;
    unsigned slices = 0;
    assert_true(put(fixture, LEDGER_CHAT_CREATE, "mallory", 0, 10 * SLICE_IDS));
    for (bool done = false; !done; slices++) {
        struct ledger_request *large = ledger_request_queue_take(&fixture->queue, CHAIN_MAX);
        assert_null(large->next);
        assert_true(put(fixture, LEDGER_MESSAGE_APPEND, "alice", slices, 0)); /* meanwhile */
        done = do_slice(fixture, large);
        struct ledger_request *message = ledger_request_queue_take(&fixture->queue, 1);
        assert_int_equal(message->operation, LEDGER_MESSAGE_APPEND);
        free(message);
    }
    assert_int_equal(slices, 10);
}

static void user_with_slices_does_one_request_after_the_other(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t i = 0; i < 3; i++)
        assert_true(put(fixture, LEDGER_CHAT_CREATE, "mallory", i, 3 * SLICE_IDS));
    for (uint64_t i = 0; i < 9; i++) {
        struct ledger_request *large = ledger_request_queue_take(&fixture->queue, CHAIN_MAX);
        assert_int_equal(large->input.sequence, i / 3);
        assert_int_equal(do_slice(fixture, large), i % 3 == 2);
    }
    assert_int_equal(fixture->queue.lanes[1].cost, 0);
}

/* It waits for another one, which may be of the same user. */
static void request_that_has_not_begun_is_put_back_as_the_last(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t i = 0; i < 2; i++)
        assert_true(put(fixture, LEDGER_CHAT_CREATE, "mallory", i, SLICE_IDS));
    struct ledger_request *waits = ledger_request_queue_take(&fixture->queue, 1);
    assert_true(ledger_request_queue_put_back(&fixture->queue, waits));
    struct ledger_request *next = ledger_request_queue_take(&fixture->queue, 1);
    assert_int_equal(next->input.sequence, 1);
    free(next);
}

static void request_is_put_back_into_a_full_and_closed_queue(void **state)
{
    struct fixture *fixture = *state;
    assert_true(put(fixture, LEDGER_CHAT_CREATE, "mallory", 0, 2 * SLICE_IDS));
    struct ledger_request *large = ledger_request_queue_take(&fixture->queue, 1);
    while (put(fixture, LEDGER_OUTBOX_REMOVE, NULL, 0, 0))
        continue;
    ledger_request_queue_close(&fixture->queue);
    assert_false(do_slice(fixture, large));
    assert_int_equal(fixture->gauge, COUNT_MAX + 1);
}

/* The one with large requests gets no more than the other, but for one slice. */
static void turns_are_weighted_by_cost(void **state)
{
    struct fixture *fixture = *state;
    uint64_t of_alice = 0, of_mallory = 0;
    assert_true(put(fixture, LEDGER_CHAT_CREATE, "mallory", 0, 9999));
    for (uint64_t i = 0; i < 250; i++)
        assert_true(put(fixture, LEDGER_CHAT_MEMBER_ADD, "alice", i, 0));
    while (of_alice < 250) {
        struct ledger_request *next = ledger_request_queue_take(&fixture->queue, 1);
        if (slice_is(next->input.user, "alice")) {
            of_alice += free_chain(next);
        } else {
            of_mallory += SLICE_IDS + 1;
            do_slice(fixture, next);
        }
        assert_true(of_mallory <= of_alice + SLICE_IDS + 1);
    }
    assert_true(of_mallory > 0);
}

static void chain_names_about_as_many_ids_as_a_slice(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t i = 0; i < CHAIN_MAX; i++)
        assert_true(put(fixture, LEDGER_CHAT_CREATE, "mallory", i, SLICE_IDS - 1));
    assert_int_equal(free_chain(ledger_request_queue_take(&fixture->queue, CHAIN_MAX)), 2);
}

static void user_has_a_bounded_share_and_others_their_own(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t i = 0; i < COUNT_MAX / 4; i++)
        assert_true(put(fixture, LEDGER_MESSAGE_APPEND, "mallory", i, 0));
    assert_false(put(fixture, LEDGER_MESSAGE_APPEND, "mallory", 0, 0));
    assert_int_equal(fixture->over_share, 1);
    assert_true(put(fixture, LEDGER_MESSAGE_APPEND, "alice", 0, 0));
    for (uint64_t i = 0; i < 4; i++)
        assert_true(put(fixture, LEDGER_CHAT_CREATE, "mallory", i, LEDGER_CHAT_MEMBERS_MAX));
    assert_false(put(fixture, LEDGER_CHAT_CREATE, "mallory", 4, 1));
    assert_int_equal(fixture->over_share, 2);
    assert_true(put(fixture, LEDGER_CHAT_CREATE, "alice", 4, LEDGER_CHAT_MEMBERS_MAX));
}

static void all_users_together_are_bounded_by_cost_and_count(void **state)
{
    struct fixture *fixture = *state;
    char user[16];
    unsigned accepted = 0;
    for (unsigned i = 0; i < COUNT_MAX; i++) {
        snprintf(user, sizeof(user), "user-%u", i);
        struct ledger_request *request =
            make_request(LEDGER_CHAT_CREATE, NULL, i, LEDGER_CHAT_MEMBERS_MAX);
        request->input.user = slice_of(user);
        bool is_accepted = ledger_request_queue_put(&fixture->queue, request);
        accepted += is_accepted;
        request->input.user = SLICE("x"); /* the flow has a copy of the name */
        if (!is_accepted)
            free(request);
    }
    assert_int_equal(accepted, LEDGER_LANE_COST_MAX / (LEDGER_CHAT_MEMBERS_MAX + 1));
    while (put(fixture, LEDGER_OUTBOX_REMOVE, NULL, 0, 0))
        accepted++;
    assert_int_equal(accepted, COUNT_MAX);
}

static void users_who_act_once_leave_nothing_behind(void **state)
{
    struct fixture *fixture = *state;
    char user[16];
    for (unsigned i = 0; i < 1000000; i++) {
        snprintf(user, sizeof(user), "user-%u", i);
        assert_true(put(fixture, LEDGER_MESSAGE_APPEND, user, i, 0));
        assert_int_equal(free_chain(ledger_request_queue_try_take(&fixture->queue, 1)), 1);
    }
    assert_int_equal(fixture->queue.lanes[0].flows.size, 0);
    assert_int_equal(fixture->queue.lanes[0].flows.current.count, 64); /* it never grew */
}

#define WITH_QUEUE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_QUEUE(each_user_keeps_the_order_of_their_requests),
        WITH_QUEUE(message_waits_for_one_turn_of_a_user_with_very_many),
        WITH_QUEUE(message_waits_for_one_slice_at_most),
        WITH_QUEUE(user_with_slices_does_one_request_after_the_other),
        WITH_QUEUE(request_that_has_not_begun_is_put_back_as_the_last),
        WITH_QUEUE(request_is_put_back_into_a_full_and_closed_queue),
        WITH_QUEUE(turns_are_weighted_by_cost),
        WITH_QUEUE(chain_names_about_as_many_ids_as_a_slice),
        WITH_QUEUE(user_has_a_bounded_share_and_others_their_own),
        WITH_QUEUE(all_users_together_are_bounded_by_cost_and_count),
        WITH_QUEUE(users_who_act_once_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

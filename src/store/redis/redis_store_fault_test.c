/* The stores of typing, graphs, calls and parked sessions on Redis when out of memory, on a single server and on a
 * cluster: whichever allocation fails, every operation completes exactly once, and nothing leaks. */
#include "store/redis/redis_call.h"
#include "store/redis/redis_graph.h"
#include "store/redis/redis_recovery.h"
#include "store/redis/redis_typing.h"
#include "support/alloc_fault.h"
#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ANSWERS = 10, PATIENCE_MS = 60000 };

struct stores {
    struct redis_fleet fleet;
    struct clock clock;
    struct typing_store *typing;
    struct graph_store *graphs;
    struct call_store *calls;
    struct recovery_store *recovery;
    unsigned answers;
};

static struct stores the_stores;

static void on_typing_started(void *arg, enum state_status status,
                              const struct typing_outcome *outcome)
{
    (void)status;
    (void)outcome;
    ((struct stores *)arg)->answers++;
}

static void on_typing_stopped(void *arg, enum state_status status, bool stopped)
{
    (void)status;
    (void)stopped;
    ((struct stores *)arg)->answers++;
}

static void on_graph_lookup(void *arg, enum state_status status, const struct graph_lookup *lookup)
{
    struct stores *stores = arg;
    static const struct slice CONTACTS[] = {{"bob", 3}, {"carol", 5}, {"dave", 4}};
    stores->answers++;
    if (status == STATE_OK && !lookup->known)
        graph_put(stores->graphs, SLICE("alice"), lookup->ticket,
                  &(struct social_graph){.contacts = {CONTACTS, 3}});
}

static void on_call_answer(void *arg, const struct call_answer *answer)
{
    (void)answer;
    ((struct stores *)arg)->answers++;
}

static void on_calls_reaped(void *arg, const struct call *ended, size_t count)
{
    (void)ended;
    (void)count;
    ((struct stores *)arg)->answers++;
}

static void on_device_lost(void *arg, const struct ulid *conn_id)
{
    (void)arg;
    (void)conn_id;
}

static void on_session_taken(void *arg, const struct parked_session *session)
{
    struct stores *stores = arg;
    stores->answers++;
    if (session) /* complete, or not at all */
        assert_int_equal(session->event_count, 2);
}

static void park_and_take(struct stores *stores)
{
    const struct recovery_event sent = {1, 1, SLICE("before")};
    const struct recovery_event missed = {RECOVERY_MISSED, 2, SLICE("after")};
    const struct slice topic = SLICE("presence:bob");
    recovery_park(stores->recovery, &(struct parked_session){.user_id = SLICE("alice"),
                                                             .pid = SLICE("secret"),
                                                             .sid = SLICE("public"),
                                                             .events = &sent,
                                                             .event_count = 1,
                                                             .topics = &topic,
                                                             .topic_count = 1});
    recovery_take(stores->recovery, SLICE("alice"), SLICE("secret"), 0, on_session_taken, stores);
    recovery_append(stores->recovery, &SLICE("alice"), 1, &missed);
    recovery_take(stores->recovery, SLICE("alice"), SLICE("secret"), 0, on_session_taken, stores);
}

static bool all_answered(void *arg)
{
    return ((struct stores *)arg)->answers >= ANSWERS;
}

static bool is_available(void *arg)
{
    return redis_available(((struct stores *)arg)->fleet.clients[0]);
}

/* Runs some operations of every store. */
static void use_all_stores(struct stores *stores)
{
    struct call_device alice = {SLICE("alice"), SLICE("phone"), {{1}}};
    struct ulid conn_id = {{1}};
    typing_store_start(stores->typing, SLICE("c"), SLICE("alice"), &conn_id, on_typing_started,
                       stores);
    typing_store_stop(stores->typing, SLICE("c"), SLICE("alice"), NULL, on_typing_stopped, stores);
    graph_lookup(stores->graphs, SLICE("alice"), on_graph_lookup, stores);
    graph_lookup(stores->graphs, SLICE("alice"), on_graph_lookup, stores);
    graph_drop(stores->graphs, SLICE("bob"));
    call_store_request(stores->calls, SLICE("call"), &alice, SLICE("bob"), on_call_answer, stores);
    call_store_get(stores->calls, SLICE_NONE, SLICE("alice"), on_call_answer, stores);
    call_store_renew(stores->calls, &alice, 1, on_device_lost, stores);
    call_store_reap(stores->calls, CALL_REAP_MAX, on_calls_reaped, stores);
    call_store_end(stores->calls, SLICE_NONE, SLICE("alice"), on_call_answer, stores);
    park_and_take(stores);
}

static void open_stores(struct stores *stores)
{
    struct redis_client *client = stores->fleet.clients[0];
    struct random *random = &stores->fleet.worker.random;
    stores->typing = redis_typing_make(
        &(struct redis_typing_options){.client = client, .ttl_ms = 5000, .rate_per_second = 1});
    stores->graphs = redis_graph_make(&(struct redis_graph_options){
        .client = client, .random = random, .loop = &stores->fleet.worker.loop});
    stores->calls = redis_call_make(&(struct redis_call_options){.client = client,
                                                                 .loop = &stores->fleet.worker.loop,
                                                                 .random = random,
                                                                 .ring_timeout_ms = 30000,
                                                                 .reconnect_grace_ms = 10000,
                                                                 .lease_window_ms = 15000});
    stores->recovery = redis_recovery_make(&(struct redis_recovery_options){
        .client = client, .recovery_ms = 60000, .clock = &stores->clock});
}

static void close_stores(struct stores *stores)
{
    recovery_store_free(&stores->recovery);
    typing_store_free(&stores->typing);
    graph_store_free(&stores->graphs);
    call_store_free(&stores->calls);
}

/* Runs the operations while the n-th allocation fails. Returns how many allocations failed. */
static size_t use_all_stores_without_allocation(struct stores *stores, size_t n)
{
    assert_true(worker_loop_until(&stores->fleet.worker, is_available, stores, PATIENCE_MS));
    stores->answers = 0;
    alloc_fault_after(n);
    use_all_stores(stores);
    worker_loop_until(&stores->fleet.worker, all_answered, stores, PATIENCE_MS);
    size_t failed = alloc_fault_off();
    assert_int_equal(stores->answers, ANSWERS);
    return failed;
}

static void try_every_failure(struct stores *stores, bool cluster)
{
    size_t n = 1;
    redis_fleet_open(&stores->fleet, cluster);
    open_stores(stores);
    while (use_all_stores_without_allocation(stores, n) > 0)
        n++;
    assert_true(n > 10);
    close_stores(stores);
    redis_fleet_close(&stores->fleet);
}

static void every_operation_completes_on_a_single_server(void **state)
{
    (void)state;
    try_every_failure(&the_stores, false);
}

static void every_operation_completes_on_a_cluster(void **state)
{
    (void)state;
    try_every_failure(&the_stores, true);
}

static void stores_that_cannot_be_made_leak_nothing(void **state)
{
    struct stores *stores = &the_stores;
    (void)state;
    redis_fleet_open(&stores->fleet, false);
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        alloc_fault_after(n);
        open_stores(stores);
        failed = alloc_fault_off();
        close_stores(stores);
    }
    redis_fleet_close(&stores->fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_that_cannot_be_made_leak_nothing),
        cmocka_unit_test(every_operation_completes_on_a_single_server),
        cmocka_unit_test(every_operation_completes_on_a_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

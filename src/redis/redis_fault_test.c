/* Without memory: whole or not at all, and still one answer each. No server is needed for that. */
#include "redis/redis_client.h"
#include "redis/redis_info.h"
#include "redis/redis_pending.h"
#include "redis/redis_pubsub.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct world {
    struct loop loop;
    struct stream_set streams;
    struct random random;
    struct metrics metrics;
};

static void take(void *arg, const struct resp_value *reply)
{
    assert_null(reply);
    ++*(unsigned *)arg;
}

static void ignore_message(void *arg, struct slice channel, struct slice message)
{
    (void)arg;
    (void)channel;
    (void)message;
}

static const struct redis_pubsub_owner deaf = {.on_message = ignore_message};

static struct redis_client *make_client(struct world *world, const char *text)
{
    char error[REDIS_URL_ERROR_MAX];
    struct redis_url url;
    assert_true(redis_url_parse(slice_of(text), &url, error));
    return redis_client_make(&(struct redis_client_options){.loop = &world->loop,
                                                            .streams = &world->streams,
                                                            .random = &world->random,
                                                            .metrics = &world->metrics,
                                                            .url = &url,
                                                            .name = "gw"});
}

/* What a client does between its making and its end, with one allocation failing somewhere. */
static void live_through(struct world *world, const char *url)
{
    struct redis_script script = {.source = SLICE("return 1")};
    unsigned answers = 0;
    struct redis_client *client = make_client(world, url);
    if (!client)
        return;
    struct redis_pubsub *pubsub = redis_pubsub_make(client, &deaf, NULL);
    struct redis_info *info = redis_info_make(client, &world->loop, &world->metrics);
    redis_command(client, SLICE("a"), REDIS_ARGS(SLICE("GET"), SLICE("a")), take, &answers);
    redis_eval(client, &script, REDIS_ARGS(SLICE("a")), REDIS_NO_ARGS, take, &answers);
    redis_publish(client, SLICE("c"), SLICE("m"), take, &answers);
    if (pubsub) {
        redis_pubsub_subscribe(pubsub, SLICE("c"));
        redis_pubsub_subscribe(pubsub, SLICE("d"));
        redis_pubsub_unsubscribe(pubsub, SLICE("c"));
    }
    for (int i = 0; i < 5; i++)
        loop_turn(&world->loop, 5);
    redis_info_free(&info);
    redis_pubsub_free(&pubsub);
    redis_client_free(&client);
    assert_int_equal(answers, 3);
}

static void every_allocation_may_fail(void **state)
{
    static const char *const urls[] = {"redis://127.0.0.1:1", "redis-cluster://127.0.0.1:1"};
    for (size_t i = 0; i < 2; i++) {
        size_t runs = 0;
        for (size_t n = 1, failed = 1; failed > 0; n++, runs++) {
            alloc_fault_after(n);
            live_through(*state, urls[i]);
            failed = alloc_fault_off();
        }
        assert_true(runs > 5);
    }
}

static void calls_are_kept_when_there_is_no_room_for_more(void **state)
{
    enum { CALLS = 256 }; /* a power of two: there is no room for another without memory */
    (void)state;
    struct redis_pending calls = {0};
    for (int64_t i = 0; i < CALLS; i++)
        assert_true(redis_pending_push(&calls, &(struct redis_pending_command){.due_ms = i}));
    alloc_fault_after(1);
    assert_false(redis_pending_push(&calls, &(struct redis_pending_command){.due_ms = CALLS}));
    alloc_fault_off();
    for (int64_t i = 0; i < CALLS; i++)
        assert_int_equal(redis_pending_pop(&calls).due_ms, i);
    assert_int_equal(calls.count, 0);
    redis_pending_free(&calls);
}

static void a_reply_without_memory_is_not_understood(void **state)
{
    (void)state;
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    size_t len;
    alloc_fault_after(1);
    assert_int_equal(resp_parse(&parser, SLICE("+OK\r\n"), &reply, &len), RESP_INVALID);
    alloc_fault_after(2);
    assert_int_equal(resp_parse(&parser, SLICE("*100\r\n"), &reply, &len), RESP_INVALID);
    alloc_fault_off();
    resp_parser_restart(&parser);
    assert_int_equal(resp_parse(&parser, SLICE("+OK\r\n"), &reply, &len), RESP_COMPLETE);
    resp_parser_free(&parser);
}

static int set_up(void **state)
{
    static struct world world;
    random_init_seeded(&world.random, 1);
    *state = &world;
    return loop_init(&world.loop) && stream_set_init(&world.streams, &world.loop) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    stream_set_free(&world->streams);
    loop_free(&world->loop);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(calls_are_kept_when_there_is_no_room_for_more),
        cmocka_unit_test(a_reply_without_memory_is_not_understood),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Allocation failures: objects are made whole or not at all, and each command is answered once. Needs no server. */
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

static void on_null_reply(void *arg, const struct resp_value *reply)
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

static const struct redis_pubsub_owner ignoring_owner = {.on_message = ignore_message};

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

/* Makes a client, uses and frees it, while one allocation fails. */
static void use_client(struct world *world, const char *url)
{
    struct redis_script script = {.source = SLICE("return 1")};
    unsigned answers = 0;
    struct redis_client *client = make_client(world, url);
    if (!client)
        return;
    struct redis_pubsub *pubsub = redis_pubsub_make(client, &ignoring_owner, NULL);
    struct redis_info *info = redis_info_make(client, &world->loop, &world->metrics);
    redis_command(client, SLICE("a"), REDIS_ARGS(SLICE("GET"), SLICE("a")), on_null_reply,
                  &answers);
    redis_eval(client, &script, REDIS_ARGS(SLICE("a")), REDIS_NO_ARGS, on_null_reply, &answers);
    redis_publish(client, SLICE("c"), SLICE("m"), on_null_reply, &answers);
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

static void client_survives_any_failed_allocation(void **state)
{
    static const char *const urls[] = {"redis://127.0.0.1:1", "redis-cluster://127.0.0.1:1"};
    for (size_t i = 0; i < 2; i++) {
        size_t runs = 0;
        for (size_t n = 1, failed = 1; failed > 0; n++, runs++) {
            alloc_fault_after(n);
            use_client(*state, urls[i]);
            failed = alloc_fault_off();
        }
        assert_true(runs > 5);
    }
}

static void failed_push_keeps_pending_commands(void **state)
{
    enum { COMMANDS = 256 }; /* a power of two: another one needs more memory */
    (void)state;
    struct redis_pending pending = {0};
    for (int64_t i = 0; i < COMMANDS; i++)
        assert_true(redis_pending_push(&pending, &(struct redis_pending_command){.due_ms = i}));
    alloc_fault_after(1);
    assert_false(redis_pending_push(&pending, &(struct redis_pending_command){.due_ms = COMMANDS}));
    alloc_fault_off();
    for (int64_t i = 0; i < COMMANDS; i++)
        assert_int_equal(redis_pending_pop(&pending).due_ms, i);
    assert_int_equal(pending.count, 0);
    redis_pending_free(&pending);
}

static void reply_is_invalid_when_out_of_memory(void **state)
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
        cmocka_unit_test(client_survives_any_failed_allocation),
        cmocka_unit_test(failed_push_keeps_pending_commands),
        cmocka_unit_test(reply_is_invalid_when_out_of_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

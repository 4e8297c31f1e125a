/* Subscriptions on a real server while memory runs out: no channel is lost. */
#include "redis/redis_pubsub.h"

#include "support/alloc_fault.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SOON_MS = 30000, CHANNELS = 100 };

struct fixture {
    struct worker_loop worker;
    struct redis_server server;
    struct redis_client *client;
    struct redis_pubsub *pubsub;
};

static void ignore_message(void *arg, struct slice channel, struct slice message)
{
    (void)arg;
    (void)channel;
    (void)message;
}

static const struct redis_pubsub_owner owner = {.on_message = ignore_message};

static bool is_settled(void *arg)
{
    const struct fixture *fixture = arg;
    return redis_available(fixture->client) && redis_pubsub_settled(fixture->pubsub);
}

static void settle(struct fixture *fixture)
{
    assert_true(worker_loop_until(&fixture->worker, is_settled, fixture, SOON_MS));
}

static struct slice format_channel(char out[16], int number)
{
    int len = snprintf(out, 16, "channel-%d", number);
    return (struct slice){out, (size_t)len};
}

/* Unsubscriptions are sent first. Subscribing one by one keeps the buffer small, so that the batch of
 * unsubscriptions has to allocate. */
static void channel_survives_a_failed_batch_of_unsubscriptions(void **state)
{
    struct fixture *fixture = *state;
    char text[16];
    for (int i = 0; i < CHANNELS; i++) {
        assert_true(redis_pubsub_subscribe(fixture->pubsub, format_channel(text, i)));
        settle(fixture);
    }
    assert_true(redis_pubsub_subscribe(fixture->pubsub, SLICE("wanted")));
    for (int i = 0; i < CHANNELS; i++)
        redis_pubsub_unsubscribe(fixture->pubsub, format_channel(text, i));
    alloc_fault_from(1);
    loop_turn(&fixture->worker.loop, 0);
    assert_true(alloc_fault_off() > 0);
    assert_false(is_settled(fixture));
    settle(fixture);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    *state = &fixture;
    worker_loop_open(&fixture.worker);
    redis_server_start(&fixture.server, REDIS_DEFAULTS);
    fixture.client = worker_loop_redis(&fixture.worker, "redis://127.0.0.1", fixture.server.port);
    fixture.pubsub = redis_pubsub_make(fixture.client, &owner, NULL);
    return fixture.pubsub ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    redis_pubsub_free(&fixture->pubsub);
    redis_client_free(&fixture->client);
    redis_server_stop(&fixture->server);
    worker_loop_close(&fixture->worker);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channel_survives_a_failed_batch_of_unsubscriptions),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

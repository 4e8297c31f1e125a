#include "session/session_context.h"

#include "base/container.h"

#include <assert.h>

enum { RENEWALS_GATHER_MAX_MS = 100 };

static void run_token_verifier(struct loop_task *task)
{
    struct session_context *context = CONTAINER_OF(task, struct session_context, verify);
    if (context->leases_opening >= SESSION_LEASES_OPENING_MAX)
        return; /* until session_context_note_opened() */
    if (verifier_run(context->verifier, &context->loop->clock))
        loop_defer(context->loop, task);
}

void session_context_note_opening(struct session_context *context)
{
    context->leases_opening++;
}

void session_context_note_opened(struct session_context *context)
{
    assert(context->leases_opening > 0);
    if (context->leases_opening-- == SESSION_LEASES_OPENING_MAX)
        loop_defer(context->loop, &context->verify);
}

static size_t count_local_devices(void *arg, struct slice user_id)
{
    const struct session_context *context = arg;
    const struct route *route = router_find(context->router, user_id);
    size_t count = 0;
    if (!route)
        return 0;
    for (const struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next)
        count++;
    return count;
}

static enum delivery_known find_last_known(void *arg, struct slice user_id)
{
    const struct session_context *context = arg;
    struct presence presence;
    if (!last_known_find(context->presence->last_known, user_id, &presence))
        return DELIVERY_KNOWN_NOTHING;
    return presence.status == PRESENCE_OFFLINE ? DELIVERY_KNOWN_OFFLINE : DELIVERY_KNOWN_ONLINE;
}

struct delivery_locals session_context_locals(struct session_context *context)
{
    return (struct delivery_locals){context->gateway_id, count_local_devices, find_last_known,
                                    context};
}

static void flush_lease_renewals(struct wheel_timer *timer)
{
    presence_flush(CONTAINER_OF(timer, struct session_context, flush)->presence);
}

/* Waits a hundredth of the window at most, which a lease can spare. */
void session_context_flush_soon(struct session_context *context)
{
    int64_t gather_ms = context->config->presence.expiry_window_ms / 100;
    if (!wheel_is_set(&context->flush))
        loop_set_timer(context->loop, &context->flush,
                       context->loop->clock.now_ms + (gather_ms < RENEWALS_GATHER_MAX_MS
                                                          ? gather_ms
                                                          : RENEWALS_GATHER_MAX_MS));
}

void session_context_init(struct session_context *context)
{
    const struct config_inbound *inbound = &context->config->gateway.backpressure.inbound;
    context->command_rate =
        rate_make(inbound->command_rate_per_second, RATE_SECOND_US, inbound->command_rate_burst);
    context->message_rate =
        rate_make(inbound->rate_limit_per_second, RATE_SECOND_US, inbound->rate_limit_burst);
    budgets_init(&context->budgets, &context->config->limits);
    context->budgets.metrics = context->metrics;
    context->verify.run = run_token_verifier;
    context->flush.fire = flush_lease_renewals;
}

bool session_context_verify(struct session_context *context, struct slice token, verifier_done done,
                            void *arg)
{
    if (!verifier_submit(context->verifier, token, done, arg))
        return false;
    loop_defer(context->loop, &context->verify);
    return true;
}

#include "session/session_context.h"

#include "base/container.h"

enum { RENEWALS_GATHER_MAX_MS = 100 };

static void run_token_verifier(struct loop_task *task)
{
    struct session_context *context = CONTAINER_OF(task, struct session_context, verify);
    if (verifier_run(context->verifier, &context->loop->clock))
        loop_defer(context->loop, task);
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

#include "session/session_context.h"

#include "base/container.h"

enum { RENEWALS_GATHER_MAX_MS = 100 };

static void verify(struct loop_task *task)
{
    struct handler_context *context = CONTAINER_OF(task, struct handler_context, verify);
    if (verifier_run(context->verifier, &context->loop->clock))
        loop_defer(context->loop, task);
}

static void flush(struct wheel_timer *timer)
{
    presence_flush(CONTAINER_OF(timer, struct handler_context, flush)->presence);
}

/* A hundredth of a window, which a lease can spare. */
void context_flush_soon(struct handler_context *context)
{
    int64_t gather_ms = context->config->presence.expiry_window_ms / 100;
    if (!wheel_is_set(&context->flush))
        loop_set_timer(context->loop, &context->flush,
                       context->loop->clock.now_ms + (gather_ms < RENEWALS_GATHER_MAX_MS
                                                          ? gather_ms
                                                          : RENEWALS_GATHER_MAX_MS));
}

void context_init_tasks(struct handler_context *context)
{
    context->verify.run = verify;
    context->flush.fire = flush;
    list_init(&context->waiting);
    list_init(&context->joining);
}

bool context_verify(struct handler_context *context, struct slice token,
                    void (*done)(void *arg, enum jwt_result result,
                                 const struct identity *identity),
                    void *arg)
{
    if (!verifier_submit(context->verifier, token, done, arg))
        return false;
    loop_defer(context->loop, &context->verify);
    return true;
}

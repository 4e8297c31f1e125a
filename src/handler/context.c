#include "handler/context.h"

#include "base/container.h"

static void verify(struct loop_task *task)
{
    struct handler_context *context = CONTAINER_OF(task, struct handler_context, verify);
    if (verifier_run(context->verifier, &context->loop->clock))
        loop_defer(context->loop, task);
}

static void flush(struct loop_task *task)
{
    presence_flush(CONTAINER_OF(task, struct handler_context, flush)->presence);
}

void context_init_tasks(struct handler_context *context)
{
    context->verify.run = verify;
    context->flush.run = flush;
    list_init(&context->waiting);
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

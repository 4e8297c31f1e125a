#include "ledger/dynamodb/client/dynamodb_parallel.h"

#include "base/container.h"

struct parallel {
    struct dynamodb_task *task;
    size_t count;
    size_t next; /* the first part that nobody has taken */
    dynamodb_part run;
    void *arg;
    unsigned helpers; /* that have not ended */
    bool is_waiting;  /* the task has nothing left to do but wait for the helpers */
    struct loop_task step;
};

static bool take_part(struct parallel *parallel, size_t *at)
{
    const struct dynamodb_task *task = parallel->task;
    if (task->failed || task->invalid || parallel->next == parallel->count)
        return false;
    *at = parallel->next++;
    return true;
}

static void take_failure(struct dynamodb_task *task, const struct dynamodb_task *part)
{
    task->failed |= part->failed;
    task->invalid |= part->invalid;
    task->late |= part->late;
}

static void run_parts(struct parallel *parallel, struct fiber *fiber)
{
    struct dynamodb_task *task = parallel->task;
    struct dynamodb_task part = {.client = task->client,
                                 .fiber = fiber,
                                 .request = task->request,
                                 .deadline_ms = task->deadline_ms};
    size_t at;
    while (take_part(parallel, &at)) {
        parallel->run(&part, at, parallel->arg);
        take_failure(task, &part);
    }
    dynamodb_task_end(&part);
}

static void resume_parallel_task(struct loop_task *step)
{
    fiber_resume(CONTAINER_OF(step, struct parallel, step)->task->fiber);
}

static void end_helper(struct parallel *parallel)
{
    if (--parallel->helpers > 0 || !parallel->is_waiting)
        return;
    parallel->step.run = resume_parallel_task;
    loop_defer(parallel->task->client->loop, &parallel->step);
}

static void run_helper(struct fiber *fiber, void *arg)
{
    struct parallel *parallel = arg;
    run_parts(parallel, fiber);
    end_helper(parallel);
}

/* Counts as a helper itself while it starts the others. */
static void start_helpers(struct loop_task *step)
{
    struct parallel *parallel = CONTAINER_OF(step, struct parallel, step);
    for (unsigned i = 1; i < DYNAMODB_HELPERS_MAX && parallel->next < parallel->count; i++) {
        parallel->helpers++;
        if (!fiber_start(parallel->task->client->helpers, run_helper, parallel)) {
            parallel->helpers--;
            break;
        }
    }
    end_helper(parallel);
}

void dynamodb_parallel(struct dynamodb_task *task, size_t count, dynamodb_part run, void *arg)
{
    struct parallel parallel = {
        .task = task, .count = count, .run = run, .arg = arg, .step = {.run = start_helpers}};
    if (count > 1 && task->client->helpers) {
        parallel.helpers = 1;
        loop_defer(task->client->loop, &parallel.step);
    }
    run_parts(&parallel, task->fiber);
    parallel.is_waiting = parallel.helpers > 0;
    if (parallel.is_waiting)
        fiber_suspend(task->fiber);
}

#include "ledger/dynamodb/client/dynamodb_client.h"

#include "base/backoff.h"
#include "base/container.h"
#include "log/log.h"

#include <stdio.h>

enum {
    TRY_MS = 2000, /* for one answer; then the same is asked again */
    CREDENTIALS_POLL_MS = 50,
    UNKNOWN_WAIT_MS = 100,
    TARGET_TEXT_MAX = 96,
};

/* How often the call under way failed for which reason. */
struct dynamodb_tries {
    unsigned throttled;
    unsigned conflicts;
    unsigned unknown;
};

static int64_t remaining_ms(const struct dynamodb_task *task)
{
    return task->deadline_ms - task->client->loop->clock.now_ms;
}

/* ---- waiting ---- */

struct dynamodb_pause {
    struct wheel_timer timer;
    struct dynamodb_task *task;
};

static void on_pause_over(struct wheel_timer *timer)
{
    fiber_resume(CONTAINER_OF(timer, struct dynamodb_pause, timer)->task->fiber);
}

void dynamodb_client_wait(struct dynamodb_task *task, int64_t wait_ms)
{
    struct loop *loop = task->client->loop;
    struct dynamodb_pause pause = {.timer = {.fire = on_pause_over}, .task = task};
    int64_t left_ms = remaining_ms(task);
    loop_set_timer(loop, &pause.timer,
                   loop->clock.now_ms + (wait_ms < left_ms ? wait_ms : left_ms));
    fiber_suspend(task->fiber);
}

/* ---- one try ---- */

static void on_dynamodb_answer(void *arg, const struct http_client_response *response)
{
    struct dynamodb_task *task = arg;
    task->http_status = response->status;
    task->was_unsent = response->unsent;
    task->answer = ledger_request_copy(task->request, response->body);
    fiber_resume(task->fiber);
}

/* Keys may still be on their way when the process has just started. */
static const struct aws_keys *wait_for_aws_keys(struct dynamodb_task *task)
{
    const struct aws_keys *keys;
    while (!(keys = aws_credentials_keys(task->client->credentials)) && remaining_ms(task) > 0)
        dynamodb_client_wait(task, CREDENTIALS_POLL_MS);
    return keys;
}

static bool send_dynamodb_request(struct dynamodb_task *task, const char *target,
                                  const struct aws_keys *keys)
{
    const struct dynamodb_client *client = task->client;
    char target_line[TARGET_TEXT_MAX];
    snprintf(target_line, sizeof(target_line), "X-Amz-Target: DynamoDB_20120810.%s", target);
    const char *const headers[] = {"Content-Type: application/x-amz-json-1.0", target_line, NULL};
    struct http_client_signing signing = {client->scope, keys->access_key_id,
                                          keys->secret_access_key, keys->session_token};
    int64_t left_ms = remaining_ms(task);
    struct http_client_request request = {
        .method = "POST",
        .url = client->url,
        .headers = headers,
        .body = buffer_slice(&task->body),
        .signing = &signing,
        .ca_file = client->ca_file,
        .time_limit_ms = left_ms < TRY_MS ? left_ms : TRY_MS,
        .body_bytes_max = DYNAMODB_ANSWER_BYTES_MAX,
    };
    return http_client_send(client->http, &request, on_dynamodb_answer, task);
}

static enum dynamodb_error try_dynamodb_call(struct dynamodb_task *task, const char *target)
{
    const struct aws_keys *keys = wait_for_aws_keys(task);
    task->error_name[0] = '\0';
    if (!keys)
        return DYNAMODB_ERROR_CREDENTIALS;
    if (remaining_ms(task) <= 0 || !send_dynamodb_request(task, target, keys))
        return DYNAMODB_ERROR_UNAVAILABLE;
    fiber_suspend(task->fiber);
    if (task->was_unsent || task->request->exhausted)
        return DYNAMODB_ERROR_UNAVAILABLE;
    return dynamodb_error_of(task->http_status, task->answer, task->error_name);
}

/* ---- trying again ---- */

/* Two transactions that met must not meet again: the wait is random, and its spread doubles. */
static int64_t conflict_wait_ms(struct dynamodb_task *task, unsigned conflicts)
{
    int64_t least_ms = task->client->settings.transaction_conflict.jitter_ms;
    if (least_ms > DYNAMODB_CONFLICT_WAIT_MAX_MS)
        least_ms = DYNAMODB_CONFLICT_WAIT_MAX_MS;
    int64_t spread_ms = backoff_without_jitter_ms(conflicts - 1, least_ms,
                                                  DYNAMODB_CONFLICT_WAIT_MAX_MS - least_ms);
    return least_ms + (int64_t)random_below(task->client->random, (uint64_t)spread_ms + 1);
}

/* Returns how long to wait before the next try, or -1 when there is none. */
static int64_t next_try_wait_ms(struct dynamodb_task *task, enum dynamodb_error error,
                                struct dynamodb_tries *tries)
{
    const struct config_dynamodb *settings = &task->client->settings;
    switch (error) {
    case DYNAMODB_ERROR_THROTTLED:
        ledger_count(&task->client->metrics->throttles);
        if (++tries->throttled >= settings->retry.max_attempts)
            return -1;
        return backoff_without_jitter_ms(tries->throttled - 1, settings->retry.initial_backoff_ms,
                                         settings->retry.max_backoff_ms);
    case DYNAMODB_ERROR_CONFLICT:
        ledger_count(&task->client->metrics->conflicts);
        task->conflicts++;
        if (++tries->conflicts >= settings->transaction_conflict.max_attempts)
            return -1;
        return conflict_wait_ms(task, tries->conflicts);
    case DYNAMODB_ERROR_UNKNOWN:
        return ++tries->unknown >= DYNAMODB_UNKNOWN_ATTEMPTS_MAX ? -1 : UNKNOWN_WAIT_MS;
    default:
        return -1;
    }
}

static enum dynamodb_outcome fail_dynamodb_task(struct dynamodb_task *task, const char *target)
{
    const char *name = task->error_name;
    task->failed = true;
    task->late = remaining_ms(task) <= 0;
    log_error("ledger_failed", "operation=%s call=%s status=%u error=%s",
              ledger_request_operation_name(task->request->operation), target, task->http_status,
              log_sentence(slice_of(name[0]      ? name
                                    : task->late ? "no time left"
                                                 : "no answer")));
    return DYNAMODB_FAILED;
}

enum dynamodb_outcome dynamodb_client_call(struct dynamodb_task *task, const char *target)
{
    struct dynamodb_tries tries = {0};
    if (task->body.failed || task->request->exhausted) /* the body is not what was meant */
        task->failed = true;
    while (!task->failed && !task->invalid) {
        enum dynamodb_error error = try_dynamodb_call(task, target);
        if (error == DYNAMODB_ERROR_NONE || error == DYNAMODB_ERROR_CONDITION)
            return error == DYNAMODB_ERROR_NONE ? DYNAMODB_DONE : DYNAMODB_REFUSED;
        if (error == DYNAMODB_ERROR_INVALID && task->takes_errors)
            return DYNAMODB_REFUSED;
        int64_t wait_ms = next_try_wait_ms(task, error, &tries);
        if (wait_ms < 0 || wait_ms >= remaining_ms(task))
            return fail_dynamodb_task(task, target);
        dynamodb_client_wait(task, wait_ms);
    }
    return DYNAMODB_FAILED;
}

void dynamodb_task_end(struct dynamodb_task *task)
{
    buffer_free(&task->body);
}

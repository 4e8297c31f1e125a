#include "hooks/hook.h"

#include "base/ulid.h"
#include "log/log.h"

#include <stdlib.h>
#include <string.h>

#define ID_PREFIX "ask_"

struct hook_question {
    struct hook *hook;
    uint32_t ticket;
    int64_t asked_at_ms;
    hook_done done;
    void *arg;
};

static enum hook_result judge_hook_status(unsigned status)
{
    if (status >= 200 && status < 300)
        return HOOK_ACCEPTED;
    return status >= 400 && status < 500 ? HOOK_REFUSED : HOOK_FAILED;
}

static void on_hook_answered(void *arg, const struct http_client_response *response)
{
    struct hook_question *question = arg;
    struct hook *hook = question->hook;
    struct hook_answer answer = {judge_hook_status(response->status), response->status,
                                 response->body};
    int64_t now_ms = hook->loop->clock.now_ms;
    hook_gate_leave(hook->gate, question->ticket,
                    answer.result == HOOK_FAILED ? BREAKER_FAILURE : BREAKER_SUCCESS, now_ms);
    metrics_add(hook->metrics, METRIC_HOOKS_IN_FLIGHT, -1);
    metrics_latency(hook->metrics, LATENCY_HOOK, (now_ms - question->asked_at_ms) * 1000);
    if (answer.result == HOOK_FAILED) {
        metrics_count(hook->metrics, METRIC_HOOKS_FAILED);
        log_warn("hook_failed", "hook=%s status=%u error=%s", hook->name, response->status,
                 log_sentence(slice_of(response->error ? response->error : "unexpected status")));
    }
    question->done(question->arg, &answer);
    free(question);
}

/* Returns false when out of memory. */
static bool send_hook_question(struct hook *hook, struct slice body, struct hook_question *question)
{
    char id[sizeof(ID_PREFIX) - 1 + ULID_TEXT_LEN] = ID_PREFIX;
    struct ulid ulid = ulid_make(hook->loop->clock.wall_ms, hook->random);
    struct webhook_headers headers;
    ulid_write(id + sizeof(ID_PREFIX) - 1, &ulid);
    if (!webhook_signer_sign(&hook->signer, &headers, (struct slice){id, sizeof(id)},
                             hook->loop->clock.wall_ms / 1000, body))
        return false;
    const char *lines[] = {"Content-Type: application/json", headers.id, headers.timestamp,
                           headers.signature[0] ? headers.signature : NULL, NULL};
    return http_client_send(hook->client,
                            &(struct http_client_request){
                                .method = "POST",
                                .url = hook->url,
                                .headers = lines,
                                .body = body,
                                .ca_file = hook->ca_file,
                                .time_limit_ms = hook->time_limit_ms,
                                .body_bytes_max = HOOK_ANSWER_BYTES_MAX,
                                .plain_to_loopback_only = true,
                            },
                            on_hook_answered, question);
}

enum hook_admission hook_ask(struct hook *hook, struct slice body, hook_done done, void *arg)
{
    int64_t now_ms = hook->loop->clock.now_ms;
    struct hook_question *question = hook->closed ? NULL : malloc(sizeof(*question));
    enum hook_admission admission = HOOK_TOO_MANY;
    if (question) {
        *question = (struct hook_question){hook, 0, now_ms, done, arg};
        admission = hook_gate_enter(hook->gate, now_ms, &question->ticket);
    }
    if (admission == HOOK_ADMITTED && !send_hook_question(hook, body, question)) {
        hook_gate_leave(hook->gate, question->ticket, BREAKER_NEITHER, now_ms);
        admission = HOOK_TOO_MANY;
    }
    if (admission == HOOK_ADMITTED) {
        metrics_count(hook->metrics, METRIC_HOOKS_ASKED);
        metrics_add(hook->metrics, METRIC_HOOKS_IN_FLIGHT, 1);
    } else {
        metrics_count(hook->metrics, METRIC_HOOKS_NOT_ASKED);
        free(question);
    }
    return admission;
}

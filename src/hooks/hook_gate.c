#include "hooks/hook_gate.h"

#include "log/log.h"

#include <pthread.h>
#include <stdlib.h>

struct hook_gate {
    const char *name;
    uint32_t in_flight_max;
    pthread_mutex_t mutex; /* guards the following */
    uint32_t in_flight;
    struct breaker breaker;
};

static void log_hook_breaker(const struct hook_gate *gate, enum breaker_state from,
                             enum breaker_state to)
{
    if (from == to)
        return;
    if (to == BREAKER_OPEN)
        log_error("hook_breaker", "hook=%s from=%s to=%s", gate->name, breaker_state_name(from),
                  breaker_state_name(to));
    else
        log_info("hook_breaker", "hook=%s from=%s to=%s", gate->name, breaker_state_name(from),
                 breaker_state_name(to));
}

struct hook_gate *hook_gate_make(const char *name, const struct config_hooks *config)
{
    struct hook_gate *gate = calloc(1, sizeof(*gate));
    struct breaker_limits limits = {
        .failure_threshold = config->circuit_breaker.failure_threshold,
        .probe_count = config->circuit_breaker.half_open_probe_count,
        .failure_window_ms = config->circuit_breaker.failure_window_ms,
        .open_duration_ms = config->circuit_breaker.open_duration_ms,
    };
    if (!gate || !breaker_init(&gate->breaker, &limits)) {
        free(gate);
        return NULL;
    }
    gate->name = name;
    gate->in_flight_max = config->in_flight_max;
    pthread_mutex_init(&gate->mutex, NULL);
    return gate;
}

void hook_gate_free(struct hook_gate **gate)
{
    struct hook_gate *freed = *gate;
    *gate = NULL;
    if (!freed)
        return;
    pthread_mutex_destroy(&freed->mutex);
    breaker_free(&freed->breaker);
    free(freed);
}

enum hook_admission hook_gate_enter(struct hook_gate *gate, int64_t now_ms, uint32_t *ticket)
{
    enum hook_admission admission = HOOK_TOO_MANY;
    pthread_mutex_lock(&gate->mutex);
    enum breaker_state before = gate->breaker.state;
    if (gate->in_flight < gate->in_flight_max)
        admission =
            breaker_admit(&gate->breaker, now_ms, ticket) ? HOOK_ADMITTED : HOOK_BREAKER_OPEN;
    gate->in_flight += admission == HOOK_ADMITTED;
    enum breaker_state after = gate->breaker.state;
    pthread_mutex_unlock(&gate->mutex);
    log_hook_breaker(gate, before, after);
    return admission;
}

void hook_gate_leave(struct hook_gate *gate, uint32_t ticket, enum breaker_result result,
                     int64_t now_ms)
{
    pthread_mutex_lock(&gate->mutex);
    enum breaker_state before = gate->breaker.state;
    breaker_report(&gate->breaker, ticket, result, now_ms);
    gate->in_flight--;
    enum breaker_state after = gate->breaker.state;
    pthread_mutex_unlock(&gate->mutex);
    log_hook_breaker(gate, before, after);
}

bool hook_gate_is_shut(struct hook_gate *gate, int64_t now_ms)
{
    pthread_mutex_lock(&gate->mutex);
    bool is_shut = breaker_open_for_ms(&gate->breaker, now_ms) > 0;
    pthread_mutex_unlock(&gate->mutex);
    return is_shut;
}

#include "ledger/breaker_ledger.h"

#include "ledger/ledger_request.h"
#include "log/log.h"

#include <pthread.h>
#include <stdlib.h>

/* Clients wait at least this long, even if a probe may end the outage at any moment. */
enum { RETRY_AFTER_MIN_MS = 1000 };

struct breaker_ledger {
    struct ledger base;
    breaker_ledger_clock now_ms;
    pthread_mutex_t mutex; /* guards the breaker */
    struct breaker breaker;
};

static void log_breaker_change(enum breaker_state from, enum breaker_state to)
{
    if (from == to)
        return;
    if (to == BREAKER_OPEN)
        log_error("circuit_breaker", "from=%s to=%s", breaker_state_name(from),
                  breaker_state_name(to));
    else
        log_info("circuit_breaker", "from=%s to=%s", breaker_state_name(from),
                 breaker_state_name(to));
}

static uint64_t count_writes_done(struct ledger *ledger)
{
    return atomic_load_explicit(&ledger_innermost(ledger)->metrics.writes_done,
                                memory_order_relaxed);
}

static enum breaker_result judge_answer(struct ledger *ledger, const struct ledger_request *request,
                                        enum ledger_status status)
{
    switch (status) {
    case LEDGER_UNAVAILABLE:
        return BREAKER_FAILURE;
    case LEDGER_TIMEOUT:
        return count_writes_done(ledger) > request->writes_before ? BREAKER_NEITHER
                                                                  : BREAKER_FAILURE;
    case LEDGER_BUSY:
        return BREAKER_NEITHER;
    default:
        return BREAKER_SUCCESS;
    }
}

static void breaker_ledger_submit(struct ledger *ledger, struct ledger_request *request)
{
    struct breaker_ledger *self = (struct breaker_ledger *)ledger;
    if (ledger_request_writes(request)) {
        request->writes_before = count_writes_done(ledger);
        pthread_mutex_lock(&self->mutex);
        enum breaker_state before = self->breaker.state;
        bool admitted = breaker_admit(&self->breaker, self->now_ms(), &request->ticket);
        enum breaker_state after = self->breaker.state;
        pthread_mutex_unlock(&self->mutex);
        log_breaker_change(before, after);
        if (!admitted) {
            request->ticket = 0;
            ledger_request_fail(request, LEDGER_UNAVAILABLE);
            ledger_request_finish(request);
            return;
        }
    }
    ledger->inner->backend->submit(ledger->inner, request);
}

static void breaker_ledger_observe(struct ledger *ledger, const struct ledger_request *request,
                                   enum ledger_status status)
{
    struct breaker_ledger *self = (struct breaker_ledger *)ledger;
    if (!request->ticket)
        return;
    enum breaker_result result = judge_answer(ledger, request, status);
    pthread_mutex_lock(&self->mutex);
    enum breaker_state before = self->breaker.state;
    breaker_report(&self->breaker, request->ticket, result, self->now_ms());
    enum breaker_state after = self->breaker.state;
    pthread_mutex_unlock(&self->mutex);
    log_breaker_change(before, after);
}

static int64_t breaker_ledger_retry_after_ms(struct ledger *ledger)
{
    struct breaker_ledger *self = (struct breaker_ledger *)ledger;
    pthread_mutex_lock(&self->mutex);
    bool closed = self->breaker.state == BREAKER_CLOSED;
    int64_t open_for_ms = breaker_open_for_ms(&self->breaker, self->now_ms());
    pthread_mutex_unlock(&self->mutex);
    if (closed)
        return 0;
    return open_for_ms > RETRY_AFTER_MIN_MS ? open_for_ms : RETRY_AFTER_MIN_MS;
}

static void breaker_ledger_close(struct ledger *ledger)
{
    struct breaker_ledger *self = (struct breaker_ledger *)ledger;
    ledger_close(&self->base.inner);
    breaker_free(&self->breaker);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

static const struct ledger_backend breaker_backend = {.submit = breaker_ledger_submit,
                                                      .close = breaker_ledger_close,
                                                      .observe = breaker_ledger_observe,
                                                      .retry_after_ms =
                                                          breaker_ledger_retry_after_ms};

struct ledger *breaker_ledger_make(struct ledger *inner, const struct breaker_limits *limits,
                                   breaker_ledger_clock now_ms)
{
    struct breaker_ledger *self = calloc(1, sizeof(*self));
    if (!self || !breaker_init(&self->breaker, limits)) {
        free(self);
        return NULL;
    }
    self->base.backend = &breaker_backend;
    self->base.inner = inner;
    self->now_ms = now_ms;
    pthread_mutex_init(&self->mutex, NULL);
    return &self->base;
}

enum breaker_state breaker_ledger_state(struct ledger *ledger)
{
    struct breaker_ledger *self = (struct breaker_ledger *)ledger;
    pthread_mutex_lock(&self->mutex);
    enum breaker_state state = self->breaker.state;
    pthread_mutex_unlock(&self->mutex);
    return state;
}

#include "limits/budget.h"

#include "log/log.h"

#include <stdlib.h>
#include <string.h>

#define MINUTE_US (60 * RATE_SECOND_US)
#define HOUR_US (60 * MINUTE_US)

/* A user may be refused so often over HTTP before the answers are held back. */
enum { REFUSALS_PER_SECOND = 20, REFUSALS_BURST = 100 };

static const enum metric REFUSED_METRICS[BUDGET_CLASS_COUNT] = {
    [BUDGET_MESSAGES] = METRIC_LIMITS_REFUSED_MESSAGES,
    [BUDGET_REST] = METRIC_LIMITS_REFUSED_REST,
    [BUDGET_CONTACT_REQUESTS] = METRIC_LIMITS_REFUSED_CONTACT_REQUESTS,
    [BUDGET_CHATS] = METRIC_LIMITS_REFUSED_CHATS,
    [BUDGET_SETTINGS] = METRIC_LIMITS_REFUSED_SETTINGS,
    [BUDGET_READS] = METRIC_LIMITS_REFUSED_READS,
    [BUDGET_SIGNALS] = METRIC_LIMITS_REFUSED_SIGNALS,
    [BUDGET_CALLS] = METRIC_LIMITS_REFUSED_CALLS,
    [BUDGET_EVENTS] = METRIC_LIMITS_REFUSED_EVENTS,
    [BUDGET_SERVICE] = METRIC_LIMITS_REFUSED_SERVICE,
    [BUDGET_REFUSALS] = METRIC_LIMITS_ANSWERS_HELD,
};

const char *budget_refusal_text(enum budget_class budget)
{
    static const char *const TEXTS[BUDGET_CLASS_COUNT] = {
        [BUDGET_MESSAGES] = "too many messages, all devices together",
        [BUDGET_REST] = "too many requests",
        [BUDGET_CONTACT_REQUESTS] = "too many contact requests",
        [BUDGET_CHATS] = "too many new chats or chat members",
        [BUDGET_SETTINGS] = "too many changes of settings, contacts or blocks",
        [BUDGET_READS] = "too many queries, all devices together",
        [BUDGET_SIGNALS] = "too many typing notices, read marks or call commands",
        [BUDGET_CALLS] = "too many calls",
        [BUDGET_SERVICE] = "too many requests of this key",
        [BUDGET_EVENTS] = "too many events, all devices together",
    };
    return TEXTS[budget];
}

void budgets_init(struct budgets *budgets, const struct config_limits *limits)
{
#define RATE(name, period_us) rate_make(limits->name, (period_us), limits->name##_burst)
    struct rate *rates = budgets->rates;
    rates[BUDGET_MESSAGES] = RATE(messages_per_second_per_user, RATE_SECOND_US);
    rates[BUDGET_REST] = RATE(rest_per_second_per_user, RATE_SECOND_US);
    rates[BUDGET_CONTACT_REQUESTS] = RATE(contact_requests_per_hour, HOUR_US);
    rates[BUDGET_CHATS] = RATE(chats_per_hour, HOUR_US);
    rates[BUDGET_SETTINGS] = RATE(settings_per_minute, MINUTE_US);
    rates[BUDGET_READS] = RATE(reads_per_second_per_user, RATE_SECOND_US);
    rates[BUDGET_SIGNALS] = RATE(signals_per_second_per_user, RATE_SECOND_US);
    rates[BUDGET_CALLS] = RATE(calls_per_minute, MINUTE_US);
    rates[BUDGET_SERVICE] = RATE(service_per_second_per_key, RATE_SECOND_US);
    rates[BUDGET_EVENTS] = RATE(events_per_second_per_user, RATE_SECOND_US);
    rates[BUDGET_REFUSALS] = rate_make(REFUSALS_PER_SECOND, RATE_SECOND_US, REFUSALS_BURST);
#undef RATE
}

static void note_budget_refusal(struct budgets *budgets, enum budget_class budget,
                                struct slice user_id, int64_t retry_after_ms)
{
    metrics_count(budgets->metrics, REFUSED_METRICS[budget]);
    if (budget == BUDGET_REFUSALS)
        return;
    metrics_count(budgets->metrics, METRIC_RATE_LIMITED);
    log_warn("over_budget", "user=%s class=%s retry_after_ms=%lld", log_quote(user_id),
             budget_class_name(budget), (long long)retry_after_ms);
}

static void on_local_budget_taken(void *arg, enum state_status status,
                                  const struct budget_outcome *outcome)
{
    (void)status; /* memory always can tell */
    *(struct budget_outcome *)arg = *outcome;
}

static struct budget_claim make_budget_claim(const struct budgets *budgets,
                                             enum budget_class budget, struct slice user_id,
                                             unsigned cost)
{
    struct rate rate = budgets->rates[budget];
    return (struct budget_claim){budget, user_id, rate, rate.interval_us * cost / BUDGET_ONE};
}

bool budget_take(struct budgets *budgets, enum budget_class budget, struct slice user_id,
                 unsigned cost, int64_t *retry_after_ms)
{
    struct budget_claim claim = make_budget_claim(budgets, budget, user_id, cost);
    struct budget_outcome outcome = {.granted = true};
    if (claim.rate.interval_us)
        budget_store_take(budgets->local, &claim, on_local_budget_taken, &outcome);
    if (!outcome.granted)
        note_budget_refusal(budgets, budget, user_id, outcome.retry_after_ms);
    *retry_after_ms = outcome.retry_after_ms;
    return outcome.granted;
}

/* ---- the fleet ---- */

static void on_budget_refunded(void *arg, enum state_status status,
                               const struct budget_outcome *outcome)
{
    (void)arg, (void)status, (void)outcome; /* what is lost comes back with time */
}

void budget_refund(struct budgets *budgets, enum budget_class budget, struct slice user_id,
                   unsigned cost)
{
    struct budget_claim claim = make_budget_claim(budgets, budget, user_id, cost);
    claim.cost_us = -(claim.cost_us < claim.rate.full_us ? claim.cost_us : claim.rate.full_us);
    if (claim.rate.interval_us == 0)
        return;
    budget_store_take(budgets->local, &claim, on_budget_refunded, NULL);
    if (budgets->fleet)
        budget_store_take(budgets->fleet, &claim, on_budget_refunded, NULL);
}

static bool is_fleet_budget(enum budget_class budget)
{
    return budget == BUDGET_CONTACT_REQUESTS || budget == BUDGET_CHATS || budget == BUDGET_SETTINGS;
}

void budgets_forget(struct budgets *budgets, struct slice user_id)
{
    for (enum budget_class budget = BUDGET_NONE + 1; budget < BUDGET_CLASS_COUNT; budget++) {
        struct rate rate = budgets->rates[budget];
        struct budget_claim claim = {budget, user_id, rate, -rate.full_us};
        if (rate.interval_us == 0)
            continue;
        budget_store_take(budgets->local, &claim, on_budget_refunded, NULL);
        if (budgets->fleet && is_fleet_budget(budget))
            budget_store_take(budgets->fleet, &claim, on_budget_refunded, NULL);
    }
}

struct budget_question {
    struct budgets *budgets;
    enum budget_class budget;
    budget_asked done;
    void *arg;
    size_t user_len;
    char user[];
};

static void on_fleet_budget_taken(void *arg, enum state_status status,
                                  const struct budget_outcome *outcome)
{
    struct budget_question *question = arg;
    bool refused = status == STATE_OK && !outcome->granted;
    struct budget_outcome decided = {!refused, refused ? outcome->retry_after_ms : 0};
    if (refused)
        note_budget_refusal(question->budgets, question->budget,
                            (struct slice){question->user, question->user_len},
                            outcome->retry_after_ms);
    question->done(question->arg, &decided);
    free(question);
}

void budget_ask(struct budgets *budgets, enum budget_class budget, struct slice user_id,
                unsigned cost, budget_asked done, void *arg)
{
    struct budget_outcome outcome = {0};
    struct budget_question *question = NULL;
    outcome.granted = budget_take(budgets, budget, user_id, cost, &outcome.retry_after_ms);
    if (outcome.granted && budgets->fleet && budgets->rates[budget].interval_us)
        question = malloc(sizeof(*question) + user_id.len);
    if (!question) {
        done(arg, &outcome);
        return;
    }
    *question = (struct budget_question){budgets, budget, done, arg, user_id.len};
    memcpy(question->user, user_id.data, user_id.len);
    struct budget_claim claim = make_budget_claim(budgets, budget, user_id, cost);
    budget_store_take(budgets->fleet, &claim, on_fleet_budget_taken, question);
}

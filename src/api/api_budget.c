#include "api/api_budget.h"

#include "api/api_routes.h"

#include <stdlib.h>

enum { MEMBERS_PER_CHAT_COST = 100, MEMBER_COST = BUDGET_ONE / 10, LIST_COST = 4 * BUDGET_ONE };

static struct budgets *budgets_of(const struct exchange *exchange)
{
    return &api_context_of(exchange)->sessions->budgets;
}

/* ---- refusing ---- */

struct held_answer {
    struct list of_context;
    struct wheel_timer timer;
    struct exchange *exchange;
    struct message_error error;
};

static void send_held_answer(struct held_answer *held)
{
    struct exchange *exchange = held->exchange;
    struct message_error error = held->error;
    loop_cancel_timer(api_context_of(exchange)->sessions->loop, &held->timer);
    list_remove(&held->of_context);
    free(held);
    api_error(&exchange, &error);
}

static void on_held_answer_due(struct wheel_timer *timer)
{
    send_held_answer(CONTAINER_OF(timer, struct held_answer, timer));
}

/* Returns false when out of memory. */
static bool hold_answer(struct exchange *exchange, const struct message_error *error)
{
    struct api_context *context = api_context_of(exchange);
    struct loop *loop = context->sessions->loop;
    struct held_answer *held = malloc(sizeof(*held));
    if (!held)
        return false;
    *held = (struct held_answer){
        .timer.fire = on_held_answer_due, .exchange = exchange, .error = *error};
    list_append(&context->held_answers, &held->of_context);
    loop_set_timer(loop, &held->timer, loop->clock.now_ms + API_BUDGET_HOLD_MS);
    return true;
}

static void refuse_request(struct exchange *exchange, enum budget_class budget,
                           int64_t retry_after_ms)
{
    int64_t ignored_ms;
    struct message_error error = {.code = ERROR_RATE_LIMITED,
                                  .text = budget_refusal_text(budget),
                                  .client_message_id = SLICE_NONE,
                                  .retry_after_ms = retry_after_ms,
                                  .grace_period_ms = -1};
    if (budget_take(budgets_of(exchange), BUDGET_REFUSALS, exchange_user(exchange), BUDGET_ONE,
                    &ignored_ms) ||
        !hold_answer(exchange, &error))
        api_error(&exchange, &error);
}

void api_budget_release(struct api_context *context)
{
    struct list *at = context->held_answers.next;
    while (at != &context->held_answers) {
        struct list *next = at->next;
        send_held_answer(CONTAINER_OF(at, struct held_answer, of_context));
        at = next;
    }
}

/* ---- paying ---- */

/* Returns how many members a request for a chat names; 0 if it is malformed, for which it is refused later. */
static unsigned count_named_members(struct fields_scratch *fields, struct buffer *body)
{
    const char *problem;
    unsigned members = 0;
    struct json json;
    json_init(&json, body->data, body->len);
    if (!body->len || !fields_scan(fields, &json, &problem))
        return 0;
    struct slice raw = fields_find(fields, "members");
    json_init(&json, (char *)raw.data, raw.len);
    if (!raw.len || json_peek(&json) != JSON_ARRAY)
        return 0;
    json_array(&json);
    while (json_element(&json) && json_skip(&json))
        members++;
    return members;
}

/* Each MEMBERS_PER_CHAT_COST members of a new chat, besides its creator, count as one more chat. A copy of the body is
 * read, because reading unescapes keys in place and the resource reads them again. */
static unsigned cost_of_chat(struct exchange *exchange)
{
    struct buffer copy = BUFFER_INIT;
    buffer_append(&copy, exchange->body.data, exchange->body.len);
    unsigned members = count_named_members(&api_context_of(exchange)->sessions->scratch, &copy);
    buffer_free(&copy);
    return BUDGET_ONE + members / MEMBERS_PER_CHAT_COST * BUDGET_ONE;
}

static unsigned cost_of_request(struct exchange *exchange)
{
    void (*handle)(struct exchange *) = exchange->route->handle;
    if (handle == rest_chats_post)
        return cost_of_chat(exchange);
    if (handle == rest_chat_member_put)
        return MEMBER_COST;
    return handle == rest_presence_many || handle == rest_friends_get ? LIST_COST : BUDGET_ONE;
}

static void on_request_paid(void *arg, const struct budget_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->granted)
        exchange->route->handle(exchange);
    else
        refuse_request(exchange, exchange->route->budget, outcome->retry_after_ms);
}

bool api_budget_charge(struct exchange **exchange, enum budget_class budget, unsigned cost)
{
    struct exchange *charged = *exchange;
    int64_t retry_after_ms;
    if (budget_take(budgets_of(charged), budget, exchange_user(charged), cost, &retry_after_ms))
        return true;
    *exchange = NULL;
    refuse_request(charged, budget, retry_after_ms);
    return false;
}

void api_budget_serve(struct exchange *exchange)
{
    bool is_users = exchange->route->access == REST_USER;
    bool is_service = exchange->route->access == REST_SERVICE;
    if ((is_users && !api_budget_charge(&exchange, BUDGET_REST, BUDGET_ONE)) ||
        (is_service && !api_budget_charge(&exchange, BUDGET_SERVICE, BUDGET_ONE)))
        return;
    if (is_users && exchange->route->budget != BUDGET_NONE) {
        exchange->paid = cost_of_request(exchange);
        budget_ask(budgets_of(exchange), exchange->route->budget, exchange_user(exchange),
                   exchange->paid, on_request_paid, exchange);
    } else
        exchange->route->handle(exchange);
}

void api_budget_refund(struct exchange *exchange)
{
    budget_refund(budgets_of(exchange), exchange->route->budget, exchange_user(exchange),
                  exchange->paid);
    exchange->paid = 0;
}

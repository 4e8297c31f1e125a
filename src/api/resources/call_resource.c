/* GET /v1/calls: the user's call history, the latest call first. */
#include "api/admin_json.h"
#include "api/api_routes.h"
#include "api/page_query.h"

static void write_call_json(struct buffer *json, struct slice user, const struct ledger_call *call)
{
    bool outgoing = slice_equal(call->caller, user);
    int64_t talked_ms = call->answered_at_ms ? call->ended_at_ms - call->answered_at_ms : 0;
    json_write_object(json);
    json_write_key_string(json, SLICE("call_id"), call->id);
    json_write_key_string(json, SLICE("peer"), outgoing ? call->callee : call->caller);
    json_write_key_string(json, SLICE("direction"),
                          outgoing ? SLICE("outgoing") : SLICE("incoming"));
    json_write_key_string(json, SLICE("reason"), call->reason);
    admin_write_time(json, SLICE("started_at"), call->started_at_ms);
    admin_write_time(json, SLICE("answered_at"),
                     call->answered_at_ms ? call->answered_at_ms : TIME_NONE);
    admin_write_time(json, SLICE("ended_at"), call->ended_at_ms);
    json_write_key_int(json, SLICE("duration_seconds"), talked_ms > 0 ? talked_ms / 1000 : 0);
    json_write_object_end(json);
}

_Static_assert((int)CONFIG_CALL_HISTORY_MAX <= (int)LEDGER_CALLS_KEPT_MAX,
               "the ledger must keep as many calls as may be configured");

static void on_calls_listed(void *arg, const struct ledger_calls_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        api_ledger_error(&exchange, outcome->status);
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("calls"));
    json_write_array(&json);
    for (size_t i = 0; i < outcome->count; i++)
        write_call_json(&json, exchange_user(exchange), &outcome->calls[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_calls_get(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    uint32_t kept_max = sessions->config->call.history_max;
    struct page_query page;
    if (!page_query_read(&exchange, LEDGER_PAGE_MAX, &page))
        return;
    if (kept_max == 0) {
        exchange_reply(&exchange, 200, "application/json", "", SLICE("{\"calls\":[]}"));
        return;
    }
    ledger_calls_list(sessions->ledger, exchange_user(exchange),
                      page.limit < kept_max ? page.limit : kept_max, on_calls_listed, exchange);
}

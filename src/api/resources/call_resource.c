/* GET /v1/calls: the user's call history, the latest call first. */
#include "api/api_routes.h"
#include "api/call_json.h"
#include "api/page_query.h"

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
        call_json_write(&json, exchange_user(exchange), &outcome->calls[i]);
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

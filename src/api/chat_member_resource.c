/* PUT, DELETE /v1/chats/{id}/members/{user}: every member may add and remove members. */
#include "api/api_routes.h"
#include "api/chat_json.h"

/* Also what the ledger had already is acted upon: whoever was not answered asks again, and nobody has
 * heard of it then. */

static void added(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    graph_reader_drop(&rest_of(exchange)->handlers->presence->graphs, exchange->parameters[1]);
    exchange_reply_empty(&exchange);
}

void rest_chat_member_put(struct exchange *exchange)
{
    if (user_id_valid(exchange->parameters[1]))
        ledger_chat_member_add(rest_of(exchange)->handlers->ledger, exchange->parameters[0],
                               exchange_user(exchange), exchange->parameters[1], added, exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "this is no user id");
}

/* Who leaves again is refused like any who is no member, but is none for sure. */
static bool is_out(const struct exchange *exchange, enum ledger_status status)
{
    bool leaves = slice_equal(exchange_user(exchange), exchange->parameters[1]);
    return status == LEDGER_OK || (status == LEDGER_FORBIDDEN && leaves);
}

static void removed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct session_context *handlers = rest_of(exchange)->handlers;
    if (is_out(exchange, outcome->status)) {
        graph_reader_drop(&handlers->presence->graphs, exchange->parameters[1]);
        chat_publish_removal(handlers->chats, exchange->parameters[0], exchange->parameters[1]);
    }
    if (outcome->status == LEDGER_OK)
        exchange_reply_empty(&exchange);
    else
        chat_json_error(&exchange, outcome->status);
}

void rest_chat_member_delete(struct exchange *exchange)
{
    if (user_id_valid(exchange->parameters[1]))
        ledger_chat_member_remove(rest_of(exchange)->handlers->ledger, exchange->parameters[0],
                                  exchange_user(exchange), exchange->parameters[1], removed,
                                  exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "this is no user id");
}

/* PUT, DELETE /v1/chats/{id}/members/{user}: every member may add and remove members. */
#include "api/api_routes.h"
#include "api/chat_json.h"

/* A change that the ledger had already takes effect again: a client that got no answer repeats its request, and
 * the first attempt may have reached nobody. */

static void on_chat_member_added(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    graph_reader_drop(&api_context_of(exchange)->sessions->presence->graphs,
                      exchange->parameters[1]);
    exchange_reply_empty(&exchange);
}

void rest_chat_member_put(struct exchange *exchange)
{
    if (user_id_valid(exchange->parameters[1]))
        ledger_chat_member_add(api_context_of(exchange)->sessions->ledger, exchange->parameters[0],
                               exchange_user(exchange), exchange->parameters[1],
                               on_chat_member_added, exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "this is not a user id");
}

static void on_chat_member_removed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct session_context *sessions = api_context_of(exchange)->sessions;
    /* A repeated leave is refused like that of any other non-member, but it takes effect on all gateways again. */
    bool leaves = slice_equal(exchange_user(exchange), exchange->parameters[1]);
    if (outcome->status == LEDGER_OK || (outcome->status == LEDGER_FORBIDDEN && leaves)) {
        graph_reader_drop(&sessions->presence->graphs, exchange->parameters[1]);
        chat_publish_removal(sessions->chats, exchange->parameters[0], exchange->parameters[1]);
    }
    if (outcome->status == LEDGER_OK)
        exchange_reply_empty(&exchange);
    else
        chat_json_error(&exchange, outcome->status);
}

void rest_chat_member_delete(struct exchange *exchange)
{
    if (user_id_valid(exchange->parameters[1]))
        ledger_chat_member_remove(api_context_of(exchange)->sessions->ledger,
                                  exchange->parameters[0], exchange_user(exchange),
                                  exchange->parameters[1], on_chat_member_removed, exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "this is not a user id");
}

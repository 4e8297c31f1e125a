/* PUT, DELETE /v1/chats/{id}/members/{user} and /v1/chats/{id}/admins/{user} */
#include "api/api_routes.h"
#include "api/chat_events.h"
#include "api/chat_json.h"

static bool names_a_user(struct exchange **exchange)
{
    if (user_id_valid((*exchange)->parameters[1]))
        return true;
    exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, "this is not a user id");
    return false;
}

/* ---- members ---- */

static void on_chat_member_added(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    chat_events_member_added(api_context_of(exchange)->sessions, exchange->parameters[0],
                             exchange->parameters[1], outcome->changed);
    exchange_reply_empty(&exchange);
}

void rest_chat_member_put(struct exchange *exchange)
{
    if (names_a_user(&exchange))
        ledger_chat_member_add(api_context_of(exchange)->sessions->ledger, exchange->parameters[0],
                               exchange_user(exchange), exchange->parameters[1],
                               on_chat_member_added, exchange);
}

static void on_chat_member_removed(void *arg, const struct ledger_member_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct slice chat = exchange->parameters[0], user = exchange->parameters[1];
    /* A repeated leave is refused like that of any other non-member, but it takes effect on all gateways again. */
    bool leaves = slice_equal(exchange_user(exchange), user);
    if (outcome->status == LEDGER_OK || (outcome->status == LEDGER_NOT_FOUND && leaves))
        chat_events_member_removed(sessions, chat, user, outcome->changed);
    if (outcome->promoted.data)
        chat_events_role_changed(sessions, chat, outcome->promoted);
    if (outcome->status == LEDGER_OK)
        exchange_reply_empty(&exchange);
    else
        chat_json_error(&exchange, outcome->status);
}

void rest_chat_member_delete(struct exchange *exchange)
{
    if (names_a_user(&exchange))
        ledger_chat_member_remove(api_context_of(exchange)->sessions->ledger,
                                  exchange->parameters[0], exchange_user(exchange),
                                  exchange->parameters[1], on_chat_member_removed, exchange);
}

/* ---- admins ---- */

static void on_chat_role_changed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    if (outcome->changed)
        chat_events_role_changed(api_context_of(exchange)->sessions, exchange->parameters[0],
                                 exchange->parameters[1]);
    exchange_reply_empty(&exchange);
}

void rest_chat_admin_put(struct exchange *exchange)
{
    if (names_a_user(&exchange))
        ledger_chat_admin_put(api_context_of(exchange)->sessions->ledger, exchange->parameters[0],
                              exchange_user(exchange), exchange->parameters[1],
                              on_chat_role_changed, exchange);
}

void rest_chat_admin_delete(struct exchange *exchange)
{
    if (names_a_user(&exchange))
        ledger_chat_admin_delete(api_context_of(exchange)->sessions->ledger,
                                 exchange->parameters[0], exchange_user(exchange),
                                 exchange->parameters[1], on_chat_role_changed, exchange);
}

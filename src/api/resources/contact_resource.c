/*
 * DELETE /v1/contacts/{user}; GET /v1/blocks, PUT and DELETE /v1/blocks/{user}
 *
 * A change that the ledger had already is published again (VISIBILITY_REPEATED), since the first attempt may have
 * reached nobody.
 */
#include "api/api_routes.h"
#include "api/contact_events.h"

static bool names_another_user(struct exchange **exchange)
{
    struct slice other = (*exchange)->parameters[0];
    if (user_id_valid(other) && !slice_equal(other, exchange_user(*exchange)))
        return true;
    exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, "this must be another user's id");
    return false;
}

/* ---- contacts ---- */

static void on_contact_removed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK)
        api_ledger_error(&exchange, outcome->status);
    else
        contact_events_changed(exchange,
                               outcome->changed ? VISIBILITY_CONTACT_ENDED : VISIBILITY_REPEATED,
                               exchange->parameters[0], outcome->changed);
}

void rest_contact_delete(struct exchange *exchange)
{
    if (contact_events_are_of_users(&exchange) && names_another_user(&exchange))
        ledger_contact_remove(api_context_of(exchange)->sessions->ledger, exchange_user(exchange),
                              exchange->parameters[0], on_contact_removed, exchange);
}

/* ---- blocks ---- */

static void on_user_blocked(void *arg, const struct ledger_block_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK)
        api_ledger_error(&exchange, outcome->status);
    else
        contact_events_changed(exchange,
                               outcome->changed ? VISIBILITY_BLOCKED : VISIBILITY_REPEATED,
                               exchange->parameters[0], outcome->contact_removed);
}

void rest_block_put(struct exchange *exchange)
{
    if (names_another_user(&exchange))
        ledger_block_put(api_context_of(exchange)->sessions->ledger, exchange_user(exchange),
                         exchange->parameters[0], on_user_blocked, exchange);
}

static void on_user_unblocked(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK)
        api_ledger_error(&exchange, outcome->status);
    else
        contact_events_changed(exchange,
                               outcome->changed ? VISIBILITY_UNBLOCKED : VISIBILITY_REPEATED,
                               exchange->parameters[0], false);
}

void rest_block_delete(struct exchange *exchange)
{
    if (names_another_user(&exchange))
        ledger_block_delete(api_context_of(exchange)->sessions->ledger, exchange_user(exchange),
                            exchange->parameters[0], on_user_unblocked, exchange);
}

static void on_blocks_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        api_ledger_error(&exchange, outcome->status);
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("blocks"));
    json_write_array(&json);
    for (size_t i = 0; i < outcome->count; i++) {
        json_write_object(&json);
        json_write_key_string(&json, SLICE("user_id"), outcome->ids[i]);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_blocks_get(struct exchange *exchange)
{
    ledger_blocks_list(api_context_of(exchange)->sessions->ledger, exchange_user(exchange),
                       on_blocks_listed, exchange);
}

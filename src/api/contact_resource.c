/* DELETE /v1/contacts/{user}; GET /v1/blocks, PUT and DELETE /v1/blocks/{user} */
#include "api/api_routes.h"
#include "api/contact_events.h"

static bool names_a_peer(struct exchange **exchange)
{
    struct slice peer = (*exchange)->parameters[0];
    if (user_id_valid(peer) && !slice_equal(peer, exchange_user(*exchange)))
        return true;
    exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, "this must be another user's id");
    return false;
}

static enum visibility_cause cause_of(bool changed, enum visibility_cause cause)
{
    return changed ? cause : VISIBILITY_REPEATED;
}

/* ---- contacts ---- */

static void removed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK)
        rest_ledger_error(&exchange, outcome->status);
    else
        contact_events_changed(exchange, cause_of(outcome->changed, VISIBILITY_CONTACT_ENDED),
                               exchange->parameters[0], outcome->changed);
}

void rest_contact_delete(struct exchange *exchange)
{
    if (names_a_peer(&exchange))
        ledger_contact_remove(rest_of(exchange)->handlers->ledger, exchange_user(exchange),
                              exchange->parameters[0], removed, exchange);
}

/* ---- blocks ---- */

static void blocked(void *arg, const struct ledger_block_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK)
        rest_ledger_error(&exchange, outcome->status);
    else
        contact_events_changed(exchange, cause_of(outcome->changed, VISIBILITY_BLOCKED),
                               exchange->parameters[0], outcome->contact_removed);
}

void rest_block_put(struct exchange *exchange)
{
    if (names_a_peer(&exchange))
        ledger_block_put(rest_of(exchange)->handlers->ledger, exchange_user(exchange),
                         exchange->parameters[0], blocked, exchange);
}

static void unblocked(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK)
        rest_ledger_error(&exchange, outcome->status);
    else
        contact_events_changed(exchange, cause_of(outcome->changed, VISIBILITY_UNBLOCKED),
                               exchange->parameters[0], false);
}

void rest_block_delete(struct exchange *exchange)
{
    if (names_a_peer(&exchange))
        ledger_block_delete(rest_of(exchange)->handlers->ledger, exchange_user(exchange),
                            exchange->parameters[0], unblocked, exchange);
}

static void listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        rest_ledger_error(&exchange, outcome->status);
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
    ledger_blocks_list(rest_of(exchange)->handlers->ledger, exchange_user(exchange), listed,
                       exchange);
}

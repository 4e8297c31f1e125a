/* POST /admin/v1/users/{user}/revoke: ends a user's sessions and refuses the tokens issued so far. */
#include "api/admin_json.h"
#include "api/api_routes.h"
#include "ledger/ledger_revocations.h"
#include "log/log.h"
#include "session/revocation_watch.h"

static void on_user_revoked(void *arg, const struct ledger_revoke_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct slice user_id = exchange->parameters[0];
    struct buffer json = BUFFER_INIT;
    if (outcome->status == LEDGER_LIMIT) {
        exchange_error(&exchange, 409, ERROR_INVALID_MESSAGE,
                       "too many users are revoked: replace the signing key instead");
        return;
    }
    if (outcome->status != LEDGER_OK) {
        api_ledger_error(&exchange, outcome->status);
        return;
    }
    log_info("user_revoked", "user=%s by=%s", log_quote(user_id),
             log_quote(identity_user(&exchange->identity)));
    revocation_watch_publish(api_context_of(exchange)->sessions, user_id, outcome->revoked_at_s);
    json_write_object(&json);
    json_write_key_string(&json, SLICE("user_id"), user_id);
    admin_write_time(&json, SLICE("revoked_at"), outcome->revoked_at_s * 1000);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_admin_revoke(struct exchange *exchange)
{
    if (user_id_valid(exchange->parameters[0]))
        ledger_revoke(api_context_of(exchange)->sessions->ledger, exchange->parameters[0],
                      on_user_revoked, exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "the path must name a user");
}

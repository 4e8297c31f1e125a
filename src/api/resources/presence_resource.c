/* GET /v1/presence/{user}, GET /v1/presence?users=a,b */
#include "api/api_routes.h"
#include "api/presences_json.h"
#include "api/users_query.h"
#include "presence/presence_query.h"

static void on_presence_queried(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (!ok || count != 1) {
        api_ledger_error(&exchange, LEDGER_UNAVAILABLE);
        return;
    }
    fields_write_presence(&json, &presences[0]);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_presence_one(struct exchange *exchange)
{
    struct presence_query_handler handler = {.done = on_presence_queried, .arg = exchange};
    if (user_id_valid(exchange->parameters[0]))
        presence_query(api_context_of(exchange)->sessions->presence, exchange_user(exchange),
                       &exchange->parameters[0], 1, &handler);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "this is not a user id");
}

void rest_presence_many(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct presence_query_handler handler = {.done = presences_json_reply, .arg = exchange};
    struct slice users[FIELDS_USERS_MAX];
    size_t count;
    uint32_t max = sessions->config->presence.max_query_users;
    if (users_query_read(exchange, users, max < FIELDS_USERS_MAX ? max : FIELDS_USERS_MAX, &count))
        presence_query(sessions->presence, exchange_user(exchange), users, count, &handler);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "users must be a comma-separated list of 1 to 100 user ids");
}

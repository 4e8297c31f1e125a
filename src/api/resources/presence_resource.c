/* GET /v1/presence/{user}, GET /v1/presence?users=a,b */
#include "api/api_routes.h"
#include "presence/presence_query.h"

#include <string.h>

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

static void on_presences_queried(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (!ok) {
        api_ledger_error(&exchange, LEDGER_UNAVAILABLE);
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("presences"));
    json_write_array(&json);
    for (size_t i = 0; i < count; i++)
        fields_write_presence(&json, &presences[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
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

/* Splits the list at its commas and decodes the ids in place. An escaped comma belongs to an id, unless all commas
 * are escaped: many clients escape the whole list. */
static bool split_query_users(struct exchange *exchange, struct slice *users, size_t max,
                              size_t *count)
{
    struct slice list = http1_query_find(exchange->head.target.query, SLICE("users"));
    bool escaped_as_whole = list.data && !memchr(list.data, ',', list.len);
    *count = 0;
    if (escaped_as_whole && !http1_query_decode(list, (char *)list.data, &list.len))
        return false;
    while (list.data) {
        struct slice user;
        list = slice_split(list, ',', &user);
        if (*count == max ||
            (!escaped_as_whole && !http1_query_decode(user, (char *)user.data, &user.len)) ||
            !user_id_valid(user))
            return false;
        users[(*count)++] = user;
    }
    return *count > 0;
}

void rest_presence_many(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct presence_query_handler handler = {.done = on_presences_queried, .arg = exchange};
    struct slice users[FIELDS_USERS_MAX];
    size_t count;
    uint32_t max = sessions->config->presence.max_query_users;
    if (split_query_users(exchange, users, max < FIELDS_USERS_MAX ? max : FIELDS_USERS_MAX, &count))
        presence_query(sessions->presence, exchange_user(exchange), users, count, &handler);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "users must be a comma-separated list of 1 to 100 user ids");
}

/* GET /v1/presence/{user}, GET /v1/presence?users=a,b */
#include "api/api_routes.h"
#include "presence/presence_query.h"

#include <string.h>

static void looked_at_one(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (!ok || count != 1) {
        rest_ledger_error(&exchange, LEDGER_UNAVAILABLE);
        return;
    }
    fields_write_presence(&json, &presences[0]);
    exchange_reply_json(&exchange, 200, &json);
}

static void looked_at_many(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (!ok) {
        rest_ledger_error(&exchange, LEDGER_UNAVAILABLE);
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

static void look(struct exchange *exchange, const struct slice *users, size_t count,
                 void (*done)(void *arg, bool ok, const struct presence *presences, size_t count))
{
    struct presence_query_handler handler = {.done = done, .arg = exchange};
    presence_query(rest_of(exchange)->handlers->presence, exchange_user(exchange), users, count,
                   &handler);
}

void rest_presence_one(struct exchange *exchange)
{
    if (user_id_valid(exchange->parameters[0]))
        look(exchange, &exchange->parameters[0], 1, looked_at_one);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "this is no user id");
}

/* The list's end is moved to where the decoded text ends. */
static bool decode(struct slice *text)
{
    return http1_query_decode(*text, (char *)text->data, &text->len);
}

/* The parts between commas, decoded where they stand. An escaped comma belongs to an id, unless there is no
 * other: many clients escape the list as a whole. */
static bool split_users(struct exchange *exchange, struct slice *users, size_t max, size_t *count)
{
    struct slice list = http1_query_find(exchange->head.target.query, SLICE("users"));
    bool escaped_as_whole = list.data && !memchr(list.data, ',', list.len);
    *count = 0;
    if (escaped_as_whole && !decode(&list))
        return false;
    while (list.data) {
        struct slice user;
        list = slice_split(list, ',', &user);
        if (*count == max || (!escaped_as_whole && !decode(&user)) || !user_id_valid(user))
            return false;
        users[(*count)++] = user;
    }
    return *count > 0;
}

void rest_presence_many(struct exchange *exchange)
{
    struct slice users[FIELDS_USERS_MAX];
    size_t count;
    uint32_t max = rest_of(exchange)->handlers->config->presence.max_query_users;
    if (split_users(exchange, users, max < FIELDS_USERS_MAX ? max : FIELDS_USERS_MAX, &count))
        look(exchange, users, count, looked_at_many);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "users must be a comma-separated list of 1 to 100 user ids");
}

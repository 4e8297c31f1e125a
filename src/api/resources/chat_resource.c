/* POST /v1/chats, GET /v1/chats, GET /v1/chats/{id} */
#include "api/api_routes.h"
#include "api/chat_json.h"
#include "api/page_query.h"

#include <stdlib.h>

enum { CHATS_PAGE = 100 }; /* by default; LEDGER_PAGE_MAX at most */

/* ---- creating ---- */

static void on_chat_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    /* also for a chat that exists already: a client that got no answer repeats its request */
    for (size_t i = 0; i < outcome->chat.member_count; i++)
        graph_reader_drop(&api_context_of(exchange)->sessions->presence->graphs,
                          outcome->chat.members[i]);
    chat_json_write(&json, &outcome->chat);
    exchange_reply_json(&exchange, outcome->created ? 201 : 200, &json);
}

/* Reads the members; the ids point into the body, and the caller frees the array. Returns NULL when they are
 * invalid (*problem is set) or when out of memory (*problem is NULL). */
static struct slice *read_chat_members(struct slice raw, size_t *count, const char **problem)
{
    struct json json;
    *problem = "members must be a list of user ids";
    json_init(&json, (char *)raw.data, raw.len);
    if (!raw.len || json_peek(&json) != JSON_ARRAY)
        return NULL;
    struct json counted = json;
    size_t named = 0;
    json_array(&counted);
    while (json_element(&counted) && json_skip(&counted))
        named++;
    if (named > LEDGER_CHAT_MEMBERS_MAX) {
        *problem = "a chat has at most 10000 members";
        return NULL;
    }
    struct slice *members = malloc((named + 1) * sizeof(*members));
    if (!members) {
        *problem = NULL;
        return NULL;
    }
    json_array(&json);
    for (*count = 0; json_element(&json); (*count)++)
        if (!json_string(&json, &members[*count]) || !user_id_valid(members[*count])) {
            free(members);
            *problem = "members must be user ids: 1 to 128 bytes, no control characters";
            return NULL;
        }
    return members;
}

/* The requested id, or a new one written to `made`; SLICE_NONE when the requested id is invalid. */
static struct slice choose_chat_id(struct exchange *exchange, char made[ULID_TEXT_LEN])
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct slice raw = fields_find(&sessions->scratch, "chat_id");
    struct slice id = {made, ULID_TEXT_LEN};
    if (raw.data && !slice_is(raw, "null"))
        return fields_string(raw, &id) && user_id_valid(id) ? id : SLICE_NONE;
    struct ulid ulid = ulid_make(sessions->loop->clock.wall_ms, sessions->random);
    ulid_write(made, &ulid);
    return id;
}

void rest_chats_post(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    char made[ULID_TEXT_LEN];
    const char *problem;
    size_t count;
    if (!api_read_json(&exchange))
        return;
    struct slice id = choose_chat_id(exchange, made);
    if (!id.data) {
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "chat_id must be a string of 1 to 128 bytes, no control characters");
        return;
    }
    struct slice *members =
        read_chat_members(fields_find(&sessions->scratch, "members"), &count, &problem);
    if (!members) {
        if (problem)
            exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, problem);
        else
            exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    ledger_chat_create(sessions->ledger, id, exchange_user(exchange), members, count,
                       on_chat_created, exchange);
    free(members);
}

/* ---- reading ---- */

static void on_chat_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    chat_json_write(&json, &outcome->chat);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_chat_get(struct exchange *exchange)
{
    ledger_chat_get(api_context_of(exchange)->sessions->ledger, exchange->parameters[0],
                    exchange_user(exchange), on_chat_read, exchange);
}

static void on_chats_listed(void *arg, const struct ledger_chats_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("chats"));
    json_write_array(&json);
    for (size_t i = 0; i < outcome->count; i++)
        chat_json_write(&json, &outcome->chats[i]);
    json_write_array_end(&json);
    json_write_key_bool(&json, SLICE("has_more"), outcome->has_more);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_chats_get(struct exchange *exchange)
{
    struct page_query page;
    if (page_query_read(&exchange, CHATS_PAGE, &page))
        ledger_chats_list(api_context_of(exchange)->sessions->ledger, exchange_user(exchange),
                          page.after, page.limit, true, on_chats_listed, exchange);
}

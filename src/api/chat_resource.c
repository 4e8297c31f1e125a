/* POST /v1/chats, GET /v1/chats, GET /v1/chats/{id} */
#include "api/api_routes.h"
#include "api/chat_json.h"
#include "api/page_query.h"

#include <stdlib.h>

enum { CHATS_PAGE = 100 }; /* unless another limit is asked for, LEDGER_PAGE_MAX at most */

/* ---- making one ---- */

static void created(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    /* also of one that is there already: whoever was not answered asks again */
    for (size_t i = 0; i < outcome->chat.member_count; i++)
        graph_reader_drop(&rest_of(exchange)->handlers->presence->graphs, outcome->chat.members[i]);
    chat_json_write(&json, &outcome->chat);
    exchange_reply_json(&exchange, outcome->created ? 201 : 200, &json);
}

static size_t count_elements(struct slice raw)
{
    struct json json;
    size_t count = 0;
    json_init(&json, (char *)raw.data, raw.len);
    json_array(&json);
    while (json_element(&json) && json_skip(&json))
        count++;
    return count;
}

/* The ids stand in the body; their slices must be freed. NULL: *problem says why. */
static struct slice *read_members(struct slice raw, size_t *count, const char **problem)
{
    struct json json;
    *problem = "members must be a list of user ids";
    json_init(&json, (char *)raw.data, raw.len);
    if (!raw.len || json_peek(&json) != JSON_ARRAY)
        return NULL;
    size_t named = count_elements(raw);
    if (named > LEDGER_CHAT_MEMBERS_MAX) {
        *problem = "a chat has at most 10000 members";
        return NULL;
    }
    struct slice *members = malloc((named + 1) * sizeof(*members));
    json_array(&json);
    for (*count = 0; members && json_element(&json); (*count)++)
        if (!json_string(&json, &members[*count]) || !user_id_valid(members[*count])) {
            free(members);
            *problem = "members must be user ids: 1 to 128 bytes, no control characters";
            return NULL;
        }
    return members;
}

/* The id that was given, or a new one written to `made`; SLICE_NONE when what was given is none. */
static struct slice choose_id(struct exchange *exchange, char made[ULID_TEXT_LEN])
{
    struct session_context *handlers = rest_of(exchange)->handlers;
    struct slice raw = fields_find(&handlers->scratch, "chat_id");
    struct slice id = {made, ULID_TEXT_LEN};
    if (raw.data && !slice_is(raw, "null"))
        return fields_string(raw, &id) && user_id_valid(id) ? id : SLICE_NONE;
    struct ulid ulid = ulid_make(handlers->loop->clock.wall_ms, handlers->random);
    ulid_write(made, &ulid);
    return id;
}

void rest_chats_post(struct exchange *exchange)
{
    struct session_context *handlers = rest_of(exchange)->handlers;
    char made[ULID_TEXT_LEN];
    const char *problem;
    size_t count;
    if (!rest_json(&exchange))
        return;
    struct slice id = choose_id(exchange, made);
    if (!id.data) {
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "chat_id must be a string of 1 to 128 bytes, no control characters");
        return;
    }
    struct slice *members =
        read_members(fields_find(&handlers->scratch, "members"), &count, &problem);
    if (!members) {
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, problem);
        return;
    }
    ledger_chat_create(handlers->ledger, id, exchange_user(exchange), members, count, created,
                       exchange);
    free(members);
}

/* ---- reading ---- */

static void got(void *arg, const struct ledger_chat_outcome *outcome)
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
    ledger_chat_get(rest_of(exchange)->handlers->ledger, exchange->parameters[0],
                    exchange_user(exchange), got, exchange);
}

static void listed(void *arg, const struct ledger_chats_outcome *outcome)
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
        ledger_chats_list(rest_of(exchange)->handlers->ledger, exchange_user(exchange), page.after,
                          page.limit, true, listed, exchange);
}

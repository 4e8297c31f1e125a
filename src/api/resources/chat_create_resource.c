/* POST /v1/chats: creates a group, or returns the direct chat with another user. */
#include "api/api_budget.h"
#include "api/api_routes.h"
#include "api/chat_events.h"
#include "api/chat_json.h"
#include "api/user_ids_json.h"

#include <stdlib.h>

enum { DIRECT_PREFIX_LEN = sizeof(LEDGER_CHAT_DIRECT_PREFIX "-") - 1 };

static void on_chat_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status == LEDGER_OK)
        chat_events_created(api_context_of(exchange)->sessions, &outcome->chat, outcome->created);
    if (outcome->status == LEDGER_OK && !outcome->created)
        api_budget_refund(exchange);
    chat_json_reply(exchange, outcome);
}

static void refuse_chat(struct exchange *exchange, const char *problem)
{
    exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, problem);
}

static bool is_json_value(struct slice raw)
{
    return raw.data && !slice_is(raw, "null");
}

/* Writes a new id, which nobody can guess, after a prefix. */
static struct slice make_chat_id(struct session_context *sessions, struct slice prefix,
                                 char made[DIRECT_PREFIX_LEN + ULID_TEXT_LEN])
{
    struct ulid ulid = ulid_make(sessions->loop->clock.wall_ms, sessions->random);
    if (prefix.len)
        memcpy(made, prefix.data, prefix.len);
    ulid_write(made + prefix.len, &ulid);
    return (struct slice){made, prefix.len + ULID_TEXT_LEN};
}

/* ---- direct chats ---- */

static void post_direct_chat(struct exchange *exchange, struct slice raw)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    char made[DIRECT_PREFIX_LEN + ULID_TEXT_LEN];
    struct slice other;
    if (is_json_value(fields_find(&sessions->scratch, "members")) ||
        is_json_value(fields_find(&sessions->scratch, "chat_id")))
        refuse_chat(exchange, "direct_with stands alone: a direct chat has no other members, and "
                              "the server makes its id");
    else if (!fields_string(raw, &other) || !user_id_valid(other) ||
             slice_equal(other, exchange_user(exchange)))
        refuse_chat(exchange, "direct_with must be another user's id");
    else
        ledger_chat_open_direct(sessions->ledger,
                                make_chat_id(sessions, SLICE(LEDGER_CHAT_DIRECT_PREFIX "-"), made),
                                exchange_user(exchange), other, on_chat_created, exchange);
}

/* ---- groups ---- */

static const struct user_ids_problems MEMBER_PROBLEMS = {
    "members must be a list of user ids",
    "members must be user ids: 1 to 128 bytes, no control characters",
    "a chat has at most 10000 members",
};

/* The requested id, or a new one written to `made`; SLICE_NONE when the requested id is invalid. */
static struct slice choose_chat_id(struct session_context *sessions,
                                   char made[DIRECT_PREFIX_LEN + ULID_TEXT_LEN])
{
    struct slice raw = fields_find(&sessions->scratch, "chat_id");
    struct slice id;
    if (!is_json_value(raw))
        return make_chat_id(sessions, SLICE_NONE, made);
    return fields_string(raw, &id) && user_id_valid(id) ? id : SLICE_NONE;
}

static void post_group(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    char made[DIRECT_PREFIX_LEN + ULID_TEXT_LEN];
    struct slice can_add = fields_find(&sessions->scratch, "members_can_add");
    const char *problem;
    size_t count;
    struct slice id = choose_chat_id(sessions, made);
    if (!id.data) {
        refuse_chat(exchange, "chat_id must be a string of 1 to 128 bytes, no control characters");
        return;
    }
    if (is_json_value(can_add) && !slice_is(can_add, "true") && !slice_is(can_add, "false")) {
        refuse_chat(exchange, "members_can_add must be true or false");
        return;
    }
    struct slice *members =
        user_ids_json_read(fields_find(&sessions->scratch, "members"), LEDGER_CHAT_MEMBERS_MAX,
                           &MEMBER_PROBLEMS, &count, &problem);
    if (!members && problem)
        refuse_chat(exchange, problem);
    else if (!members)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    else
        ledger_chat_create(sessions->ledger, id, exchange_user(exchange), members, count,
                           !slice_is(can_add, "false"), on_chat_created, exchange);
    free(members);
}

void rest_chats_post(struct exchange *exchange)
{
    if (!api_read_json(&exchange))
        return;
    struct slice direct_with =
        fields_find(&api_context_of(exchange)->sessions->scratch, "direct_with");
    if (is_json_value(direct_with))
        post_direct_chat(exchange, direct_with);
    else
        post_group(exchange);
}

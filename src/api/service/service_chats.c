/*
 * POST /v1/service/chats {"chat_id"?,"members":[…],"members_can_add"?}: makes a group; the first member is its creator and
 * admin. PUT, DELETE /v1/service/chats/{chat}/members/{user}. Nobody is asked for consent.
 */
#include "api/chat_events.h"
#include "api/chat_json.h"
#include "api/service/service_routes.h"
#include "api/user_ids_json.h"

#include <stdlib.h>

/* ---- making ---- */

static void on_service_chat_made(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status == LEDGER_OK)
        chat_events_created(api_context_of(exchange)->sessions, &outcome->chat, outcome->created);
    chat_json_reply(exchange, outcome);
}

/* Returns the requested id, or a new one in `made`; SLICE_NONE when it is invalid. */
static struct slice choose_service_chat_id(struct session_context *sessions,
                                           char made[ULID_TEXT_LEN])
{
    struct slice raw = fields_find(&sessions->scratch, "chat_id"), id;
    if (raw.data && !slice_is(raw, "null"))
        return fields_string(raw, &id) && user_id_valid(id) ? id : SLICE_NONE;
    struct ulid ulid = ulid_make(sessions->loop->clock.wall_ms, sessions->random);
    ulid_write(made, &ulid);
    return (struct slice){made, ULID_TEXT_LEN};
}

void service_chats_post(struct exchange *exchange)
{
    static const struct user_ids_problems PROBLEMS = {
        "members must be a list of user ids",
        "members must be user ids: 1 to 128 bytes, no control characters",
        "a chat has at most 10000 members",
    };
    struct session_context *sessions = api_context_of(exchange)->sessions;
    char made[ULID_TEXT_LEN];
    const char *problem;
    size_t count = 0;
    if (!api_read_json(&exchange))
        return;
    struct slice can_add = fields_find(&sessions->scratch, "members_can_add");
    struct slice id = choose_service_chat_id(sessions, made);
    struct slice *members =
        user_ids_json_read(fields_find(&sessions->scratch, "members"), LEDGER_CHAT_MEMBERS_MAX,
                           &PROBLEMS, &count, &problem);
    if (!id.data)
        service_refuse(&exchange,
                       "chat_id must be a string of 1 to 128 bytes, no control characters");
    else if (can_add.data && !slice_is(can_add, "true") && !slice_is(can_add, "false"))
        service_refuse(&exchange, "members_can_add must be true or false");
    else if (members && count == 0)
        service_refuse(&exchange, "members must not be empty: the first one is the creator");
    else if (!members && problem)
        service_refuse(&exchange, problem);
    else if (!members)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    else
        ledger_chat_make(sessions->ledger, id, members[0], members + 1, count - 1,
                         !slice_is(can_add, "false"), on_service_chat_made, exchange);
    free(members);
}

/* ---- members ---- */

static void on_service_member_added(void *arg, const struct ledger_change_outcome *outcome)
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

void service_chat_member_put(struct exchange *exchange)
{
    struct slice user;
    if (service_read_user(&exchange, 1, &user))
        ledger_chat_member_add(api_context_of(exchange)->sessions->ledger, exchange->parameters[0],
                               LEDGER_APPLICATION, user, on_service_member_added, exchange);
}

/* Who is no member of a chat that exists is out of it already. */
static void on_left_chat_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status == LEDGER_OK)
        exchange_reply_empty(&exchange);
    else
        chat_json_error(&exchange, outcome->status);
}

static void on_service_member_removed(void *arg, const struct ledger_member_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct slice chat = exchange->parameters[0], user = exchange->parameters[1];
    if (outcome->status == LEDGER_OK || outcome->status == LEDGER_NOT_FOUND)
        chat_events_member_removed(sessions, chat, user, outcome->changed);
    if (outcome->promoted.data)
        chat_events_role_changed(sessions, chat, outcome->promoted);
    if (outcome->status == LEDGER_NOT_FOUND)
        ledger_chat_get(sessions->ledger, chat, SLICE_NONE, false, on_left_chat_read, exchange);
    else if (outcome->status == LEDGER_OK)
        exchange_reply_empty(&exchange);
    else
        chat_json_error(&exchange, outcome->status);
}

/* Each member may leave a group, so the member is the actor. */
void service_chat_member_delete(struct exchange *exchange)
{
    struct slice user;
    if (service_read_user(&exchange, 1, &user))
        ledger_chat_member_remove(api_context_of(exchange)->sessions->ledger,
                                  exchange->parameters[0], user, user, on_service_member_removed,
                                  exchange);
}

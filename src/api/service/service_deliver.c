/* POST /v1/service/deliver {"to":{"users":[…]} or {"chat":id} or {"everyone":true},"event"?,"data"}: sends an event of the
 * application. */
#include "api/api_budget.h"
#include "api/chat_json.h"
#include "api/service/service_delivery.h"
#include "api/service/service_routes.h"
#include "api/user_ids_json.h"

#include <stdlib.h>

/* An event for everyone costs as much as so many requests. */
enum { SERVICE_DELIVER_USERS_MAX = 10000, SERVICE_EVERYONE_COST = 100 * BUDGET_ONE };

/* Whom an event is for; exactly one of these is set. */
struct deliver_target {
    struct slice users; /* raw JSON */
    struct slice chat;  /* raw JSON */
    struct slice everyone;
};

static bool is_given(struct slice raw)
{
    return raw.data && !slice_is(raw, "null");
}

/* Socket.IO's clients use these names for events of their own. */
static bool is_reserved_event(struct slice name)
{
    static const char *const NAMES[] = {"connect",       "connect_error", "disconnect",
                                        "disconnecting", "newListener",   "removeListener"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
        if (slice_is(name, NAMES[i]))
            return true;
    return false;
}

/* Returns what is wrong with the event; NULL: nothing. */
static const char *read_delivered_event(const struct fields_scratch *fields,
                                        struct message *message)
{
    struct slice name = fields_find(fields, "event"), data = fields_find(fields, "data");
    *message = (struct message){.type = MESSAGE_DELIVERY, .data = data};
    if (is_given(name) &&
        (!fields_string(name, &message->event_name) || !user_id_valid(message->event_name)))
        return "event must be a name of 1 to 128 bytes without control characters";
    if (is_reserved_event(message->event_name))
        return "Socket.IO keeps this event's name for itself";
    if (!data.data)
        return "data must be given, as any JSON value";
    if (!json_can_be_wrapped(data))
        return "data is nested too deeply";
    return NULL;
}

/* Returns whether exactly one target is named, and nothing else. */
static bool read_deliver_target(struct slice raw, struct deliver_target *target)
{
    struct json json;
    struct slice key;
    size_t named = 0;
    *target = (struct deliver_target){.users = SLICE_NONE};
    json_init(&json, (char *)raw.data, raw.len);
    if (!raw.len || json_peek(&json) != JSON_OBJECT)
        return false;
    json_object(&json);
    for (; json_member(&json, &key); named++) {
        struct slice *value = slice_is(key, "users")      ? &target->users
                              : slice_is(key, "chat")     ? &target->chat
                              : slice_is(key, "everyone") ? &target->everyone
                                                          : NULL;
        if (!value || !json_raw(&json, value))
            return false;
    }
    return json_done(&json) && named == 1 &&
           (!target->everyone.data || slice_is(target->everyone, "true"));
}

static void on_deliver_chat_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct service_delivery *delivery = arg;
    struct exchange *exchange = service_delivery_exchange(delivery);
    if (outcome->status == LEDGER_OK) {
        service_delivery_to_users(delivery, outcome->chat.members, outcome->chat.member_count);
        return;
    }
    service_delivery_free(&delivery);
    chat_json_error(&exchange, outcome->status);
}

static void deliver_to_chat(struct exchange *exchange, struct slice raw,
                            const struct message *message)
{
    struct slice chat;
    if (!fields_string(raw, &chat) || !user_id_valid(chat)) {
        service_refuse(&exchange, "chat must be a chat's id");
        return;
    }
    struct service_delivery *delivery = service_delivery_make(&exchange, message);
    if (delivery)
        ledger_chat_get(api_context_of(exchange)->sessions->ledger, chat, SLICE_NONE, false,
                        on_deliver_chat_read, delivery);
}

static void deliver_to_users(struct exchange *exchange, struct slice raw,
                             const struct message *message)
{
    static const struct user_ids_problems PROBLEMS = {
        "users must be a list of user ids",
        "users must be user ids: 1 to 128 bytes, no control characters",
        "an event is for at most 10000 users",
    };
    size_t count = 0;
    const char *problem;
    struct slice *users =
        user_ids_json_read(raw, SERVICE_DELIVER_USERS_MAX, &PROBLEMS, &count, &problem);
    struct service_delivery *delivery = NULL;
    if (users && count == 0)
        service_refuse(&exchange, "users must not be empty");
    else if (!users && problem)
        service_refuse(&exchange, problem);
    else if (!users)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    else
        delivery = service_delivery_make(&exchange, message);
    if (delivery)
        service_delivery_to_users(delivery, users, count);
    free(users);
}

void service_deliver_post(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct deliver_target target;
    struct message message;
    if (!api_read_json(&exchange))
        return;
    const char *problem = read_delivered_event(&sessions->scratch, &message);
    if (problem)
        service_refuse(&exchange, problem);
    else if (message.data.len > sessions->config->gateway.http.max_body_bytes)
        exchange_error(&exchange, 413, ERROR_MESSAGE_TOO_LARGE, "data is too large");
    else if (!read_deliver_target(fields_find(&sessions->scratch, "to"), &target))
        service_refuse(&exchange, "to must be {\"users\":[…]}, {\"chat\":id} or "
                                  "{\"everyone\":true}");
    else if (target.users.data)
        deliver_to_users(exchange, target.users, &message);
    else if (target.chat.data)
        deliver_to_chat(exchange, target.chat, &message);
    else if (api_budget_charge(&exchange, BUDGET_SERVICE, SERVICE_EVERYONE_COST - BUDGET_ONE)) {
        struct service_delivery *delivery = service_delivery_make(&exchange, &message);
        if (delivery)
            service_delivery_to_everyone(delivery);
    }
}

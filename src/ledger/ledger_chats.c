/* The operations on chats and on the history of calls: each copies its arguments into a request. */
#include "ledger/ledger_request.h"

static void create_chat(struct ledger_client *client, struct slice chat, struct slice creator,
                        const struct slice *members, size_t count, bool members_can_add,
                        bool without_consent, ledger_chat_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CHAT_CREATE, arg);
    request->done.chat = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_id(request, creator);
    request->input.ids = ledger_request_ids(request, members, count, LEDGER_CHAT_MEMBERS_MAX);
    request->input.id_count = count;
    request->input.members_can_add = members_can_add;
    request->input.without_consent = without_consent;
    ledger_request_submit(request);
}

void ledger_chat_create(struct ledger_client *client, struct slice chat, struct slice creator,
                        const struct slice *members, size_t count, bool members_can_add,
                        ledger_chat_done done, void *arg)
{
    create_chat(client, chat, creator, members, count, members_can_add, false, done, arg);
}

void ledger_chat_make(struct ledger_client *client, struct slice chat, struct slice creator,
                      const struct slice *members, size_t count, bool members_can_add,
                      ledger_chat_done done, void *arg)
{
    create_chat(client, chat, creator, members, count, members_can_add, true, done, arg);
}

void ledger_chat_open_direct(struct ledger_client *client, struct slice chat, struct slice user,
                             struct slice other, ledger_chat_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CHAT_OPEN_DIRECT, arg);
    request->done.chat = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_id(request, user);
    request->input.other = ledger_request_id(request, other);
    if (slice_equal(user, other))
        ledger_request_refuse(request, LEDGER_INVALID);
    ledger_request_submit(request);
}

void ledger_chat_get(struct ledger_client *client, struct slice chat, struct slice reader,
                     bool with_profiles, ledger_chat_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CHAT_GET, arg);
    request->done.chat = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_optional_id(request, reader);
    request->input.with_profiles = with_profiles;
    ledger_request_submit(request);
}

void ledger_chat_change(struct ledger_client *client, struct slice chat, struct slice actor,
                        bool members_can_add, ledger_chat_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CHAT_CHANGE, arg);
    request->done.chat = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_id(request, actor);
    request->input.members_can_add = members_can_add;
    ledger_request_submit(request);
}

void ledger_chats_list(struct ledger_client *client, struct slice user,
                       const struct ledger_chats_cursor *after, uint32_t limit, bool with_members,
                       ledger_chats_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CHATS_LIST, arg);
    request->done.chats = done;
    request->input.user = ledger_request_id(request, user);
    request->input.after = ledger_request_optional_id(request, after->chat);
    request->input.after_activity_ms = after->activity_ms;
    request->input.limit = ledger_request_limit(limit);
    request->input.with_members = with_members;
    ledger_request_submit(request);
}

void ledger_chat_member_check(struct ledger_client *client, struct slice chat, struct slice user,
                              ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CHAT_MEMBER_CHECK, arg);
    request->done.change = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_id(request, user);
    ledger_request_submit(request);
}

/* The completion is still to be set. */
static struct ledger_request *make_member_change(struct ledger_client *client,
                                                 enum ledger_operation operation, struct slice chat,
                                                 struct slice actor, struct slice user, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, operation, arg);
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_id(request, actor);
    request->input.other = ledger_request_id(request, user);
    return request;
}

void ledger_chat_member_add(struct ledger_client *client, struct slice chat, struct slice actor,
                            struct slice user, ledger_change_done done, void *arg)
{
    struct ledger_request *request =
        make_member_change(client, LEDGER_CHAT_MEMBER_ADD, chat, actor, user, arg);
    request->done.change = done;
    ledger_request_submit(request);
}

void ledger_chat_member_remove(struct ledger_client *client, struct slice chat, struct slice actor,
                               struct slice user, ledger_member_done done, void *arg)
{
    struct ledger_request *request =
        make_member_change(client, LEDGER_CHAT_MEMBER_REMOVE, chat, actor, user, arg);
    request->done.member = done;
    ledger_request_submit(request);
}

void ledger_chat_admin_put(struct ledger_client *client, struct slice chat, struct slice actor,
                           struct slice user, ledger_change_done done, void *arg)
{
    struct ledger_request *request =
        make_member_change(client, LEDGER_CHAT_ADMIN_PUT, chat, actor, user, arg);
    request->done.change = done;
    ledger_request_submit(request);
}

void ledger_chat_admin_delete(struct ledger_client *client, struct slice chat, struct slice actor,
                              struct slice user, ledger_change_done done, void *arg)
{
    struct ledger_request *request =
        make_member_change(client, LEDGER_CHAT_ADMIN_DELETE, chat, actor, user, arg);
    request->done.change = done;
    ledger_request_submit(request);
}

static struct ledger_request *make_call_request(struct ledger_client *client,
                                                enum ledger_operation operation,
                                                const struct ledger_call *call,
                                                ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, operation, arg);
    request->done.change = done;
    if (call->reason.len == 0 || call->reason.len > LEDGER_REASON_BYTES_MAX)
        ledger_request_refuse(request, LEDGER_INVALID);
    struct ledger_call *copy = ledger_request_alloc(request, sizeof(*copy));
    if (copy) {
        *copy = *call;
        copy->id = ledger_request_id(request, call->id);
        copy->caller = ledger_request_id(request, call->caller);
        copy->callee = ledger_request_id(request, call->callee);
        copy->reason = ledger_request_copy(request, call->reason);
    }
    request->input.call = copy;
    return request;
}

void ledger_call_append(struct ledger_client *client, const struct ledger_call *call,
                        ledger_change_done done, void *arg)
{
    ledger_request_submit(make_call_request(client, LEDGER_CALL_APPEND, call, done, arg));
}

void ledger_call_event(struct ledger_client *client, enum ledger_event_type type,
                       const struct ledger_call *call, ledger_change_done done, void *arg)
{
    struct ledger_request *request = make_call_request(client, LEDGER_CALL_EVENT, call, done, arg);
    request->input.event_type = type;
    ledger_request_submit(request);
}

void ledger_calls_list(struct ledger_client *client, struct slice user, uint32_t limit,
                       ledger_calls_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CALLS_LIST, arg);
    request->done.calls = done;
    request->input.user = ledger_request_id(request, user);
    request->input.limit = ledger_request_limit(limit);
    ledger_request_submit(request);
}

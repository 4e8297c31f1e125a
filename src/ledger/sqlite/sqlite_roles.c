/* The admins of groups, and who may add members. */
#include "ledger/sqlite/sqlite_operations.h"

bool sqlite_roles_set_admin(struct database *database, struct slice chat, struct slice user,
                            bool is_admin)
{
    static const char UPDATE_ADMIN[] = "UPDATE chat_members SET is_admin = ?3 "
                                       "WHERE chat_id = ?1 AND user_id = ?2 AND is_admin <> ?3";
    struct query query = query_open_texts(database, UPDATE_ADMIN, chat, user, SLICE_NONE);
    query_bind_int(&query, is_admin);
    return query_run(&query) > 0;
}

/* Returns OK if the user is an admin of a group. */
static enum ledger_status require_group_admin(struct database *database, struct slice chat,
                                              struct slice user)
{
    struct sqlite_standing standing = sqlite_members_standing(database, chat, user);
    if (!standing.is_member)
        return LEDGER_NOT_FOUND;
    return standing.is_group && standing.is_admin ? LEDGER_OK : LEDGER_FORBIDDEN;
}

static bool has_another_admin(struct database *database, struct slice chat, struct slice user)
{
    static const char SELECT_OTHER_ADMIN[] =
        "SELECT 1 FROM chat_members WHERE chat_id = ? AND user_id <> ? AND is_admin = 1";
    struct query query = query_open_texts(database, SELECT_OTHER_ADMIN, chat, user, SLICE_NONE);
    return query_found(&query);
}

enum ledger_status sqlite_roles_admin_put(struct database *database, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    enum ledger_status status = require_group_admin(database, input->chat, input->user);
    if (status != LEDGER_OK)
        return status;
    request->outcome.change.changed =
        sqlite_roles_set_admin(database, input->chat, input->other, true);
    return sqlite_members_access(database, input->chat, input->other);
}

enum ledger_status sqlite_roles_admin_delete(struct database *database,
                                             struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    enum ledger_status status = require_group_admin(database, input->chat, input->user);
    if (status != LEDGER_OK)
        return status;
    if (!has_another_admin(database, input->chat, input->other))
        return LEDGER_FORBIDDEN;
    request->outcome.change.changed =
        sqlite_roles_set_admin(database, input->chat, input->other, false);
    return sqlite_members_access(database, input->chat, input->other);
}

enum ledger_status sqlite_roles_change_chat(struct database *database,
                                            struct ledger_request *request)
{
    static const char UPDATE_CHAT[] = "UPDATE chats SET members_can_add = ?2 WHERE chat_id = ?1";
    const struct ledger_request_input *input = &request->input;
    enum ledger_status status = require_group_admin(database, input->chat, input->user);
    if (status != LEDGER_OK)
        return status;
    struct query query =
        query_open_texts(database, UPDATE_CHAT, input->chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, input->members_can_add);
    query_run(&query);
    return sqlite_chats_read(database, request, input->chat, input->user, &SQLITE_CHAT_WITH_MEMBERS,
                             &request->outcome.chat.chat);
}

/* The members of chats: creating a chat, checking, adding and removing members. */
#include "base/id_list.h"
#include "ledger/sqlite/sqlite_operations.h"

static bool is_chat_member(struct database *database, struct slice chat, struct slice user)
{
    static const char SELECT_MEMBER[] =
        "SELECT 1 FROM chat_members WHERE chat_id = ? AND user_id = ?";
    struct query query = query_open_texts(database, SELECT_MEMBER, chat, user, SLICE_NONE);
    return query_found(&query);
}

static bool chat_exists(struct database *database, struct slice chat)
{
    static const char SELECT_EXISTS[] = "SELECT 1 FROM chats WHERE chat_id = ?";
    struct query query = query_open_texts(database, SELECT_EXISTS, chat, SLICE_NONE, SLICE_NONE);
    return query_found(&query);
}

enum ledger_status sqlite_members_access(struct database *database, struct slice chat,
                                         struct slice user)
{
    if (user.data && is_chat_member(database, chat, user))
        return LEDGER_OK;
    if (!chat_exists(database, chat))
        return LEDGER_NOT_FOUND;
    return user.data ? LEDGER_FORBIDDEN : LEDGER_OK;
}

enum ledger_status sqlite_members_check(struct database *database, struct ledger_request *request)
{
    return sqlite_members_access(database, request->input.chat, request->input.user);
}

/* Returns false when the user is already a member. */
static bool insert_chat_member(struct database *database, struct slice chat, struct slice user,
                               int64_t since_ms)
{
    static const char INSERT_MEMBER[] =
        "INSERT OR IGNORE INTO chat_members (chat_id, user_id, since_ms) VALUES (?, ?, ?)";
    struct query query = query_open_texts(database, INSERT_MEMBER, chat, user, SLICE_NONE);
    query_bind_int(&query, since_ms);
    return query_run(&query) > 0;
}

static void add_to_member_count(struct database *database, struct slice chat, int64_t members)
{
    static const char UPDATE_COUNT[] =
        "UPDATE chats SET member_count = member_count + ?2, members_version = members_version + 1 "
        "WHERE chat_id = ?1";
    struct query query = query_open_texts(database, UPDATE_COUNT, chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, members);
    query_run(&query);
}

/* ---- creating a chat ---- */

/* Inserts a chat with its counter and its members. Returns how many members it has. */
static size_t insert_chat(struct database *database, const struct ledger_request *request)
{
    static const char INSERT_CHAT[] =
        "INSERT INTO chats (chat_id, creator, created_at_ms, member_count) VALUES (?, ?, ?, 0)";
    static const char INSERT_COUNTER[] =
        "INSERT INTO chat_counters (chat_id, sequence) VALUES (?, 0)";
    const struct ledger_request_input *input = &request->input;
    struct query query =
        query_open_texts(database, INSERT_CHAT, input->chat, input->user, SLICE_NONE);
    query_bind_int(&query, request->wall_ms);
    query_run(&query);
    struct query counter =
        query_open_texts(database, INSERT_COUNTER, input->chat, SLICE_NONE, SLICE_NONE);
    query_run(&counter);
    size_t count = insert_chat_member(database, input->chat, input->user, request->wall_ms);
    for (size_t i = 0; i < input->id_count; i++)
        count += insert_chat_member(database, input->chat, input->ids[i], request->wall_ms);
    add_to_member_count(database, input->chat, (int64_t)count);
    return count;
}

/* Scans the members rather than the blocks: a user may have very many blocks, in both directions. */
bool sqlite_members_have_block(struct database *database, struct slice chat, struct slice user)
{
    static const char SELECT_MEMBER_BLOCK[] =
        "SELECT 1 FROM chat_members m WHERE m.chat_id = ?1 AND ("
        "  EXISTS (SELECT 1 FROM blocks WHERE user_id = ?2 AND blocked_id = m.user_id) OR "
        "  EXISTS (SELECT 1 FROM blocks WHERE user_id = m.user_id AND blocked_id = ?2))";
    struct query query = query_open_texts(database, SELECT_MEMBER_BLOCK, chat, user, SLICE_NONE);
    return query_found(&query);
}

/* Returns the creator and the requested members, sorted and without repetitions. */
static const struct slice *list_distinct_members(struct ledger_request *request, size_t *count)
{
    const struct ledger_request_input *input = &request->input;
    struct slice *ids = ledger_request_alloc(request, (input->id_count + 1) * sizeof(*ids));
    *count = 0;
    if (!ids)
        return NULL;
    if (input->id_count)
        memcpy(ids, input->ids, input->id_count * sizeof(*ids));
    ids[input->id_count] = input->user;
    id_list_sort(&(struct id_list){ids, input->id_count + 1});
    for (size_t i = 0; i <= input->id_count; i++)
        if (i == 0 || !slice_equal(ids[i], ids[*count - 1]))
            ids[(*count)++] = ids[i];
    return ids;
}

/* Returns OK if the chat that uses the id has the requested members. */
static enum ledger_status return_existing_chat(struct database *database,
                                               struct ledger_request *request)
{
    struct ledger_chat *chat = &request->outcome.chat.chat;
    enum ledger_status status =
        sqlite_chats_read(database, request, request->input.chat, request->input.user, true, chat);
    if (status != LEDGER_OK)
        return status;
    size_t count;
    const struct slice *ids = list_distinct_members(request, &count);
    bool same = ids && count == chat->member_count;
    for (size_t i = 0; same && i < count; i++)
        same = slice_equal(ids[i], chat->members[i]);
    return same ? LEDGER_OK : LEDGER_CONFLICT;
}

enum ledger_status sqlite_members_create_chat(struct database *database,
                                              struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    if (chat_exists(database, input->chat))
        return return_existing_chat(database, request);
    if (insert_chat(database, request) > LEDGER_CHAT_MEMBERS_MAX)
        return LEDGER_LIMIT;
    if (sqlite_members_have_block(database, input->chat, input->user))
        return LEDGER_FORBIDDEN;
    request->outcome.chat.created = true;
    return sqlite_chats_read(database, request, input->chat, input->user, true,
                             &request->outcome.chat.chat);
}

/* ---- changing the members ---- */

enum ledger_status sqlite_members_add(struct database *database, struct ledger_request *request)
{
    static const char SELECT_COUNT[] = "SELECT member_count FROM chats WHERE chat_id = ?";
    const struct ledger_request_input *input = &request->input;
    enum ledger_status status = sqlite_members_access(database, input->chat, input->user);
    if (status != LEDGER_OK || is_chat_member(database, input->chat, input->other))
        return status;
    if (sqlite_blocks_exist(database, input->user, input->other) ||
        sqlite_blocks_exist(database, input->other, input->user))
        return LEDGER_FORBIDDEN;
    struct query query =
        query_open_texts(database, SELECT_COUNT, input->chat, SLICE_NONE, SLICE_NONE);
    bool full = query_next(&query) && query_int(&query, 0) >= LEDGER_CHAT_MEMBERS_MAX;
    query_end(&query);
    if (full)
        return LEDGER_LIMIT;
    insert_chat_member(database, input->chat, input->other, request->wall_ms);
    add_to_member_count(database, input->chat, 1);
    request->outcome.change.changed = true;
    return LEDGER_OK;
}

enum ledger_status sqlite_members_remove(struct database *database, struct ledger_request *request)
{
    static const char DELETE_MEMBER[] =
        "DELETE FROM chat_members WHERE chat_id = ? AND user_id = ?";
    static const char DELETE_CURSORS[] = "DELETE FROM cursors WHERE chat_id = ? AND user_id = ?";
    const struct ledger_request_input *input = &request->input;
    enum ledger_status status = sqlite_members_access(database, input->chat, input->user);
    if (status != LEDGER_OK)
        return status;
    struct query members =
        query_open_texts(database, DELETE_MEMBER, input->chat, input->other, SLICE_NONE);
    request->outcome.change.changed = query_run(&members) > 0;
    struct query cursors =
        query_open_texts(database, DELETE_CURSORS, input->chat, input->other, SLICE_NONE);
    query_run(&cursors);
    if (request->outcome.change.changed)
        add_to_member_count(database, input->chat, -1);
    return LEDGER_OK;
}

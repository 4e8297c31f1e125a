/* Creating chats: groups, and the one direct chat of two users. */
#include "base/id_list.h"
#include "ledger/sqlite/sqlite_activity.h"
#include "ledger/sqlite/sqlite_operations.h"

/* Inserts a chat with its counter and its members. Returns how many members it has. */
static size_t insert_chat(struct database *database, const struct ledger_request *request,
                          enum ledger_chat_kind kind, const struct slice *members, size_t count)
{
    static const char INSERT_CHAT[] =
        "INSERT INTO chats (chat_id, creator, created_at_ms, member_count, kind, members_can_add) "
        "VALUES (?, ?, ?, 0, ?, ?)";
    static const char INSERT_COUNTER[] =
        "INSERT INTO chat_counters (chat_id, sequence, activity_ms, listed_ms) VALUES (?, 0, ?, ?)";
    const struct ledger_request_input *input = &request->input;
    int64_t listed_ms =
        count < SQLITE_ACTIVITY_MEMBERS_MAX ? request->wall_ms : SQLITE_ACTIVITY_LARGE;
    struct query query =
        query_open_texts(database, INSERT_CHAT, input->chat, input->user, SLICE_NONE);
    query_bind_int(&query, request->wall_ms);
    query_bind_int(&query, kind);
    query_bind_int(&query, input->members_can_add);
    query_run(&query);
    struct query counter =
        query_open_texts(database, INSERT_COUNTER, input->chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&counter, request->wall_ms);
    query_bind_int(&counter, listed_ms);
    query_run(&counter);
    struct sqlite_new_member member = {.chat = input->chat,
                                       .user = input->user,
                                       .added_by = input->user,
                                       .is_group = kind == LEDGER_CHAT_GROUP,
                                       .since_ms = request->wall_ms,
                                       .listed_ms = listed_ms};
    size_t inserted = sqlite_members_insert(database, &member);
    for (size_t i = 0; i < count; i++) {
        member.user = members[i];
        inserted += sqlite_members_insert(database, &member);
    }
    sqlite_members_count(database, input->chat, (int64_t)inserted);
    return inserted;
}

/* ---- groups ---- */

/* Ids of direct chats are the server's to make. ':' separates the parts of topics and of ids that clients once made
 * from two user ids. */
static bool is_reserved_chat_id(struct slice id)
{
    return slice_starts_with(id, SLICE(LEDGER_CHAT_DIRECT_PREFIX)) ||
           memchr(id.data, ':', id.len) != NULL;
}

/* Returns whether the chat has exactly the creator and the requested members. */
static bool has_requested_members(struct ledger_request *request, const struct ledger_chat *chat)
{
    const struct ledger_request_input *input = &request->input;
    struct slice *ids = ledger_request_alloc(request, (input->id_count + 1) * sizeof(*ids));
    size_t count = 0;
    if (!ids)
        return false;
    if (input->id_count)
        memcpy(ids, input->ids, input->id_count * sizeof(*ids));
    ids[input->id_count] = input->user;
    id_list_sort(&(struct id_list){ids, input->id_count + 1});
    for (size_t i = 0; i <= input->id_count; i++)
        if (i == 0 || !slice_equal(ids[i], ids[count - 1]))
            ids[count++] = ids[i];
    return id_list_equal(&(struct id_list){ids, count},
                         &(struct id_list){chat->members, chat->member_count});
}

/* Returns OK if the id names a group of the user with the requested members. */
static enum ledger_status return_existing_chat(struct database *database,
                                               struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    struct ledger_chat *chat = &request->outcome.chat.chat;
    struct sqlite_standing standing = sqlite_members_standing(database, input->chat, input->user);
    if (!standing.is_member || !standing.is_group)
        return LEDGER_CONFLICT;
    enum ledger_status status = sqlite_chats_read(database, request, input->chat, input->user,
                                                  &SQLITE_CHAT_WITH_MEMBERS, chat);
    if (status != LEDGER_OK)
        return status;
    return has_requested_members(request, chat) ? LEDGER_OK : LEDGER_CONFLICT;
}

static bool has_unwilling_member(struct database *database, struct slice chat, struct slice creator)
{
    static const char SELECT_UNWILLING[] =
        "SELECT 1 FROM chat_members m JOIN users u ON u.user_id = m.user_id "
        "WHERE m.chat_id = ?1 AND u.group_adds = 1 AND m.user_id <> ?2 AND NOT EXISTS "
        "  (SELECT 1 FROM contacts WHERE user_id = m.user_id AND contact_id = ?2)";
    struct query query = query_open_texts(database, SELECT_UNWILLING, chat, creator, SLICE_NONE);
    return query_found(&query);
}

enum ledger_status sqlite_chat_create_group(struct database *database,
                                            struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    if (sqlite_members_access(database, input->chat, SLICE_NONE) == LEDGER_OK) {
        enum ledger_status status = return_existing_chat(database, request);
        /* the same answer as for an id that is not in use, so that it reveals no chat */
        return status == LEDGER_CONFLICT && is_reserved_chat_id(input->chat) ? LEDGER_INVALID
                                                                             : status;
    }
    if (is_reserved_chat_id(input->chat))
        return LEDGER_INVALID;
    if (insert_chat(database, request, LEDGER_CHAT_GROUP, input->ids, input->id_count) >
        LEDGER_CHAT_MEMBERS_MAX)
        return LEDGER_LIMIT;
    if (sqlite_members_have_block(database, input->chat, input->user) ||
        has_unwilling_member(database, input->chat, input->user))
        return LEDGER_FORBIDDEN;
    request->outcome.chat.created = true;
    return sqlite_chats_read(database, request, input->chat, input->user, &SQLITE_CHAT_WITH_MEMBERS,
                             &request->outcome.chat.chat);
}

/* ---- direct chats ---- */

/* Returns the direct chat of the pair, which is in order, or else takes `id` for it. */
static struct slice claim_direct_chat(struct database *database, struct ledger_request *request,
                                      struct slice lesser, struct slice greater)
{
    static const char INSERT_PAIR[] =
        "INSERT OR IGNORE INTO direct_chats (lesser, greater, chat_id) VALUES (?, ?, ?)";
    static const char SELECT_PAIR[] =
        "SELECT chat_id FROM direct_chats WHERE lesser = ? AND greater = ?";
    struct query insert =
        query_open_texts(database, INSERT_PAIR, lesser, greater, request->input.chat);
    request->outcome.chat.created = query_run(&insert) > 0;
    if (request->outcome.chat.created)
        return request->input.chat;
    struct query query = query_open_texts(database, SELECT_PAIR, lesser, greater, SLICE_NONE);
    struct slice chat =
        query_next(&query) ? ledger_request_copy(request, query_text(&query, 0)) : SLICE_NONE;
    query_end(&query);
    return chat;
}

enum ledger_status sqlite_chat_create_direct(struct database *database,
                                             struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    if (sqlite_blocks_exist(database, input->user, input->other) ||
        sqlite_blocks_exist(database, input->other, input->user))
        return LEDGER_FORBIDDEN;
    bool in_order = id_list_compare(input->user, input->other) < 0;
    struct slice chat = claim_direct_chat(database, request, in_order ? input->user : input->other,
                                          in_order ? input->other : input->user);
    if (request->outcome.chat.created)
        insert_chat(database, request, LEDGER_CHAT_DIRECT, &input->other, 1);
    return sqlite_chats_read(database, request, chat, input->user, &SQLITE_CHAT_WITH_PROFILES,
                             &request->outcome.chat.chat);
}

/* Creating chats: groups, large ones in slices (sqlite_chat_drafts.h), and the one direct chat of two users. */
#include "base/id_list.h"
#include "ledger/sqlite/sqlite_activity.h"
#include "ledger/sqlite/sqlite_chat_drafts.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger/sqlite/sqlite_operations.h"

static int64_t first_listed_ms(const struct ledger_request *request)
{
    return request->input.id_count < SQLITE_ACTIVITY_MEMBERS_MAX ? request->wall_ms
                                                                 : SQLITE_ACTIVITY_LARGE;
}

/* Inserts members, the creator before the first of them. Returns how many are new. */
static size_t insert_members(struct database *database, const struct ledger_request *request,
                             enum ledger_chat_kind kind, const struct slice *members, size_t count)
{
    const struct ledger_request_input *input = &request->input;
    struct sqlite_new_member member = {.chat = input->chat,
                                       .user = input->user,
                                       .added_by = input->user,
                                       .is_group = kind == LEDGER_CHAT_GROUP,
                                       .since_ms = request->wall_ms,
                                       .listed_ms = first_listed_ms(request)};
    size_t inserted = request->ids_done == 0 && sqlite_members_insert(database, &member);
    for (size_t i = 0; i < count; i++) {
        member.user = members[i];
        inserted += sqlite_members_insert(database, &member);
    }
    return inserted;
}

/* Inserts a chat, whose members have been inserted, with its counter. From here on it is seen. */
static void insert_chat(struct database *database, const struct ledger_request *request,
                        enum ledger_chat_kind kind, size_t member_count)
{
    static const char INSERT_CHAT[] =
        "INSERT INTO chats (chat_id, creator, created_at_ms, member_count, kind, members_can_add) "
        "VALUES (?, ?, ?, ?, ?, ?)";
    static const char INSERT_COUNTER[] =
        "INSERT INTO chat_counters (chat_id, sequence, activity_ms, listed_ms) VALUES (?, 0, ?, ?)";
    const struct ledger_request_input *input = &request->input;
    struct query query =
        query_open_texts(database, INSERT_CHAT, input->chat, input->user, SLICE_NONE);
    query_bind_int(&query, request->wall_ms);
    query_bind_int(&query, (int64_t)member_count);
    query_bind_int(&query, kind);
    query_bind_int(&query, input->members_can_add);
    query_run(&query);
    struct query counter =
        query_open_texts(database, INSERT_COUNTER, input->chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&counter, request->wall_ms);
    query_bind_int(&counter, first_listed_ms(request));
    query_run(&counter);
}

/* ---- groups ---- */

/* Returns whether the chat has exactly the creator and the requested members. */
static bool has_requested_members(struct ledger_request *request, const struct ledger_chat *chat)
{
    const struct ledger_request_input *input = &request->input;
    struct slice *ids = ledger_request_alloc(request, (input->id_count + 1) * sizeof(*ids));
    if (!ids)
        return false;
    if (input->id_count)
        memcpy(ids, input->ids, input->id_count * sizeof(*ids));
    ids[input->id_count] = input->user;
    return id_list_equal(&(struct id_list){ids, id_list_sort_unique(ids, input->id_count + 1)},
                         &(struct id_list){chat->members, chat->member_count});
}

/* Returns OK if the id names a group that the user is in, and created or requested with its members. */
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
    return slice_equal(chat->creator, input->user) || has_requested_members(request, chat)
               ? LEDGER_OK
               : LEDGER_CONFLICT;
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

/* Inserts the next slice of the members. Returns whether it was the last. */
static bool insert_group_slice(struct database *database, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    size_t left = input->id_count - request->ids_done;
    size_t count = left < SQLITE_LEDGER_SLICE_IDS ? left : SQLITE_LEDGER_SLICE_IDS;
    request->members_done += (uint32_t)insert_members(database, request, LEDGER_CHAT_GROUP,
                                                      input->ids + request->ids_done, count);
    request->ids_done += (uint32_t)count;
    return count == left;
}

/* Makes a group visible once all its members are stored. Consent is checked here, for all of them: it may have been
 * withdrawn since their slice. */
static enum ledger_status finish_group(struct database *database, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    if (request->members_done > LEDGER_CHAT_MEMBERS_MAX)
        return LEDGER_LIMIT;
    if (!input->without_consent && (sqlite_members_have_block(database, input->chat, input->user) ||
                                    has_unwilling_member(database, input->chat, input->user)))
        return LEDGER_FORBIDDEN;
    if (request->draft)
        sqlite_chat_drafts_close(database, request->draft);
    insert_chat(database, request, LEDGER_CHAT_GROUP, request->members_done);
    request->outcome.chat.created = true;
    return sqlite_chats_read(database, request, input->chat, input->user, &SQLITE_CHAT_WITH_MEMBERS,
                             &request->outcome.chat.chat);
}

static enum ledger_status continue_group(struct database *database, struct ledger_request *request)
{
    if (insert_group_slice(database, request))
        return finish_group(database, request);
    if (!request->draft)
        request->draft = sqlite_chat_drafts_open(database, request->input.chat);
    request->unfinished = true;
    return LEDGER_OK;
}

enum ledger_status sqlite_chat_create_group(struct database *database,
                                            struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    if (request->draft)
        return sqlite_chat_drafts_are_open(database, request->draft)
                   ? continue_group(database, request)
                   : LEDGER_UNAVAILABLE;
    if (sqlite_members_access(database, input->chat, SLICE_NONE) == LEDGER_OK) {
        enum ledger_status status = return_existing_chat(database, request);
        /* the same answer as for an id that is not in use, so that it reveals no chat */
        return status == LEDGER_CONFLICT && ledger_request_chat_is_reserved(input->chat)
                   ? LEDGER_INVALID
                   : status;
    }
    if (ledger_request_chat_is_reserved(input->chat))
        return LEDGER_INVALID;
    request->unfinished = sqlite_chat_drafts_reserve(database, input->chat);
    return request->unfinished ? LEDGER_OK : continue_group(database, request);
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
        insert_chat(database, request, LEDGER_CHAT_DIRECT,
                    insert_members(database, request, LEDGER_CHAT_DIRECT, &input->other, 1));
    return sqlite_chats_read(database, request, chat, input->user, &SQLITE_CHAT_WITH_PROFILES,
                             &request->outcome.chat.chat);
}

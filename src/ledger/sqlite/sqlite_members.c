/* The members of chats: checking, adding and removing them. */
#include "ledger/sqlite/sqlite_activity.h"
#include "ledger/sqlite/sqlite_operations.h"

/* ---- checking ---- */

static bool chat_exists(struct database *database, struct slice chat)
{
    static const char SELECT_EXISTS[] = "SELECT 1 FROM chats WHERE chat_id = ?";
    struct query query = query_open_texts(database, SELECT_EXISTS, chat, SLICE_NONE, SLICE_NONE);
    return query_found(&query);
}

struct sqlite_standing sqlite_members_standing(struct database *database, struct slice chat,
                                               struct slice user)
{
    static const char SELECT_STANDING[] =
        "SELECT m.is_admin, c.kind, c.members_can_add, c.member_count FROM chat_members m "
        "JOIN chats c ON c.chat_id = m.chat_id WHERE m.chat_id = ? AND m.user_id = ?";
    struct sqlite_standing standing = {0};
    struct query query = query_open_texts(database, SELECT_STANDING, chat, user, SLICE_NONE);
    standing.is_member = query_next(&query);
    if (standing.is_member) {
        standing.is_admin = query_int(&query, 0) != 0;
        standing.is_group = query_int(&query, 1) == LEDGER_CHAT_GROUP;
        standing.members_can_add = query_int(&query, 2) != 0;
        standing.member_count = query_int(&query, 3);
    }
    query_end(&query);
    return standing;
}

/* The application may do in each chat what an admin may. */
static struct sqlite_standing read_actor_standing(struct database *database, struct slice chat,
                                                  struct slice actor)
{
    static const char SELECT_CHAT[] = "SELECT kind, member_count FROM chats WHERE chat_id = ?";
    struct sqlite_standing standing = {0};
    if (!slice_equal(actor, LEDGER_APPLICATION))
        return sqlite_members_standing(database, chat, actor);
    struct query query = query_open_texts(database, SELECT_CHAT, chat, SLICE_NONE, SLICE_NONE);
    if (query_next(&query))
        standing = (struct sqlite_standing){.is_member = true,
                                            .is_admin = true,
                                            .is_group = query_int(&query, 0) == LEDGER_CHAT_GROUP,
                                            .member_count = query_int(&query, 1)};
    query_end(&query);
    return standing;
}

enum ledger_status sqlite_members_access(struct database *database, struct slice chat,
                                         struct slice user)
{
    bool allowed = user.data ? sqlite_members_standing(database, chat, user).is_member
                             : chat_exists(database, chat);
    return allowed ? LEDGER_OK : LEDGER_NOT_FOUND;
}

enum ledger_status sqlite_members_check(struct database *database, struct ledger_request *request)
{
    return sqlite_members_access(database, request->input.chat, request->input.user);
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

/* ---- changing ---- */

bool sqlite_members_insert(struct database *database, const struct sqlite_new_member *member)
{
    static const char INSERT_MEMBER[] =
        "INSERT OR IGNORE INTO chat_members "
        "  (chat_id, user_id, since_ms, is_admin, accepted, listed_ms) "
        "VALUES (?1, ?2, ?4, ?2 = ?3 AND ?5, "
        "  ?2 = ?3 OR EXISTS (SELECT 1 FROM contacts WHERE user_id = ?2 AND contact_id = ?3), ?6)";
    struct query query =
        query_open_texts(database, INSERT_MEMBER, member->chat, member->user, member->added_by);
    query_bind_int(&query, member->since_ms);
    query_bind_int(&query, member->is_group);
    query_bind_int(&query, member->listed_ms);
    return query_run(&query) > 0;
}

void sqlite_members_count(struct database *database, struct slice chat, int64_t added)
{
    static const char UPDATE_COUNT[] =
        "UPDATE chats SET member_count = member_count + ?2, members_version = members_version + 1 "
        "WHERE chat_id = ?1";
    struct query query = query_open_texts(database, UPDATE_COUNT, chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, added);
    query_run(&query);
}

/* Returns whether there is no block between the two, and `user` may be added by `actor`. */
static bool consents_to_add(struct database *database, struct slice actor, struct slice user)
{
    static const char SELECT_GROUP_ADDS[] =
        "SELECT 1 FROM users WHERE user_id = ? AND group_adds = 1";
    struct query query =
        query_open_texts(database, SELECT_GROUP_ADDS, user, SLICE_NONE, SLICE_NONE);
    return !sqlite_blocks_exist(database, actor, user) &&
           !sqlite_blocks_exist(database, user, actor) &&
           (!query_found(&query) || sqlite_contacts_exist(database, actor, user));
}

static int64_t read_listed_bound(struct database *database, struct slice chat)
{
    static const char SELECT_LISTED[] = "SELECT listed_ms FROM chat_counters WHERE chat_id = ?";
    struct query query = query_open_texts(database, SELECT_LISTED, chat, SLICE_NONE, SLICE_NONE);
    int64_t listed_ms = query_next(&query) ? query_int(&query, 0) : 0;
    query_end(&query);
    return listed_ms;
}

enum ledger_status sqlite_members_add(struct database *database, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    struct sqlite_standing actor = read_actor_standing(database, input->chat, input->user);
    if (!actor.is_member)
        return LEDGER_NOT_FOUND;
    if (!actor.is_group || !(actor.is_admin || actor.members_can_add))
        return LEDGER_FORBIDDEN;
    if (sqlite_members_standing(database, input->chat, input->other).is_member)
        return LEDGER_OK;
    if (!slice_equal(input->user, LEDGER_APPLICATION) &&
        !consents_to_add(database, input->user, input->other))
        return LEDGER_FORBIDDEN;
    if (actor.member_count >= LEDGER_CHAT_MEMBERS_MAX)
        return LEDGER_LIMIT;
    sqlite_members_insert(database, &(struct sqlite_new_member){
                                        .chat = input->chat,
                                        .user = input->other,
                                        .added_by = input->user,
                                        .is_group = true,
                                        .since_ms = request->wall_ms,
                                        .listed_ms = read_listed_bound(database, input->chat)});
    sqlite_members_count(database, input->chat, 1);
    sqlite_former_chats_remove(database, input->chat, input->other);
    if (actor.member_count == SQLITE_ACTIVITY_MEMBERS_MAX)
        sqlite_activity_make_large(database, input->chat);
    request->outcome.change.changed = true;
    return LEDGER_OK;
}

/* Makes the member of the longest standing an admin if there is none. Returns that member. */
static struct slice promote_if_no_admin(struct database *database, struct ledger_request *request)
{
    static const char SELECT_ADMIN[] =
        "SELECT 1 FROM chat_members WHERE chat_id = ? AND is_admin = 1";
    static const char SELECT_LONGEST[] = "SELECT user_id FROM chat_members WHERE chat_id = ? "
                                         "ORDER BY since_ms, user_id LIMIT 1";
    struct slice chat = request->input.chat, promoted = SLICE_NONE;
    struct query admin = query_open_texts(database, SELECT_ADMIN, chat, SLICE_NONE, SLICE_NONE);
    if (query_found(&admin))
        return SLICE_NONE;
    struct query longest = query_open_texts(database, SELECT_LONGEST, chat, SLICE_NONE, SLICE_NONE);
    if (query_next(&longest))
        promoted = ledger_request_copy(request, query_text(&longest, 0));
    query_end(&longest);
    if (promoted.data)
        sqlite_roles_set_admin(database, chat, promoted, true);
    return promoted;
}

enum ledger_status sqlite_members_remove(struct database *database, struct ledger_request *request)
{
    static const char DELETE_MEMBER[] =
        "DELETE FROM chat_members WHERE chat_id = ? AND user_id = ?";
    static const char DELETE_CURSORS[] = "DELETE FROM cursors WHERE chat_id = ? AND user_id = ?";
    const struct ledger_request_input *input = &request->input;
    struct sqlite_standing actor = sqlite_members_standing(database, input->chat, input->user);
    if (!actor.is_member)
        return LEDGER_NOT_FOUND;
    if (!actor.is_group || !(actor.is_admin || slice_equal(input->user, input->other)))
        return LEDGER_FORBIDDEN;
    struct query members =
        query_open_texts(database, DELETE_MEMBER, input->chat, input->other, SLICE_NONE);
    request->outcome.member.changed = query_run(&members) > 0;
    struct query cursors =
        query_open_texts(database, DELETE_CURSORS, input->chat, input->other, SLICE_NONE);
    query_run(&cursors);
    if (!request->outcome.member.changed)
        return LEDGER_OK;
    sqlite_members_count(database, input->chat, -1);
    sqlite_former_chats_add(database, input->chat, input->other);
    if (actor.is_admin)
        request->outcome.member.promoted = promote_if_no_admin(database, request);
    return LEDGER_OK;
}

/* Reading chats: one with its members, or a page of a user's chats. */
#include "ledger/sqlite/sqlite_activity.h"
#include "ledger/sqlite/sqlite_operations.h"

/* Returns how many messages the user has sent, up to and including this sequence. */
static int64_t count_sent_messages(struct database *database, struct slice chat, struct slice user,
                                   uint64_t sequence)
{
    static const char SELECT_SENT[] =
        "SELECT sent FROM sent_counts WHERE chat_id = ? AND sender = ? AND sequence <= ? "
        "ORDER BY sequence DESC LIMIT 1";
    struct query query = query_open_texts(database, SELECT_SENT, chat, user, SLICE_NONE);
    query_bind_int(&query, (int64_t)sequence);
    int64_t sent = query_next(&query) ? query_int(&query, 0) : 0;
    query_end(&query);
    return sent;
}

/* Returns how many messages of others follow the highest sequence that any of the reader's devices has
 * acknowledged. */
static uint64_t count_unread_messages(struct database *database, const struct ledger_chat *chat,
                                      struct slice reader)
{
    uint64_t acknowledged = sqlite_cursors_read_mark(database, chat->id, reader);
    if (chat->latest_sequence <= acknowledged)
        return 0;
    int64_t own = count_sent_messages(database, chat->id, reader, chat->latest_sequence) -
                  count_sent_messages(database, chat->id, reader, acknowledged);
    return chat->latest_sequence - acknowledged - (uint64_t)own;
}

const struct sqlite_chat_parts SQLITE_CHAT_WITH_MEMBERS = {.members = true};
const struct sqlite_chat_parts SQLITE_CHAT_WITH_PROFILES = {.members = true, .profiles = true};

static void read_chat_members(struct database *database, struct ledger_request *request,
                              struct ledger_chat *chat)
{
    static const char SELECT_MEMBERS[] =
        "SELECT user_id, is_admin FROM chat_members WHERE chat_id = ? ORDER BY user_id";
    struct ledger_request_array members = {0}, admins = {0};
    struct query query =
        query_open_texts(database, SELECT_MEMBERS, chat->id, SLICE_NONE, SLICE_NONE);
    while (query_next(&query)) {
        struct slice *member = ledger_request_array_push(request, &members, sizeof(*member));
        struct slice *admin = query_int(&query, 1)
                                  ? ledger_request_array_push(request, &admins, sizeof(*admin))
                                  : NULL;
        if (member)
            *member = ledger_request_copy(request, query_text(&query, 0));
        if (member && admin)
            *admin = *member;
    }
    chat->members = members.items;
    chat->member_count = members.count;
    chat->admins = admins.items;
    chat->admin_count = admins.count;
}

/* Reads what the reader may see of each member who has something to show. */
static void read_chat_profiles(struct database *database, struct ledger_request *request,
                               struct slice reader, struct ledger_chat *chat)
{
    static const char SELECT_PROFILES[] =
        "SELECT m.user_id, u.display_name, u.avatar_url, CASE WHEN ?3 AND (m.user_id = ?2 OR "
        "  (coalesce(u.hides_reads, 0) = 0 AND"
        "   NOT EXISTS (SELECT 1 FROM blocks WHERE user_id = ?2 AND blocked_id = m.user_id) AND"
        "   NOT EXISTS (SELECT 1 FROM blocks WHERE user_id = m.user_id AND blocked_id = ?2))) THEN"
        "  (SELECT max(sequence) FROM cursors c WHERE c.chat_id = ?1 AND c.user_id = m.user_id) END "
        "FROM chat_members m LEFT JOIN users u ON u.user_id = m.user_id WHERE m.chat_id = ?1 "
        "ORDER BY m.user_id LIMIT ?4";
    struct ledger_request_array profiles = {0};
    struct query query = query_open_texts(database, SELECT_PROFILES, chat->id, reader, SLICE_NONE);
    query_bind_int(&query, chat->member_count <= LEDGER_RECEIPT_MEMBERS_MAX);
    query_bind_int(&query, LEDGER_CHAT_PROFILES_MAX);
    while (query_next(&query)) {
        struct slice display_name = query_text(&query, 1), avatar_url = query_text(&query, 2);
        int64_t read_sequence = query_int(&query, 3);
        if (!display_name.len && !avatar_url.len && !read_sequence)
            continue;
        struct ledger_chat_profile *profile =
            ledger_request_array_push(request, &profiles, sizeof(*profile));
        if (!profile)
            continue;
        profile->user = ledger_request_copy(request, query_text(&query, 0));
        profile->appearance.display_name = ledger_request_copy(request, display_name);
        profile->appearance.avatar_url = ledger_request_copy(request, avatar_url);
        profile->read_sequence = (uint64_t)read_sequence;
    }
    chat->profiles = profiles.items;
    chat->profile_count = profiles.count;
}

enum ledger_status sqlite_chats_read(struct database *database, struct ledger_request *request,
                                     struct slice id, struct slice reader,
                                     const struct sqlite_chat_parts *parts,
                                     struct ledger_chat *chat)
{
    static const char SELECT_CHAT[] =
        "SELECT creator, created_at_ms, member_count, "
        "  (SELECT max(sequence) FROM messages WHERE messages.chat_id = chats.chat_id), "
        "  members_version, kind, members_can_add, "
        "  (SELECT activity_ms FROM chat_counters k WHERE k.chat_id = chats.chat_id) "
        "FROM chats WHERE chat_id = ?";
    *chat = (struct ledger_chat){.id = id};
    struct query query = query_open_texts(database, SELECT_CHAT, id, SLICE_NONE, SLICE_NONE);
    bool found = query_next(&query);
    if (found) {
        chat->creator = ledger_request_copy(request, query_text(&query, 0));
        chat->created_at_ms = query_int(&query, 1);
        chat->member_count = (size_t)query_int(&query, 2);
        chat->latest_sequence = (uint64_t)query_int(&query, 3);
        chat->members_version = (uint64_t)query_int(&query, 4);
        chat->kind = (enum ledger_chat_kind)query_int(&query, 5);
        chat->members_can_add = query_int(&query, 6) != 0;
        chat->activity_ms = query_int(&query, 7);
    }
    query_end(&query);
    if (!found)
        return LEDGER_NOT_FOUND;
    if (parts->members)
        read_chat_members(database, request, chat);
    if (parts->profiles || (parts->direct_profiles && chat->kind == LEDGER_CHAT_DIRECT))
        read_chat_profiles(database, request, reader, chat);
    if (reader.data)
        chat->unread = count_unread_messages(database, chat, reader);
    return LEDGER_OK;
}

enum ledger_status sqlite_chats_get(struct database *database, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    enum ledger_status status = sqlite_members_access(database, input->chat, input->user);
    if (status != LEDGER_OK)
        return status;
    return sqlite_chats_read(database, request, input->chat, input->user,
                             input->with_profiles && input->user.data ? &SQLITE_CHAT_WITH_PROFILES
                                                                      : &SQLITE_CHAT_WITH_MEMBERS,
                             &request->outcome.chat.chat);
}

/* Returns where the page starts. The place of a chat is shown to its members only; for others the page starts at the
 * first chat. */
static const struct sqlite_activity_entry *find_page_start(struct database *database,
                                                           const struct ledger_request_input *input,
                                                           struct sqlite_activity_entry *start)
{
    *start = (struct sqlite_activity_entry){input->after, input->after_activity_ms};
    if (!input->after.data)
        return NULL;
    if (input->after_activity_ms != LEDGER_ACTIVITY_NOW)
        return start;
    start->activity_ms = sqlite_activity_of_chat(database, input->after);
    return sqlite_members_standing(database, input->after, input->user).is_member ? start : NULL;
}

/* Reads the ids of a page first, and one more to find out whether there is a next page. */
enum ledger_status sqlite_chats_list(struct database *database, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    const struct sqlite_chat_parts parts = {.members = input->with_members,
                                            .direct_profiles = input->with_members};
    struct ledger_chats_outcome *outcome = &request->outcome.chats;
    struct sqlite_activity_page page = {.count_max = (size_t)input->limit + 1};
    struct sqlite_activity_entry start;
    const struct sqlite_activity_entry *after = find_page_start(database, input, &start);
    size_t members_listed = 0, count = 0;
    sqlite_activity_page_add(database, request, &page, input->user, SQLITE_ACTIVITY_ACCEPTED,
                             after);
    sqlite_activity_page_add(database, request, &page, input->user, SQLITE_ACTIVITY_NOT_ACCEPTED,
                             after);
    const struct sqlite_activity_entry *entries = sqlite_activity_page_entries(&page);
    size_t wanted = page.entries.count < input->limit ? page.entries.count : input->limit;
    struct ledger_chat *chats = ledger_request_alloc(request, wanted * sizeof(*chats));
    while (chats && count < wanted && members_listed < LEDGER_CHATS_PAGE_MEMBERS_MAX) {
        struct ledger_chat *chat = &chats[count];
        if (sqlite_chats_read(database, request, entries[count].chat, input->user, &parts, chat) !=
            LEDGER_OK)
            return LEDGER_UNAVAILABLE; /* a member's row without a chat: the file is damaged */
        chat->activity_ms = entries[count].activity_ms;
        members_listed += input->with_members ? chat->member_count : 0;
        count++;
    }
    outcome->chats = chats;
    outcome->count = count;
    outcome->has_more = count < page.entries.count;
    return LEDGER_OK;
}

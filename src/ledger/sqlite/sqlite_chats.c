/* Reading chats: one with its members, or a page of a user's chats. */
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
    static const char SELECT_CURSOR[] =
        "SELECT max(sequence) FROM cursors WHERE chat_id = ? AND user_id = ?";
    struct query query = query_open_texts(database, SELECT_CURSOR, chat->id, reader, SLICE_NONE);
    uint64_t acknowledged = query_next(&query) ? (uint64_t)query_int(&query, 0) : 0;
    query_end(&query);
    if (chat->latest_sequence <= acknowledged)
        return 0;
    int64_t own = count_sent_messages(database, chat->id, reader, chat->latest_sequence) -
                  count_sent_messages(database, chat->id, reader, acknowledged);
    return chat->latest_sequence - acknowledged - (uint64_t)own;
}

enum ledger_status sqlite_chats_read(struct database *database, struct ledger_request *request,
                                     struct slice id, struct slice reader, bool with_members,
                                     struct ledger_chat *chat)
{
    static const char SELECT_CHAT[] =
        "SELECT creator, created_at_ms, member_count, "
        "  (SELECT max(sequence) FROM messages WHERE messages.chat_id = chats.chat_id), "
        "  members_version FROM chats WHERE chat_id = ?";
    static const char SELECT_MEMBERS[] =
        "SELECT user_id FROM chat_members WHERE chat_id = ? ORDER BY user_id";
    *chat = (struct ledger_chat){.id = id};
    struct query query = query_open_texts(database, SELECT_CHAT, id, SLICE_NONE, SLICE_NONE);
    bool found = query_next(&query);
    if (found) {
        chat->creator = ledger_request_copy(request, query_text(&query, 0));
        chat->created_at_ms = query_int(&query, 1);
        chat->member_count = (size_t)query_int(&query, 2);
        chat->latest_sequence = (uint64_t)query_int(&query, 3);
        chat->members_version = (uint64_t)query_int(&query, 4);
    }
    query_end(&query);
    if (!found)
        return LEDGER_NOT_FOUND;
    if (with_members)
        chat->members = sqlite_operations_read_ids(
            request, query_open_texts(database, SELECT_MEMBERS, id, SLICE_NONE, SLICE_NONE),
            &chat->member_count);
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
    return sqlite_chats_read(database, request, input->chat, input->user, true,
                             &request->outcome.chat.chat);
}

/* Reads the ids of a page first, and one more to find out whether there is a next page. */
enum ledger_status sqlite_chats_list(struct database *database, struct ledger_request *request)
{
    static const char SELECT_PAGE[] = "SELECT chat_id FROM chat_members "
                                      "WHERE user_id = ? AND chat_id > ? ORDER BY chat_id LIMIT ?";
    const struct ledger_request_input *input = &request->input;
    struct ledger_chats_outcome *outcome = &request->outcome.chats;
    size_t found, members_listed = 0, count = 0;
    struct query query = query_open(database, SELECT_PAGE);
    query_bind(&query, input->user);
    query_bind(&query, input->after.data ? input->after : SLICE(""));
    query_bind_int(&query, (int64_t)input->limit + 1);
    const struct slice *ids = sqlite_operations_read_ids(request, query, &found);
    size_t wanted = found < input->limit ? found : input->limit;
    struct ledger_chat *chats = ledger_request_alloc(request, wanted * sizeof(*chats));
    while (chats && count < wanted && members_listed < LEDGER_CHATS_PAGE_MEMBERS_MAX) {
        struct ledger_chat *chat = &chats[count];
        if (sqlite_chats_read(database, request, ids[count], input->user, input->with_members,
                              chat) != LEDGER_OK)
            return LEDGER_UNAVAILABLE; /* a member's row without a chat: the file is damaged */
        members_listed += input->with_members ? chat->member_count : 0;
        count++;
    }
    outcome->chats = chats;
    outcome->count = count;
    outcome->has_more = count < found;
    return LEDGER_OK;
}

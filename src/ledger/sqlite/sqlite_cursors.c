/* Cursors: how far each device has acknowledged a chat. The highest cursor of a user is the user's read mark. */
#include "ledger/sqlite/sqlite_operations.h"

uint64_t sqlite_cursors_read_mark(struct database *database, struct slice chat, struct slice user)
{
    static const char SELECT_MARK[] =
        "SELECT max(sequence) FROM cursors WHERE chat_id = ? AND user_id = ?";
    struct query query = query_open_texts(database, SELECT_MARK, chat, user, SLICE_NONE);
    uint64_t mark = query_next(&query) ? (uint64_t)query_int(&query, 0) : 0;
    query_end(&query);
    return mark;
}

static bool move_cursor(struct database *database, const struct ledger_request_input *input)
{
    static const char UPSERT_CURSOR[] =
        "INSERT INTO cursors (chat_id, user_id, device_id, sequence) VALUES (?1, ?2, ?3, "
        "  min(?4, (SELECT coalesce(max(sequence), 0) FROM messages WHERE chat_id = ?1))) "
        "ON CONFLICT DO UPDATE SET sequence = excluded.sequence "
        "WHERE excluded.sequence > cursors.sequence";
    static const char DELETE_LOWEST[] =
        "DELETE FROM cursors WHERE chat_id = ?1 AND user_id = ?2 AND device_id IN "
        "  (SELECT device_id FROM cursors WHERE chat_id = ?1 AND user_id = ?2 "
        "   ORDER BY sequence DESC LIMIT -1 OFFSET ?3)";
    struct query query =
        query_open_texts(database, UPSERT_CURSOR, input->chat, input->user, input->device);
    query_bind_int(&query, (int64_t)input->sequence);
    bool moved = query_run(&query) > 0;
    struct query surplus =
        query_open_texts(database, DELETE_LOWEST, input->chat, input->user, SLICE_NONE);
    query_bind_int(&surplus, LEDGER_CURSORS_MAX);
    query_run(&surplus);
    return moved;
}

static bool user_shows_reads(struct database *database, struct slice user)
{
    static const char SELECT_HIDES[] = "SELECT 1 FROM users WHERE user_id = ? AND hides_reads = 1";
    struct query query = query_open_texts(database, SELECT_HIDES, user, SLICE_NONE, SLICE_NONE);
    return !query_found(&query);
}

enum ledger_status sqlite_cursors_put(struct database *database, struct ledger_request *request)
{
    static const char SELECT_HIDDEN_FROM[] =
        "SELECT m.user_id FROM chat_members m WHERE m.chat_id = ?1 AND ("
        "  EXISTS (SELECT 1 FROM blocks WHERE user_id = ?2 AND blocked_id = m.user_id) OR "
        "  EXISTS (SELECT 1 FROM blocks WHERE user_id = m.user_id AND blocked_id = ?2))";
    const struct ledger_request_input *input = &request->input;
    struct ledger_cursor_outcome *outcome = &request->outcome.cursor;
    struct sqlite_standing standing = sqlite_members_standing(database, input->chat, input->user);
    if (!standing.is_member)
        return LEDGER_NOT_FOUND;
    uint64_t previous = sqlite_cursors_read_mark(database, input->chat, input->user);
    outcome->changed = move_cursor(database, input);
    outcome->read_sequence = sqlite_cursors_read_mark(database, input->chat, input->user);
    outcome->read_more = outcome->read_sequence > previous;
    outcome->is_shown = outcome->read_more && user_shows_reads(database, input->user) &&
                        standing.member_count <= LEDGER_RECEIPT_MEMBERS_MAX;
    if (outcome->is_shown)
        outcome->hidden_from.ids = sqlite_operations_read_ids(
            request,
            query_open_texts(database, SELECT_HIDDEN_FROM, input->chat, input->user, SLICE_NONE),
            &outcome->hidden_from.count);
    return LEDGER_OK;
}

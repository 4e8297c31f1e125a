/* The outbox of stored messages that are not published yet, and dead letters. */
#include "ledger/sqlite/sqlite_operations.h"

static const char DELETE_OUTBOX[] = "DELETE FROM outbox WHERE chat_id = ? AND sequence = ?";

/* ---- the outbox ---- */

enum ledger_status sqlite_outbox_list(struct database *database, struct ledger_request *request)
{
    static const char SELECT_OUTBOX[] =
        "SELECT " SQLITE_MESSAGE_COLUMNS " FROM outbox o JOIN messages m "
        "ON m.chat_id = o.chat_id AND m.sequence = o.sequence ORDER BY o.position LIMIT ?";
    sqlite_messages_read_page(request, query_open(database, SELECT_OUTBOX));
    return LEDGER_OK;
}

static bool run_outbox_statement(struct database *database, const char *sql, struct slice chat,
                                 uint64_t sequence)
{
    struct query query = query_open_texts(database, sql, chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, (int64_t)sequence);
    return query_run(&query) > 0;
}

enum ledger_status sqlite_outbox_remove(struct database *database, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    for (size_t i = 0; i < input->position_count; i++)
        run_outbox_statement(database, DELETE_OUTBOX, input->positions[i].chat,
                             input->positions[i].sequence);
    return LEDGER_OK;
}

/* ---- dead letters ---- */

static bool is_message_stored(struct database *database, struct slice chat, uint64_t sequence)
{
    static const char SELECT_MESSAGE[] =
        "SELECT 1 FROM messages WHERE chat_id = ? AND sequence = ?";
    struct query query = query_open_texts(database, SELECT_MESSAGE, chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, (int64_t)sequence);
    bool found = query_next(&query);
    query_end(&query);
    return found;
}

enum ledger_status sqlite_outbox_dead_letter_put(struct database *database,
                                                 struct ledger_request *request)
{
    static const char INSERT_DEAD_LETTER[] =
        "INSERT OR IGNORE INTO dead_letters (chat_id, reason, sequence, created_at_ms) "
        "VALUES (?, ?, ?, ?)";
    static const char DELETE_OLDEST[] =
        "DELETE FROM dead_letters WHERE position <= "
        "  (SELECT position FROM dead_letters ORDER BY position DESC LIMIT 1 OFFSET ?)";
    const struct ledger_request_input *input = &request->input;
    if (!is_message_stored(database, input->chat, input->sequence))
        return LEDGER_NOT_FOUND;
    run_outbox_statement(database, DELETE_OUTBOX, input->chat, input->sequence);
    struct query query =
        query_open_texts(database, INSERT_DEAD_LETTER, input->chat, input->text, SLICE_NONE);
    query_bind_int(&query, (int64_t)input->sequence);
    query_bind_int(&query, request->wall_ms);
    request->outcome.change.changed = query_run(&query) > 0;
    struct query surplus = query_open(database, DELETE_OLDEST);
    query_bind_int(&surplus, LEDGER_DEAD_LETTERS_MAX);
    query_run(&surplus);
    return LEDGER_OK;
}

enum ledger_status sqlite_outbox_dead_letters_list(struct database *database,
                                                   struct ledger_request *request)
{
    static const char SELECT_DEAD_LETTERS[] = "SELECT chat_id, reason, sequence, created_at_ms "
                                              "FROM dead_letters ORDER BY position LIMIT ?";
    struct ledger_request_array letters = {0};
    struct query query = query_open(database, SELECT_DEAD_LETTERS);
    query_bind_int(&query, request->input.limit);
    while (query_next(&query)) {
        struct ledger_dead_letter *letter =
            ledger_request_array_push(request, &letters, sizeof(*letter));
        if (!letter)
            continue;
        letter->chat = ledger_request_copy(request, query_text(&query, 0));
        letter->reason = ledger_request_copy(request, query_text(&query, 1));
        letter->sequence = (uint64_t)query_int(&query, 2);
        letter->created_at_ms = query_int(&query, 3);
    }
    request->outcome.dead_letters.letters = letters.items;
    request->outcome.dead_letters.count = letters.count;
    return LEDGER_OK;
}

enum ledger_status sqlite_outbox_dead_letter_replay(struct database *database,
                                                    struct ledger_request *request)
{
    static const char DELETE_DEAD_LETTER[] =
        "DELETE FROM dead_letters WHERE chat_id = ? AND sequence = ?";
    static const char INSERT_AGAIN[] =
        "INSERT OR IGNORE INTO outbox (chat_id, sequence) VALUES (?, ?)";
    const struct ledger_request_input *input = &request->input;
    if (!run_outbox_statement(database, DELETE_DEAD_LETTER, input->chat, input->sequence))
        return LEDGER_NOT_FOUND;
    request->outcome.change.changed =
        run_outbox_statement(database, INSERT_AGAIN, input->chat, input->sequence);
    return LEDGER_OK;
}

#include "ledger/sqlite/sqlite_chat_drafts.h"

#include "ledger/sqlite/sqlite_ledger.h"

static int run_draft_statement(struct database *database, const char *sql, int64_t draft)
{
    struct query query = query_open(database, sql);
    query_bind_int(&query, draft);
    return query_run(&query);
}

int64_t sqlite_chat_drafts_open(struct database *database, struct slice chat)
{
    static const char INSERT_DRAFT[] =
        "INSERT INTO chat_drafts (chat_id) VALUES (?) RETURNING draft_number";
    struct query query = query_open_texts(database, INSERT_DRAFT, chat, SLICE_NONE, SLICE_NONE);
    int64_t draft = query_next(&query) ? query_int(&query, 0) : 0;
    query_end(&query);
    return draft;
}

bool sqlite_chat_drafts_reserve(struct database *database, struct slice chat)
{
    static const char SELECT_RESERVED[] = "SELECT 1 FROM chat_drafts WHERE chat_id = ?";
    struct query query = query_open_texts(database, SELECT_RESERVED, chat, SLICE_NONE, SLICE_NONE);
    return query_found(&query);
}

bool sqlite_chat_drafts_are_open(struct database *database, int64_t draft)
{
    static const char SELECT_OPEN[] =
        "SELECT 1 FROM chat_drafts WHERE draft_number = ? AND abandoned = 0";
    struct query query = query_open(database, SELECT_OPEN);
    query_bind_int(&query, draft);
    return query_found(&query);
}

void sqlite_chat_drafts_close(struct database *database, int64_t draft)
{
    static const char DELETE_DRAFT[] = "DELETE FROM chat_drafts WHERE draft_number = ?";
    run_draft_statement(database, DELETE_DRAFT, draft);
}

void sqlite_chat_drafts_abandon(struct database *database, int64_t draft)
{
    static const char ABANDON[] = "UPDATE chat_drafts SET abandoned = 1 WHERE draft_number = ?";
    run_draft_statement(database, ABANDON, draft);
}

void sqlite_chat_drafts_abandon_all(struct database *database)
{
    static const char ABANDON_ALL[] = "UPDATE chat_drafts SET abandoned = 1 WHERE abandoned = 0";
    struct query query = query_open(database, ABANDON_ALL);
    query_run(&query);
}

bool sqlite_chat_drafts_clear(struct database *database)
{
    static const char SELECT_ABANDONED[] =
        "SELECT draft_number FROM chat_drafts WHERE abandoned = 1 LIMIT 1";
    static const char DELETE_MEMBERS[] =
        "DELETE FROM chat_members WHERE (chat_id, user_id) IN (SELECT m.chat_id, m.user_id "
        "  FROM chat_drafts d JOIN chat_members m ON m.chat_id = d.chat_id "
        "  WHERE d.draft_number = ?1 LIMIT ?2)";
    struct query query = query_open(database, SELECT_ABANDONED);
    bool found = query_next(&query);
    int64_t draft = found ? query_int(&query, 0) : 0;
    query_end(&query);
    if (!found)
        return false;
    struct query members = query_open(database, DELETE_MEMBERS);
    query_bind_int(&members, draft);
    query_bind_int(&members, SQLITE_LEDGER_SLICE_IDS);
    if (query_run(&members) < SQLITE_LEDGER_SLICE_IDS)
        sqlite_chat_drafts_close(database, draft);
    return true;
}

bool sqlite_chat_drafts_exist(struct database *database)
{
    static const char SELECT_ANY[] = "SELECT 1 FROM chat_drafts LIMIT 1";
    struct query query = query_open(database, SELECT_ANY);
    return query_found(&query);
}

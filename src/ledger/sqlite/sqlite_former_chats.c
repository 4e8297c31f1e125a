/* Groups that users have left with messages of theirs in them: what an export or an erasure could not find otherwise. */
#include "ledger/sqlite/sqlite_operations.h"

void sqlite_former_chats_add(struct database *database, struct slice chat, struct slice user)
{
    static const char INSERT_FORMER_CHAT[] =
        "INSERT OR IGNORE INTO former_chats (user_id, chat_id) SELECT ?2, ?1 "
        "WHERE EXISTS (SELECT 1 FROM sent_counts WHERE chat_id = ?1 AND sender = ?2)";
    struct query query = query_open_texts(database, INSERT_FORMER_CHAT, chat, user, SLICE_NONE);
    query_run(&query);
}

void sqlite_former_chats_remove(struct database *database, struct slice chat, struct slice user)
{
    static const char DELETE_FORMER_CHAT[] =
        "DELETE FROM former_chats WHERE chat_id = ? AND user_id = ?";
    struct query query = query_open_texts(database, DELETE_FORMER_CHAT, chat, user, SLICE_NONE);
    query_run(&query);
}

enum ledger_status sqlite_former_chats_list(struct database *database,
                                            struct ledger_request *request)
{
    static const char SELECT_FORMER_CHATS[] = "SELECT chat_id FROM former_chats "
                                              "WHERE user_id = ? AND chat_id > ? "
                                              "ORDER BY chat_id LIMIT ?";
    const struct ledger_request_input *input = &request->input;
    struct ledger_ids_outcome *outcome = &request->outcome.ids;
    struct query query = query_open_texts(database, SELECT_FORMER_CHATS, input->user,
                                          input->after.data ? input->after : SLICE(""), SLICE_NONE);
    query_bind_int(&query, input->limit);
    outcome->ids = sqlite_operations_read_ids(request, query, &outcome->count);
    return LEDGER_OK;
}

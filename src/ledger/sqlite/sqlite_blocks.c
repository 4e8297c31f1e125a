/* Blocks: which users a user has blocked. */
#include "ledger/sqlite/sqlite_operations.h"

bool sqlite_blocks_exist(struct database *database, struct slice user, struct slice other)
{
    static const char SELECT_BLOCK[] = "SELECT 1 FROM blocks WHERE user_id = ? AND blocked_id = ?";
    struct query query = query_open_texts(database, SELECT_BLOCK, user, other, SLICE_NONE);
    return query_found(&query);
}

enum ledger_status sqlite_blocks_add(struct database *database, struct slice user,
                                     struct slice other, int64_t since_ms,
                                     struct ledger_block_outcome *outcome)
{
    static const char COUNT_BLOCKS[] = "SELECT count(*) FROM blocks WHERE user_id = ?";
    static const char INSERT_BLOCK[] =
        "INSERT INTO blocks (user_id, blocked_id, since_ms) VALUES (?, ?, ?)";
    if (sqlite_blocks_exist(database, user, other))
        return LEDGER_OK;
    struct query count = query_open_texts(database, COUNT_BLOCKS, user, SLICE_NONE, SLICE_NONE);
    bool below_limit = query_next(&count) && query_int(&count, 0) < LEDGER_BLOCKS_MAX;
    query_end(&count);
    if (!below_limit)
        return LEDGER_LIMIT;
    struct query query = query_open_texts(database, INSERT_BLOCK, user, other, SLICE_NONE);
    query_bind_int(&query, since_ms);
    query_run(&query);
    sqlite_contact_requests_block(database, user, other);
    outcome->changed = true;
    outcome->contact_removed = sqlite_contacts_delete(database, user, other);
    return LEDGER_OK;
}

enum ledger_status sqlite_blocks_put(struct database *database, struct ledger_request *request)
{
    return sqlite_blocks_add(database, request->input.user, request->input.other, request->wall_ms,
                             &request->outcome.block);
}

enum ledger_status sqlite_blocks_delete(struct database *database, struct ledger_request *request)
{
    static const char DELETE_BLOCK[] = "DELETE FROM blocks WHERE user_id = ? AND blocked_id = ?";
    struct query query = query_open_texts(database, DELETE_BLOCK, request->input.user,
                                          request->input.other, SLICE_NONE);
    request->outcome.change.changed = query_run(&query) > 0;
    return LEDGER_OK;
}

enum ledger_status sqlite_blocks_list(struct database *database, struct ledger_request *request)
{
    static const char SELECT_BLOCKS[] =
        "SELECT blocked_id FROM blocks WHERE user_id = ? ORDER BY blocked_id";
    struct ledger_ids_outcome *outcome = &request->outcome.ids;
    outcome->ids = sqlite_operations_read_ids(
        request,
        query_open_texts(database, SELECT_BLOCKS, request->input.user, SLICE_NONE, SLICE_NONE),
        &outcome->count);
    return LEDGER_OK;
}

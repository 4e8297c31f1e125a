/* API keys. */
#include "ledger/sqlite/sqlite_operations.h"

static bool has_space_for_key(struct database *database)
{
    static const char COUNT_KEYS[] = "SELECT count(*) FROM api_keys";
    struct query query = query_open(database, COUNT_KEYS);
    bool has_space = query_next(&query) && query_int(&query, 0) < LEDGER_KEYS_MAX;
    query_end(&query);
    return has_space;
}

enum ledger_status sqlite_keys_put(struct database *database, struct ledger_request *request)
{
    static const char SELECT_HASH[] = "SELECT hash FROM api_keys WHERE name = ?";
    static const char INSERT_KEY[] = "INSERT INTO api_keys (name, hash, scope, created_at_ms) "
                                     "VALUES (?1, ?2, ?3, ?4)";
    const struct ledger_request_input *input = &request->input;
    struct query found = query_open_texts(database, SELECT_HASH, input->id, SLICE_NONE, SLICE_NONE);
    bool is_used = query_next(&found);
    bool is_same = is_used && slice_equal(query_text(&found, 0), input->device);
    query_end(&found);
    if (is_used)
        return is_same ? LEDGER_OK : LEDGER_CONFLICT;
    if (!has_space_for_key(database))
        return LEDGER_LIMIT;
    struct query query = query_open(database, INSERT_KEY);
    query_bind(&query, input->id);
    query_bind(&query, input->device);
    query_bind(&query, input->other);
    query_bind_int(&query, request->wall_ms);
    request->outcome.change.changed = query_run(&query) > 0;
    return LEDGER_OK;
}

enum ledger_status sqlite_keys_delete(struct database *database, struct ledger_request *request)
{
    static const char DELETE_KEY[] = "DELETE FROM api_keys WHERE name = ?";
    struct query query =
        query_open_texts(database, DELETE_KEY, request->input.id, SLICE_NONE, SLICE_NONE);
    request->outcome.change.changed = query_run(&query) > 0;
    return LEDGER_OK;
}

enum ledger_status sqlite_keys_used(struct database *database, struct ledger_request *request)
{
    static const char UPDATE_KEY[] =
        "UPDATE api_keys SET last_used_ms = ?2 WHERE name = ?1 AND last_used_ms < ?2";
    struct query query = query_open(database, UPDATE_KEY);
    query_bind(&query, request->input.id);
    query_bind_int(&query, request->wall_ms);
    request->outcome.change.changed = query_run(&query) > 0;
    return LEDGER_OK;
}

enum ledger_status sqlite_keys_list(struct database *database, struct ledger_request *request)
{
    static const char SELECT_KEYS[] =
        "SELECT name, hash, scope, created_at_ms, last_used_ms FROM api_keys WHERE name > '' "
        "ORDER BY name";
    struct ledger_request_array keys = {0};
    struct query query = query_open(database, SELECT_KEYS);
    while (query_next(&query)) {
        struct ledger_key *key = ledger_request_array_push(request, &keys, sizeof(*key));
        if (key)
            *key = (struct ledger_key){ledger_request_copy(request, query_text(&query, 0)),
                                       ledger_request_copy(request, query_text(&query, 1)),
                                       ledger_request_copy(request, query_text(&query, 2)),
                                       query_int(&query, 3), query_int(&query, 4)};
    }
    request->outcome.keys.keys = keys.items;
    request->outcome.keys.count = keys.count;
    return LEDGER_OK;
}

/* Revocations of users' tokens. */
#include "ledger/sqlite/sqlite_operations.h"

enum { MS_PER_SECOND = 1000 };

/* Returns when the user was revoked; -1: never. */
static int64_t read_revoked_at_s(struct database *database, struct slice user)
{
    static const char SELECT_REVOKED[] = "SELECT revoked_at_s FROM revocations WHERE user_id = ?";
    struct query query = query_open_texts(database, SELECT_REVOKED, user, SLICE_NONE, SLICE_NONE);
    int64_t revoked_at_s = query_next(&query) ? query_int(&query, 0) : -1;
    query_end(&query);
    return revoked_at_s;
}

static bool has_space_for_revocation(struct database *database)
{
    static const char COUNT_REVOCATIONS[] = "SELECT count(*) FROM revocations";
    struct query query = query_open(database, COUNT_REVOCATIONS);
    bool has_space = query_next(&query) && query_int(&query, 0) < LEDGER_REVOCATIONS_MAX;
    query_end(&query);
    return has_space;
}

/* A repeated revocation gets a new position, so that gateways that have read the earlier one read it too. */
enum ledger_status sqlite_revocations_put(struct database *database, struct ledger_request *request)
{
    static const char REPLACE_REVOCATION[] =
        "INSERT OR REPLACE INTO revocations (user_id, revoked_at_s) VALUES (?1, ?2)";
    struct slice user = request->input.user;
    int64_t now_s = request->wall_ms / MS_PER_SECOND;
    int64_t revoked_at_s = read_revoked_at_s(database, user);
    request->outcome.revoke.revoked_at_s = revoked_at_s > now_s ? revoked_at_s : now_s;
    if (revoked_at_s >= now_s)
        return LEDGER_OK;
    if (revoked_at_s < 0 && !has_space_for_revocation(database))
        return LEDGER_LIMIT;
    struct query query = query_open(database, REPLACE_REVOCATION);
    query_bind(&query, user);
    query_bind_int(&query, now_s);
    query_run(&query);
    return LEDGER_OK;
}

enum ledger_status sqlite_revocations_list(struct database *database,
                                           struct ledger_request *request)
{
    static const char SELECT_REVOCATIONS[] =
        "SELECT user_id, revoked_at_s, position FROM revocations WHERE position > ?1 "
        "ORDER BY position LIMIT ?2";
    struct ledger_revocations_outcome *outcome = &request->outcome.revocations;
    struct ledger_request_array revocations = {0};
    struct query query = query_open(database, SELECT_REVOCATIONS);
    query_bind_int(&query, (int64_t)request->input.sequence);
    query_bind_int(&query, (int64_t)request->input.limit + 1);
    while (query_next(&query)) {
        if (revocations.count == request->input.limit) {
            outcome->has_more = true;
            continue;
        }
        struct ledger_revocation *revocation =
            ledger_request_array_push(request, &revocations, sizeof(*revocation));
        if (revocation)
            *revocation =
                (struct ledger_revocation){ledger_request_copy(request, query_text(&query, 0)),
                                           query_int(&query, 1), (uint64_t)query_int(&query, 2)};
    }
    outcome->revocations = revocations.items;
    outcome->count = revocations.count;
    return LEDGER_OK;
}

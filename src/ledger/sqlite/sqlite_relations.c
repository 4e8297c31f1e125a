/* Changes of many relations in one request (ledger_relations.h). Each checks before it writes, so none is half done. */
#include "ledger/sqlite/sqlite_operations.h"

static enum ledger_status make_contact(struct database *database, struct ledger_request *request,
                                       struct slice user, struct slice other,
                                       struct ledger_relation_result *result)
{
    if (sqlite_contacts_exist(database, user, other))
        return LEDGER_OK;
    if (sqlite_blocks_exist(database, user, other) || sqlite_blocks_exist(database, other, user))
        return LEDGER_FORBIDDEN;
    if (!sqlite_contacts_have_space(database, user, other))
        return LEDGER_LIMIT;
    struct slice id = sqlite_contact_requests_settle(database, request, user, other);
    sqlite_contacts_insert(database, user, other, id, request->wall_ms);
    result->changed = true;
    return LEDGER_OK;
}

static void change_relation(struct database *database, struct ledger_request *request,
                            const struct slice *pair, struct ledger_relation_result *result)
{
    struct ledger_block_outcome block = {0};
    switch (request->input.relation) {
    case LEDGER_CONTACT_MAKE:
        result->status = make_contact(database, request, pair[0], pair[1], result);
        break;
    case LEDGER_CONTACT_END:
        result->changed = sqlite_contacts_delete(database, pair[0], pair[1]);
        result->contact_removed = result->changed;
        break;
    default:
        result->status = sqlite_blocks_add(database, pair[0], pair[1], request->wall_ms, &block);
        result->changed = block.changed;
        result->contact_removed = block.contact_removed;
        break;
    }
}

enum ledger_status sqlite_relations_change(struct database *database,
                                           struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    size_t count = input->id_count / 2;
    struct ledger_relation_result *results =
        ledger_request_alloc(request, count * sizeof(*results));
    if (!results)
        return LEDGER_UNAVAILABLE;
    memset(results, 0, count * sizeof(*results));
    for (size_t i = 0; i < count; i++)
        change_relation(database, request, &input->ids[2 * i], &results[i]);
    request->outcome.relations =
        (struct ledger_relations_outcome){.results = results, .count = count};
    return LEDGER_OK;
}

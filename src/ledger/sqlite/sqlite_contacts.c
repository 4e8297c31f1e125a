/* Contacts: a relation between two users, stored once for each side. */
#include "ledger/sqlite/sqlite_operations.h"

bool sqlite_contacts_exist(struct database *database, struct slice user, struct slice other)
{
    static const char SELECT_CONTACT[] =
        "SELECT 1 FROM contacts WHERE user_id = ? AND contact_id = ?";
    struct query query = query_open_texts(database, SELECT_CONTACT, user, other, SLICE_NONE);
    return query_found(&query);
}

static bool may_add_contact(struct database *database, struct slice user)
{
    static const char COUNT_CONTACTS[] = "SELECT count(*) FROM contacts WHERE user_id = ?";
    if (sqlite_contact_space_get(database->contact_space, user))
        return true;
    struct query query = query_open_texts(database, COUNT_CONTACTS, user, SLICE_NONE, SLICE_NONE);
    int64_t count = query_next(&query) ? query_int(&query, 0) : LEDGER_CONTACTS_MAX;
    query_end(&query);
    if (count >= LEDGER_CONTACTS_MAX)
        return false;
    sqlite_contact_space_put(database->contact_space, user,
                             (uint32_t)(LEDGER_CONTACTS_MAX - count));
    return true;
}

static void insert_contact_side(struct database *database, struct slice user, struct slice other,
                                struct slice request_id, int64_t since_ms)
{
    static const char INSERT_CONTACT[] =
        "INSERT OR IGNORE INTO contacts (user_id, contact_id, request_id, since_ms) "
        "VALUES (?, ?, ?, ?)";
    struct query query = query_open_texts(database, INSERT_CONTACT, user, other, request_id);
    query_bind_int(&query, since_ms);
    query_run(&query);
    sqlite_contact_space_use(database->contact_space, user);
}

bool sqlite_contacts_have_space(struct database *database, struct slice user, struct slice other)
{
    return may_add_contact(database, user) && may_add_contact(database, other);
}

void sqlite_contacts_insert(struct database *database, struct slice user, struct slice other,
                            struct slice request_id, int64_t since_ms)
{
    insert_contact_side(database, user, other, request_id, since_ms);
    insert_contact_side(database, other, user, request_id, since_ms);
}

static bool delete_contact_side(struct database *database, struct slice user, struct slice other)
{
    static const char DELETE_CONTACT[] =
        "DELETE FROM contacts WHERE user_id = ? AND contact_id = ?";
    struct query query = query_open_texts(database, DELETE_CONTACT, user, other, SLICE_NONE);
    return query_run(&query) > 0;
}

bool sqlite_contacts_delete(struct database *database, struct slice user, struct slice other)
{
    bool existed = delete_contact_side(database, user, other);
    return delete_contact_side(database, other, user) || existed;
}

enum ledger_status sqlite_contacts_remove(struct database *database, struct ledger_request *request)
{
    request->outcome.change.changed =
        sqlite_contacts_delete(database, request->input.user, request->input.other);
    return LEDGER_OK;
}

enum ledger_status sqlite_contacts_list(struct database *database, struct ledger_request *request)
{
    static const char SELECT_CONTACTS[] =
        "SELECT contact_id FROM contacts WHERE user_id = ? ORDER BY contact_id";
    struct ledger_ids_outcome *outcome = &request->outcome.ids;
    outcome->ids = sqlite_operations_read_ids(
        request,
        query_open_texts(database, SELECT_CONTACTS, request->input.user, SLICE_NONE, SLICE_NONE),
        &outcome->count);
    return LEDGER_OK;
}

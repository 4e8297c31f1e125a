/*
 * Pending contact requests. A row is deleted when its contact request is accepted, declined or withdrawn.
 *
 * A block stays secret: the sender goes through the same steps and gets the same answers whether or not
 * the receiver has blocked them. The block decides only `hidden` and `tell_other_side`.
 */
#include "ledger/sqlite/sqlite_operations.h"

struct pending_contact_request {
    struct ledger_contact_request request;
    bool hidden;
};

#define PENDING_COLUMNS "request_id, from_user, to_user, created_at_ms, hidden"

static void read_contact_request_row(struct ledger_request *request, const struct query *query,
                                     struct ledger_contact_request *row)
{
    row->id = ledger_request_copy(request, query_text(query, 0));
    row->from = ledger_request_copy(request, query_text(query, 1));
    row->to = ledger_request_copy(request, query_text(query, 2));
    row->created_at_ms = query_int(query, 3);
}

static bool read_pending_contact_request(struct ledger_request *request, struct query query,
                                         struct pending_contact_request *pending)
{
    bool found = query_next(&query);
    if (found) {
        read_contact_request_row(request, &query, &pending->request);
        pending->hidden = query_int(&query, 4) != 0;
    }
    query_end(&query);
    return found;
}

static bool find_contact_request_between(struct database *database, struct ledger_request *request,
                                         struct slice from, struct slice to,
                                         struct pending_contact_request *pending)
{
    static const char SELECT_BETWEEN[] =
        "SELECT " PENDING_COLUMNS " FROM contact_requests WHERE from_user = ? AND to_user = ?";
    return read_pending_contact_request(
        request, query_open_texts(database, SELECT_BETWEEN, from, to, SLICE_NONE), pending);
}

static bool find_contact_request_by_id(struct database *database, struct ledger_request *request,
                                       struct pending_contact_request *pending)
{
    static const char SELECT_ID[] =
        "SELECT " PENDING_COLUMNS " FROM contact_requests WHERE request_id = ?";
    return read_pending_contact_request(
        request, query_open_texts(database, SELECT_ID, request->input.id, SLICE_NONE, SLICE_NONE),
        pending);
}

static void delete_contact_request_between(struct database *database, struct slice from,
                                           struct slice to)
{
    static const char DELETE_BETWEEN[] =
        "DELETE FROM contact_requests WHERE from_user = ? AND to_user = ?";
    struct query query = query_open_texts(database, DELETE_BETWEEN, from, to, SLICE_NONE);
    query_run(&query);
}

static void set_contact_request_hidden(struct database *database, struct slice from,
                                       struct slice to, bool hidden)
{
    static const char UPDATE_HIDDEN[] =
        "UPDATE contact_requests SET hidden = ?3 WHERE from_user = ?1 AND to_user = ?2";
    struct query query = query_open_texts(database, UPDATE_HIDDEN, from, to, SLICE_NONE);
    query_bind_int(&query, hidden);
    query_run(&query);
}

void sqlite_contact_requests_block(struct database *database, struct slice user, struct slice other)
{
    delete_contact_request_between(database, user, other);
    set_contact_request_hidden(database, other, user, true);
}

/* Most users have no contact request between them, so one is looked for before a deletion, which costs more. */
static void settle_one_direction(struct database *database, struct ledger_request *request,
                                 struct slice from, struct slice to, struct slice *id)
{
    static const char SELECT_BETWEEN[] =
        "SELECT request_id FROM contact_requests WHERE from_user = ? AND to_user = ?";
    struct query query = query_open_texts(database, SELECT_BETWEEN, from, to, SLICE_NONE);
    if (!query_next(&query))
        return;
    *id = ledger_request_copy(request, query_text(&query, 0));
    query_end(&query);
    delete_contact_request_between(database, from, to);
}

struct slice sqlite_contact_requests_settle(struct database *database,
                                            struct ledger_request *request, struct slice user,
                                            struct slice other)
{
    struct slice id = SLICE("");
    settle_one_direction(database, request, user, other, &id);
    settle_one_direction(database, request, other, user, &id);
    return id;
}

/* ---- creating ---- */

static enum ledger_status accept_contact_request(struct database *database,
                                                 struct ledger_request *request,
                                                 const struct pending_contact_request *pending)
{
    struct ledger_contact_outcome *outcome = &request->outcome.contact;
    const struct ledger_contact_request *row = &pending->request;
    outcome->result = LEDGER_CONTACT_ACCEPTED;
    outcome->request = *row;
    outcome->tell_other_side = true;
    if (!sqlite_contacts_have_space(database, row->from, row->to))
        return LEDGER_LIMIT;
    delete_contact_request_between(database, row->from, row->to);
    sqlite_contacts_insert(database, row->from, row->to, row->id, request->wall_ms);
    return LEDGER_OK;
}

static enum ledger_status create_contact_request(struct database *database,
                                                 struct ledger_request *request, bool hidden)
{
    static const char COUNT_OUTGOING[] =
        "SELECT count(*) FROM contact_requests WHERE from_user = ?";
    static const char INSERT_REQUEST[] =
        "INSERT OR IGNORE INTO contact_requests "
        "(request_id, from_user, to_user, created_at_ms, hidden) VALUES (?, ?, ?, ?, ?)";
    const struct ledger_request_input *input = &request->input;
    struct query count =
        query_open_texts(database, COUNT_OUTGOING, input->user, SLICE_NONE, SLICE_NONE);
    bool full = query_next(&count) && query_int(&count, 0) >= LEDGER_CONTACT_REQUESTS_OUTGOING_MAX;
    query_end(&count);
    if (full)
        return LEDGER_LIMIT;
    struct query query =
        query_open_texts(database, INSERT_REQUEST, input->id, input->user, input->other);
    query_bind_int(&query, request->wall_ms);
    query_bind_int(&query, hidden);
    if (query_run(&query) == 0)
        return LEDGER_CONFLICT; /* the id belongs to another contact request */
    request->outcome.contact = (struct ledger_contact_outcome){
        .result = LEDGER_CONTACT_REQUESTED,
        .request = {input->id, input->user, input->other, request->wall_ms},
        .tell_other_side = !hidden};
    return LEDGER_OK;
}

enum ledger_status sqlite_contact_requests_create(struct database *database,
                                                  struct ledger_request *request)
{
    struct slice from = request->input.user, to = request->input.other;
    struct pending_contact_request pending;
    if (sqlite_blocks_exist(database, from, to))
        return LEDGER_FORBIDDEN;
    if (sqlite_contacts_exist(database, from, to)) {
        request->outcome.contact = (struct ledger_contact_outcome){
            .result = LEDGER_CONTACT_ALREADY, .request = {.from = from, .to = to}};
        return LEDGER_OK;
    }
    if (find_contact_request_between(database, request, to, from, &pending))
        return accept_contact_request(database, request, &pending);
    bool blocked = sqlite_blocks_exist(database, to, from);
    if (!find_contact_request_between(database, request, from, to, &pending))
        return create_contact_request(database, request, blocked);
    /* A hidden contact request that is repeated after the block was removed becomes visible. */
    bool reveal = pending.hidden && !blocked;
    if (reveal)
        set_contact_request_hidden(database, from, to, false);
    request->outcome.contact = (struct ledger_contact_outcome){
        .result = LEDGER_CONTACT_PENDING, .request = pending.request, .tell_other_side = reveal};
    return LEDGER_OK;
}

/* ---- answering ---- */

/* A repeated acceptance finds the contact that the first one made. */
static enum ledger_status find_accepted_contact_request(struct database *database,
                                                        struct ledger_request *request)
{
    static const char SELECT_ACCEPTED[] =
        "SELECT contact_id FROM contacts WHERE user_id = ? AND request_id = ?";
    struct query query = query_open_texts(database, SELECT_ACCEPTED, request->input.user,
                                          request->input.id, SLICE_NONE);
    bool found = query_next(&query);
    if (found)
        request->outcome.contact = (struct ledger_contact_outcome){
            .result = LEDGER_CONTACT_ALREADY,
            .request = {.from = ledger_request_copy(request, query_text(&query, 0)),
                        .to = request->input.user}};
    query_end(&query);
    return found ? LEDGER_OK : LEDGER_NOT_FOUND;
}

static bool find_incoming_contact_request(struct database *database, struct ledger_request *request,
                                          struct pending_contact_request *pending)
{
    return find_contact_request_by_id(database, request, pending) && !pending->hidden &&
           slice_equal(pending->request.to, request->input.user);
}

enum ledger_status sqlite_contact_requests_accept(struct database *database,
                                                  struct ledger_request *request)
{
    struct pending_contact_request pending;
    if (!find_incoming_contact_request(database, request, &pending))
        return find_accepted_contact_request(database, request);
    return accept_contact_request(database, request, &pending);
}

static enum ledger_status end_contact_request(struct database *database,
                                              struct ledger_request *request,
                                              const struct pending_contact_request *pending,
                                              enum ledger_contact_result result)
{
    delete_contact_request_between(database, pending->request.from, pending->request.to);
    request->outcome.contact = (struct ledger_contact_outcome){
        .result = result, .request = pending->request, .tell_other_side = !pending->hidden};
    return LEDGER_OK;
}

enum ledger_status sqlite_contact_requests_decline(struct database *database,
                                                   struct ledger_request *request)
{
    struct pending_contact_request pending;
    if (!find_incoming_contact_request(database, request, &pending))
        return LEDGER_NOT_FOUND;
    return end_contact_request(database, request, &pending, LEDGER_CONTACT_DECLINED);
}

enum ledger_status sqlite_contact_requests_withdraw(struct database *database,
                                                    struct ledger_request *request)
{
    struct pending_contact_request pending;
    if (!find_contact_request_by_id(database, request, &pending) ||
        !slice_equal(pending.request.from, request->input.user))
        return LEDGER_NOT_FOUND;
    return end_contact_request(database, request, &pending, LEDGER_CONTACT_WITHDRAWN);
}

/* ---- listing ---- */

enum ledger_status sqlite_contact_requests_list(struct database *database,
                                                struct ledger_request *request)
{
    static const char SELECT_INCOMING[] =
        "SELECT " PENDING_COLUMNS " FROM contact_requests "
        "WHERE to_user = ? AND hidden = 0 AND request_id > ? ORDER BY request_id LIMIT ?";
    static const char SELECT_OUTGOING[] = "SELECT " PENDING_COLUMNS " FROM contact_requests "
                                          "WHERE from_user = ? AND request_id > ? "
                                          "ORDER BY request_id LIMIT ?";
    const struct ledger_request_input *input = &request->input;
    struct ledger_contact_requests_outcome *outcome = &request->outcome.contact_requests;
    struct ledger_request_array rows = {0};
    struct query query = query_open(database, input->incoming ? SELECT_INCOMING : SELECT_OUTGOING);
    query_bind(&query, input->user);
    query_bind(&query, input->after.data ? input->after : SLICE(""));
    query_bind_int(&query, (int64_t)input->limit + 1);
    while (query_next(&query)) {
        outcome->has_more = rows.count == input->limit;
        if (outcome->has_more)
            break;
        struct ledger_contact_request *row =
            ledger_request_array_push(request, &rows, sizeof(*row));
        if (row)
            read_contact_request_row(request, &query, row);
    }
    query_end(&query);
    outcome->requests = rows.items;
    outcome->count = rows.count;
    return LEDGER_OK;
}

/*
 * Contacts and contact requests.
 *
 * A block stays secret: the sender goes through the same steps and gets the same answers whether or not the receiver has
 * blocked them. The block decides only whether the contact request is hidden, and `tell_other_side`.
 */
#include "ledger/dynamodb/dynamodb_operations.h"
#include "ledger/dynamodb/dynamodb_relation.h"

/* ---- creating ---- */

static struct ledger_contact_request get_contact_request(const struct dynamodb_relation *relation)
{
    return (struct ledger_contact_request){
        relation->request_id, relation->user_sent ? relation->user : relation->other,
        relation->user_sent ? relation->other : relation->user, relation->created_at_ms};
}

static enum ledger_status answer_contact(struct ledger_request *request,
                                         enum ledger_contact_result result,
                                         struct ledger_contact_request of, bool tell_other_side)
{
    request->outcome.contact = (struct ledger_contact_outcome){
        .result = result, .request = of, .tell_other_side = tell_other_side};
    return LEDGER_OK;
}

static enum ledger_status accept_pending(struct ledger_request *request,
                                         struct dynamodb_relation *relation)
{
    relation->are_contacts = true;
    relation->is_pending = false;
    relation->is_hidden = false;
    return answer_contact(request, LEDGER_CONTACT_ACCEPTED, get_contact_request(relation), true);
}

static enum ledger_status send_new(struct ledger_request *request,
                                   struct dynamodb_relation *relation)
{
    relation->is_pending = true;
    relation->user_sent = true;
    relation->is_hidden = relation->other_blocks;
    relation->request_id = request->input.id;
    relation->created_at_ms = request->wall_ms;
    return answer_contact(request, LEDGER_CONTACT_REQUESTED, get_contact_request(relation),
                          !relation->is_hidden);
}

static enum ledger_status decide_create(struct ledger_request *request,
                                        struct dynamodb_relation *relation)
{
    struct ledger_contact_request sides = {.from = relation->user, .to = relation->other};
    if (relation->user_blocks)
        return LEDGER_FORBIDDEN;
    if (relation->are_contacts)
        return answer_contact(request, LEDGER_CONTACT_ALREADY, sides, false);
    if (!relation->is_pending)
        return send_new(request, relation);
    if (!relation->user_sent)
        return accept_pending(request, relation);
    /* A hidden contact request that is repeated after the block was removed becomes visible. */
    bool reveal = relation->is_hidden && !relation->other_blocks;
    if (reveal)
        relation->is_hidden = false;
    return answer_contact(request, LEDGER_CONTACT_PENDING, get_contact_request(relation), reveal);
}

enum ledger_status dynamodb_contacts_request_create(struct dynamodb_task *task)
{
    return dynamodb_relation_change(task, task->request->input.other, decide_create);
}

/* ---- answering ---- */

static bool is_request_of(const struct ledger_request *request,
                          const struct dynamodb_relation *relation)
{
    return slice_equal(relation->request_id, request->input.id);
}

static bool is_incoming(const struct ledger_request *request,
                        const struct dynamodb_relation *relation)
{
    return is_request_of(request, relation) && relation->is_pending && !relation->is_hidden &&
           !relation->user_sent;
}

static enum ledger_status decide_accept(struct ledger_request *request,
                                        struct dynamodb_relation *relation)
{
    struct ledger_contact_request sides = {.from = relation->other, .to = relation->user};
    if (is_incoming(request, relation))
        return accept_pending(request, relation);
    if (relation->are_contacts && is_request_of(request, relation))
        return answer_contact(request, LEDGER_CONTACT_ALREADY, sides, false);
    return LEDGER_NOT_FOUND;
}

static enum ledger_status end_pending(struct ledger_request *request,
                                      struct dynamodb_relation *relation,
                                      enum ledger_contact_result result)
{
    bool was_hidden = relation->is_hidden;
    relation->is_pending = false;
    relation->is_hidden = false;
    return answer_contact(request, result, get_contact_request(relation), !was_hidden);
}

static enum ledger_status decide_decline(struct ledger_request *request,
                                         struct dynamodb_relation *relation)
{
    return is_incoming(request, relation) ? end_pending(request, relation, LEDGER_CONTACT_DECLINED)
                                          : LEDGER_NOT_FOUND;
}

static enum ledger_status decide_withdraw(struct ledger_request *request,
                                          struct dynamodb_relation *relation)
{
    return is_request_of(request, relation) && relation->is_pending && relation->user_sent
               ? end_pending(request, relation, LEDGER_CONTACT_WITHDRAWN)
               : LEDGER_NOT_FOUND;
}

/* The id leads to the two users; what it is now, their relation says. */
static enum ledger_status answer_request(struct dynamodb_task *task,
                                         dynamodb_relation_decision decide)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_key key = {DYNAMODB_USERS, input->id, SLICE("contact_request"), 0};
    struct dynamodb_item item = dynamodb_get(task, key);
    struct slice from = dynamodb_item_text(&item, "from_id");
    struct slice to = dynamodb_item_text(&item, "to_id");
    if (slice_equal(input->user, to) && to.len)
        return dynamodb_relation_change(task, from, decide);
    if (slice_equal(input->user, from) && from.len)
        return dynamodb_relation_change(task, to, decide);
    return LEDGER_NOT_FOUND;
}

enum ledger_status dynamodb_contacts_request_accept(struct dynamodb_task *task)
{
    return answer_request(task, decide_accept);
}

enum ledger_status dynamodb_contacts_request_decline(struct dynamodb_task *task)
{
    return answer_request(task, decide_decline);
}

enum ledger_status dynamodb_contacts_request_withdraw(struct dynamodb_task *task)
{
    return answer_request(task, decide_withdraw);
}

/* ---- listing ---- */

static struct ledger_contact_request read_listed_request(const struct ledger_request_input *input,
                                                         const struct dynamodb_item *item,
                                                         size_t prefix_len)
{
    struct slice other = dynamodb_item_text(item, "other_id");
    return (struct ledger_contact_request){
        slice_after(dynamodb_item_text(item, "part_key"), prefix_len),
        input->incoming ? other : input->user, input->incoming ? input->user : other,
        dynamodb_item_number(item, "created_at_ms")};
}

enum ledger_status dynamodb_contacts_requests_list(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct ledger_contact_requests_outcome *outcome = &task->request->outcome.contact_requests;
    const char *prefix = input->incoming ? "incoming#" : "outgoing#";
    struct dynamodb_query query = {
        .table = DYNAMODB_USERS,
        .partition = input->user,
        .prefix = prefix,
        .after = input->after.len ? dynamodb_join(task, prefix, input->after) : SLICE_NONE,
        .limit = input->limit + 1};
    struct ledger_request_array rows = {0};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        outcome->has_more = rows.count == input->limit;
        struct ledger_contact_request *row =
            outcome->has_more ? NULL
                              : ledger_request_array_push(task->request, &rows, sizeof(*row));
        if (row)
            *row = read_listed_request(input, &item, strlen(prefix));
    }
    outcome->requests = rows.items;
    outcome->count = rows.count;
    return LEDGER_OK;
}

struct id_list dynamodb_contacts_read_ids(struct dynamodb_task *task, struct slice user,
                                          const char *prefix, uint32_t limit)
{
    struct dynamodb_query query = {.table = DYNAMODB_USERS,
                                   .partition = user,
                                   .prefix = prefix,
                                   .limit = limit,
                                   .attributes = "part_key"};
    struct ledger_request_array ids = {0};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct slice *id = ledger_request_array_push(task->request, &ids, sizeof(*id));
        if (id)
            *id = slice_after(dynamodb_item_text(&item, "part_key"), strlen(prefix));
    }
    return (struct id_list){ids.items, ids.count};
}

enum ledger_status dynamodb_contacts_list(struct dynamodb_task *task)
{
    struct id_list ids = dynamodb_contacts_read_ids(task, task->request->input.user, "contact#", 0);
    task->request->outcome.ids = (struct ledger_ids_outcome){.ids = ids.ids, .count = ids.count};
    return LEDGER_OK;
}

/* ---- ending ---- */

static enum ledger_status decide_remove(struct ledger_request *request,
                                        struct dynamodb_relation *relation)
{
    request->outcome.change.changed = relation->are_contacts;
    relation->are_contacts = false;
    return LEDGER_OK;
}

enum ledger_status dynamodb_contacts_remove(struct dynamodb_task *task)
{
    return dynamodb_relation_change(task, task->request->input.other, decide_remove);
}

/* Contacts and blocks between one user and many others. */
#include "base/id_list.h"
#include "ledger/dynamodb/chats/dynamodb_chats.h"

/* A user has few contacts and blocks as a rule, and one query finds them all. Beyond this many, or the number of the others, each of
 * the others is looked up. */
enum { RELATIONS_SCANNED_MIN = 100 };

/* Returns whether it saw all of the user's items with this prefix. */
static bool scan_relations(struct dynamodb_task *task, struct slice user, const char *prefix,
                           const struct id_list *others, bool *marks)
{
    uint32_t limit =
        others->count > RELATIONS_SCANNED_MIN ? (uint32_t)others->count : RELATIONS_SCANNED_MIN;
    struct dynamodb_query query = {.table = DYNAMODB_USERS,
                                   .partition = user,
                                   .prefix = prefix,
                                   .limit = limit,
                                   .attributes = "part_key"};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct slice other = slice_after(dynamodb_item_text(&item, "part_key"), strlen(prefix));
        const struct slice *found = id_list_sorted_find(others, other);
        if (found)
            marks[found - others->ids] = true;
    }
    return query.returned < limit;
}

static void look_up_relations(struct dynamodb_task *task, struct slice user, const char *prefix,
                              const struct id_list *others, bool *marks)
{
    struct dynamodb_key *keys = ledger_request_alloc(task->request, others->count * sizeof(*keys));
    struct dynamodb_item *items =
        ledger_request_alloc(task->request, others->count * sizeof(*items));
    if (!keys || !items)
        return;
    for (size_t i = 0; i < others->count; i++)
        keys[i] = (struct dynamodb_key){DYNAMODB_USERS, user,
                                        dynamodb_join(task, prefix, others->ids[i]), 0};
    dynamodb_get_many(task, keys, others->count, items);
    for (size_t i = 0; i < others->count; i++)
        marks[i] |= dynamodb_item_exists(&items[i]);
}

void dynamodb_relation_mark(struct dynamodb_task *task, struct slice user, const char *prefix,
                            const struct id_list *others, bool *marks)
{
    if (others->count > 0 && !scan_relations(task, user, prefix, others, marks))
        look_up_relations(task, user, prefix, others, marks);
}

/* Both kinds of items begin with "block". */
bool dynamodb_relation_any_block(struct dynamodb_task *task, struct slice user)
{
    struct dynamodb_query query = {
        .table = DYNAMODB_USERS, .partition = user, .prefix = "block", .limit = 1};
    struct dynamodb_item item;
    return dynamodb_query_next(task, &query, &item);
}

const bool *dynamodb_relation_blocks(struct dynamodb_task *task, struct slice user,
                                     const struct id_list *others)
{
    bool *marks = ledger_request_alloc(task->request, others->count + 1);
    if (!marks) {
        task->failed = true;
        return NULL;
    }
    memset(marks, 0, others->count + 1);
    dynamodb_relation_mark(task, user, "block#", others, marks);
    dynamodb_relation_mark(task, user, "blocked_by#", others, marks);
    return marks;
}

/* Blocks: which users a user has blocked. */
#include "ledger/dynamodb/dynamodb_operations.h"
#include "ledger/dynamodb/dynamodb_relation.h"

enum ledger_status dynamodb_blocks_decide(struct ledger_request *request,
                                          struct dynamodb_relation *relation)
{
    if (relation->user_blocks)
        return LEDGER_OK;
    request->outcome.block.changed = true;
    request->outcome.block.contact_removed = relation->are_contacts;
    relation->user_blocks = true;
    relation->are_contacts = false;
    if (relation->user_sent)
        relation->is_pending = relation->is_hidden = false;
    else
        relation->is_hidden = relation->is_pending;
    return LEDGER_OK;
}

enum ledger_status dynamodb_blocks_put(struct dynamodb_task *task)
{
    return dynamodb_relation_change(task, task->request->input.other, dynamodb_blocks_decide);
}

static enum ledger_status decide_unblock(struct ledger_request *request,
                                         struct dynamodb_relation *relation)
{
    request->outcome.change.changed = relation->user_blocks;
    relation->user_blocks = false;
    return LEDGER_OK;
}

enum ledger_status dynamodb_blocks_delete(struct dynamodb_task *task)
{
    return dynamodb_relation_change(task, task->request->input.other, decide_unblock);
}

enum ledger_status dynamodb_blocks_list(struct dynamodb_task *task)
{
    struct id_list ids = dynamodb_contacts_read_ids(task, task->request->input.user, "block#", 0);
    task->request->outcome.ids = (struct ledger_ids_outcome){.ids = ids.ids, .count = ids.count};
    return LEDGER_OK;
}

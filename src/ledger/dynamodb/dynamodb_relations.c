/* Changes of many relations in one request (ledger_relations.h): a transaction for each pair, one after the other. */
#include "ledger/dynamodb/dynamodb_operations.h"
#include "ledger/dynamodb/dynamodb_relation.h"

/* The decisions use outcome.block for the result of their pair. */

static enum ledger_status decide_contact(struct ledger_request *request,
                                         struct dynamodb_relation *relation)
{
    if (relation->user_blocks || relation->other_blocks)
        return LEDGER_FORBIDDEN;
    request->outcome.block.changed = !relation->are_contacts;
    if (!relation->are_contacts && !relation->is_pending)
        relation->request_id = SLICE("");
    relation->are_contacts = true;
    relation->is_pending = relation->is_hidden = false;
    return LEDGER_OK;
}

static enum ledger_status decide_contact_end(struct ledger_request *request,
                                             struct dynamodb_relation *relation)
{
    request->outcome.block.changed = relation->are_contacts;
    request->outcome.block.contact_removed = relation->are_contacts;
    relation->are_contacts = false;
    return LEDGER_OK;
}

static const dynamodb_relation_decision decisions[LEDGER_RELATION_CHANGES] = {
    [LEDGER_CONTACT_MAKE] = decide_contact,
    [LEDGER_CONTACT_END] = decide_contact_end,
    [LEDGER_BLOCK_MAKE] = dynamodb_blocks_decide,
};

enum ledger_status dynamodb_relations_change(struct dynamodb_task *task)
{
    struct ledger_request *request = task->request;
    const struct ledger_request_input *input = &request->input;
    size_t count = input->id_count / 2;
    struct ledger_relation_result *results =
        ledger_request_alloc(request, count * sizeof(*results));
    for (size_t i = 0; results && i < count && !task->failed; i++) {
        enum ledger_status status = dynamodb_relation_change_of(
            task, input->ids[2 * i], input->ids[2 * i + 1], decisions[input->relation]);
        bool is_done = status == LEDGER_OK;
        if (status == LEDGER_UNAVAILABLE)
            return status;
        results[i] =
            (struct ledger_relation_result){status, is_done && request->outcome.block.changed,
                                            is_done && request->outcome.block.contact_removed};
    }
    ledger_request_fail(request, LEDGER_OK); /* clears the outcome */
    request->outcome.relations =
        (struct ledger_relations_outcome){.results = results, .count = count};
    return LEDGER_OK;
}

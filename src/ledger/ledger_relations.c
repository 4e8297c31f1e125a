#include "ledger/ledger_request.h"

void ledger_relations_change(struct ledger_client *client, struct slice actor,
                             enum ledger_relation_change change, const struct slice *ids,
                             size_t pair_count, ledger_relations_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_RELATIONS_CHANGE, arg);
    request->done.relations = done;
    request->input.user = ledger_request_id(request, actor);
    request->input.relation = change;
    request->input.ids =
        ledger_request_ids(request, ids, 2 * pair_count, (size_t)2 * LEDGER_RELATIONS_MAX);
    request->input.id_count = 2 * pair_count;
    for (size_t i = 0; i < pair_count; i++)
        if (slice_equal(ids[2 * i], ids[2 * i + 1]))
            ledger_request_refuse(request, LEDGER_INVALID);
    ledger_request_submit(request);
}

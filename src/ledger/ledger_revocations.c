#include "ledger/ledger_request.h"

void ledger_revoke(struct ledger_client *client, struct slice user, ledger_revoke_done done,
                   void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_REVOKE, arg);
    request->done.revoke = done;
    request->input.user = ledger_request_id(request, user);
    ledger_request_submit(request);
}

void ledger_revocations_list(struct ledger_client *client, uint64_t after, uint32_t limit,
                             ledger_revocations_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_REVOCATIONS_LIST, arg);
    request->done.revocations = done;
    request->input.sequence = after;
    request->input.limit = ledger_request_limit(limit);
    ledger_request_submit(request);
}

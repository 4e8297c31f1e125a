#include "ledger/refusal.h"

#include <string.h>

/* Makes space before the first completion runs, because that may start operations. */
static size_t detach_refusals(struct ledger_client *client,
                              struct ledger_refusal detached[LEDGER_REFUSALS_MAX])
{
    size_t count = client->refusal_count;
    memcpy(detached, client->refusals, count * sizeof(*detached));
    client->refusal_count = 0;
    return count;
}

static void answer_refusals(struct ledger_client *client, const struct ledger_refusal *refusals,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!client->closed)
            ledger_count(&ledger_innermost(client->ledger)->metrics.answers[LEDGER_BUSY]);
        ledger_request_answer_status((enum ledger_operation)refusals[i].operation,
                                     (union ledger_request_completion){.any = refusals[i].done},
                                     refusals[i].arg, LEDGER_BUSY);
    }
}

void refusal_owe(const struct ledger_request *request)
{
    struct ledger_client *client = request->client;
    struct ledger_refusal detached[LEDGER_REFUSALS_MAX];
    size_t count =
        client->refusal_count == LEDGER_REFUSALS_MAX ? detach_refusals(client, detached) : 0;
    client->refusals[client->refusal_count++] = (struct ledger_refusal){
        .operation = (int)request->operation, .done = request->done.any, .arg = request->arg};
    answer_refusals(client, detached, count);
}

void refusal_answer_all(struct ledger_client *client)
{
    struct ledger_refusal detached[LEDGER_REFUSALS_MAX];
    answer_refusals(client, detached, detach_refusals(client, detached));
}

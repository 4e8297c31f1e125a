#include "ledger/refusal.h"

#include <string.h>

/* Room is made before the first completion runs: it may call again. */
static size_t detach_all(struct ledger_client *client,
                         struct ledger_refusal detached[LEDGER_REFUSALS_MAX])
{
    size_t count = client->refusal_count;
    memcpy(detached, client->refusals, count * sizeof(*detached));
    client->refusal_count = 0;
    return count;
}

static void answer(struct ledger_client *client, const struct ledger_refusal *refusals,
                   size_t count)
{
    struct ledger_metrics *metrics = &ledger_innermost(client->ledger)->metrics;
    for (size_t i = 0; i < count; i++) {
        ledger_count(&metrics->answers[LEDGER_BUSY]);
        ledger_request_answer_status((enum ledger_operation)refusals[i].operation,
                                     (union ledger_request_completion){.any = refusals[i].done},
                                     refusals[i].arg, LEDGER_BUSY);
    }
}

void refusal_owe(const struct ledger_request *request)
{
    struct ledger_client *client = request->client;
    struct ledger_refusal detached[LEDGER_REFUSALS_MAX];
    size_t count = client->refusal_count == LEDGER_REFUSALS_MAX ? detach_all(client, detached) : 0;
    client->refusals[client->refusal_count++] = (struct ledger_refusal){
        .operation = (int)request->operation, .done = request->done.any, .arg = request->arg};
    answer(client, detached, count);
}

void refusal_answer_all(struct ledger_client *client)
{
    struct ledger_refusal detached[LEDGER_REFUSALS_MAX];
    answer(client, detached, detach_all(client, detached));
}

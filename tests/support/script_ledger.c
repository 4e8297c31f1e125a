#include "support/script_ledger.h"

static void append_to_chain(struct ledger_request **chain, struct ledger_request *request)
{
    while (*chain)
        chain = &(*chain)->next;
    *chain = request;
}

static void answer_script_request(struct script_ledger *script, struct ledger_request *request)
{
    ledger_request_fail(request, script->status);
    if (script->answer && script->status == LEDGER_OK)
        script->answer(script->arg, request);
    ledger_request_finish(request);
}

static void script_ledger_submit(struct ledger *ledger, struct ledger_request *request)
{
    struct script_ledger *script = (struct script_ledger *)ledger;
    script->submitted[request->operation]++;
    request->next = NULL;
    if (script->holding)
        append_to_chain(&script->held, request);
    else
        answer_script_request(script, request);
}

static void script_ledger_close(struct ledger *ledger)
{
    (void)ledger;
}

static const struct ledger_backend SCRIPT = {.submit = script_ledger_submit,
                                             .close = script_ledger_close};

static void script_ledger_post(void *arg, struct ledger_request *done)
{
    append_to_chain(&((struct script_ledger *)arg)->posted, done);
}

void script_ledger_init(struct script_ledger *script)
{
    *script = (struct script_ledger){.ledger = {.backend = &SCRIPT}, .status = LEDGER_OK};
    script->clock = (struct clock){.now_ms = 1000, .wall_ms = 1800000000000};
    ledger_client_init(&script->client, &script->ledger, &script->clock, script_ledger_post,
                       script);
}

void script_ledger_turn(struct script_ledger *script)
{
    while (script->held) {
        struct ledger_request *request = script->held;
        script->held = request->next;
        request->next = NULL;
        answer_script_request(script, request);
    }
    while (script->posted) {
        struct ledger_request *posted = script->posted;
        script->posted = NULL;
        ledger_complete(posted);
    }
}

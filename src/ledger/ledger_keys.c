#include "ledger/ledger_request.h"

static struct ledger_request *make_key_request(struct ledger_client *client,
                                               enum ledger_operation operation, struct slice name,
                                               ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, operation, arg);
    request->done.change = done;
    request->input.id = ledger_request_id(request, name);
    return request;
}

void ledger_key_put(struct ledger_client *client, struct slice name, struct slice hash,
                    struct slice scope, ledger_change_done done, void *arg)
{
    struct ledger_request *request = make_key_request(client, LEDGER_KEY_PUT, name, done, arg);
    request->input.device = ledger_request_id(request, hash);
    request->input.other = ledger_request_id(request, scope);
    ledger_request_submit(request);
}

void ledger_key_delete(struct ledger_client *client, struct slice name, ledger_change_done done,
                       void *arg)
{
    ledger_request_submit(make_key_request(client, LEDGER_KEY_DELETE, name, done, arg));
}

void ledger_key_used(struct ledger_client *client, struct slice name, ledger_change_done done,
                     void *arg)
{
    ledger_request_submit(make_key_request(client, LEDGER_KEY_USED, name, done, arg));
}

void ledger_keys_list(struct ledger_client *client, ledger_keys_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_KEYS_LIST, arg);
    request->done.keys = done;
    request->input.limit = LEDGER_KEYS_MAX;
    ledger_request_submit(request);
}

#include "ledger/ledger_erasure.h"

#include "ledger/ledger_request.h"

void ledger_messages_erase(struct ledger_client *client, struct slice chat, struct slice user,
                           ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_MESSAGES_ERASE, arg);
    request->done.change = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_id(request, user);
    ledger_request_submit(request);
}

void ledger_user_forget(struct ledger_client *client, struct slice user, ledger_change_done done,
                        void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_USER_FORGET, arg);
    request->done.change = done;
    request->input.user = ledger_request_id(request, user);
    ledger_request_submit(request);
}

void ledger_former_chats_list(struct ledger_client *client, struct slice user, struct slice after,
                              uint32_t limit, ledger_ids_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_FORMER_CHATS_LIST, arg);
    request->done.ids = done;
    request->input.user = ledger_request_id(request, user);
    request->input.after = ledger_request_optional_id(request, after);
    request->input.limit = ledger_request_limit(limit);
    ledger_request_submit(request);
}

#include "ledger/ledger_request_inbox.h"

#include "base/container.h"

static void on_ledger_requests_posted(struct mail *mail, void *owner)
{
    struct ledger_request_inbox *inbox = owner;
    inbox->on_requests(inbox->arg, CONTAINER_OF(mail, struct ledger_request, mail));
}

static void on_ledger_inbox_woken(struct mail *mail, void *owner)
{
    struct ledger_request_inbox *inbox = owner;
    (void)mail;
    inbox->on_requests(inbox->arg, NULL);
}

bool ledger_request_inbox_init(struct ledger_request_inbox *inbox, struct loop *loop,
                               ledger_request_inbox_hook on_requests, void *arg)
{
    if (!mailbox_init(&inbox->mailbox, loop, MAILBOX_UNBOUNDED, inbox))
        return false;
    inbox->wake_mail.on_open = on_ledger_inbox_woken;
    inbox->on_requests = on_requests;
    inbox->arg = arg;
    return true;
}

void ledger_request_inbox_drain(struct ledger_request_inbox *inbox)
{
    mailbox_drain(&inbox->mailbox);
}

void ledger_request_inbox_free(struct ledger_request_inbox *inbox)
{
    mailbox_free(&inbox->mailbox);
}

void ledger_request_inbox_post(void *arg, struct ledger_request *chain)
{
    struct ledger_request_inbox *inbox = arg;
    chain->mail.on_open = on_ledger_requests_posted;
    mailbox_post(&inbox->mailbox, &chain->mail);
}

void ledger_request_inbox_wake(struct ledger_request_inbox *inbox)
{
    mailbox_post(&inbox->mailbox, &inbox->wake_mail);
}

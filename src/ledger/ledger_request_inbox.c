#include "ledger/ledger_request_inbox.h"

#include "base/container.h"

#include <sys/eventfd.h>
#include <unistd.h>

static void take_all(struct ledger_request_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    struct ledger_request *chain = inbox->first;
    inbox->first = NULL;
    inbox->end = &inbox->first;
    pthread_mutex_unlock(&inbox->lock);
    inbox->taken(inbox->arg, chain);
}

static void ready(struct loop_source *source, uint32_t events)
{
    uint64_t count;
    (void)events;
    if (read(source->fd, &count, sizeof(count)) > 0)
        take_all(CONTAINER_OF(source, struct ledger_request_inbox, source));
}

bool ledger_request_inbox_init(struct ledger_request_inbox *inbox, struct loop *loop,
                               void (*taken)(void *arg, struct ledger_request *chain), void *arg)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return false;
    *inbox = (struct ledger_request_inbox){
        .source = {.fd = fd, .ready = ready}, .loop = loop, .taken = taken, .arg = arg};
    inbox->end = &inbox->first;
    if (!loop_add_level(loop, &inbox->source)) {
        close(fd);
        return false;
    }
    pthread_mutex_init(&inbox->lock, NULL);
    return true;
}

void ledger_request_inbox_free(struct ledger_request_inbox *inbox)
{
    take_all(inbox);
    loop_remove(inbox->loop, &inbox->source);
    close(inbox->source.fd);
    pthread_mutex_destroy(&inbox->lock);
}

void ledger_request_inbox_wake(struct ledger_request_inbox *inbox)
{
    uint64_t one = 1;
    if (write(inbox->source.fd, &one, sizeof(one)) < 0)
        return; /* a counter that is full wakes the loop all the same */
}

void ledger_request_inbox_post(void *arg, struct ledger_request *chain)
{
    struct ledger_request_inbox *inbox = arg;
    pthread_mutex_lock(&inbox->lock);
    bool was_empty = inbox->first == NULL;
    *inbox->end = chain;
    while (*inbox->end)
        inbox->end = &(*inbox->end)->next;
    pthread_mutex_unlock(&inbox->lock);
    if (was_empty)
        ledger_request_inbox_wake(inbox);
}

#include "ledger_inbox.h"

#include "base/container.h"
#include "ledger/request.h"

#include <sys/eventfd.h>
#include <unistd.h>

static void complete_all(struct ledger_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    struct ledger_request *done = inbox->done;
    inbox->done = NULL;
    pthread_mutex_unlock(&inbox->lock);
    if (done)
        ledger_complete(done);
}

static void ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    uint64_t count;
    if (read(source->fd, &count, sizeof(count)) > 0)
        complete_all(CONTAINER_OF(source, struct ledger_inbox, source));
}

bool ledger_inbox_init(struct ledger_inbox *inbox, struct loop *loop)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return false;
    *inbox = (struct ledger_inbox){.source = {.fd = fd, .ready = ready}, .loop = loop};
    pthread_mutex_init(&inbox->lock, NULL);
    if (loop_add_level(loop, &inbox->source))
        return true;
    close(fd);
    return false;
}

void ledger_inbox_free(struct ledger_inbox *inbox)
{
    complete_all(inbox);
    loop_remove(inbox->loop, &inbox->source);
    close(inbox->source.fd);
    pthread_mutex_destroy(&inbox->lock);
}

void ledger_inbox_post(void *arg, struct ledger_request *done)
{
    struct ledger_inbox *inbox = arg;
    pthread_mutex_lock(&inbox->lock);
    struct ledger_request **end = &inbox->done;
    bool was_empty = *end == NULL;
    while (*end)
        end = &(*end)->next;
    *end = done;
    pthread_mutex_unlock(&inbox->lock);
    uint64_t one = 1;
    if (was_empty && write(inbox->source.fd, &one, sizeof(one)) < 0)
        return; /* a counter that is full wakes the loop all the same */
}

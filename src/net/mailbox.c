#include "net/mailbox.h"

#include "base/container.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Takes everything posted. What was taken before has been opened, or the bound would be none. */
static void splice_posted(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->opened = mailbox->posted;
    mailbox->posted = NULL;
    mailbox->posted_end = &mailbox->posted;
    mailbox->count = 0;
    mailbox->awake = false;
    pthread_mutex_unlock(&mailbox->lock);
}

static void open_some(struct mailbox *mailbox)
{
    for (unsigned opened = 0; mailbox->opened && opened < MAILBOX_OPENED_PER_TURN; opened++) {
        struct mail *mail = mailbox->opened;
        mailbox->opened = mail->next;
        mail->open(mail, mailbox->owner);
    }
    if (mailbox->opened)
        loop_defer(mailbox->loop, &mailbox->more);
}

static void wake(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct mailbox *mailbox = CONTAINER_OF(source, struct mailbox, source);
    uint64_t count;
    if (mailbox->opened) /* the descriptor stays ready, so this comes again */
        return;
    if (read(source->fd, &count, sizeof(count)) < 0)
        return;
    splice_posted(mailbox);
    open_some(mailbox);
}

static void go_on(struct loop_task *task)
{
    open_some(CONTAINER_OF(task, struct mailbox, more));
}

bool mailbox_init(struct mailbox *mailbox, struct loop *loop, void *owner)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return false;
    *mailbox = (struct mailbox){
        .source = {.fd = fd, .ready = wake},
        .more = {.run = go_on},
        .loop = loop,
        .owner = owner,
    };
    mailbox->posted_end = &mailbox->posted;
    pthread_mutex_init(&mailbox->lock, NULL);
    if (loop_add_level(loop, &mailbox->source))
        return true;
    close(fd);
    return false;
}

void mailbox_free(struct mailbox *mailbox)
{
    while (mailbox->opened)
        open_some(mailbox);
    splice_posted(mailbox);
    while (mailbox->opened)
        open_some(mailbox);
    loop_remove(mailbox->loop, &mailbox->source);
    close(mailbox->source.fd);
    pthread_mutex_destroy(&mailbox->lock);
}

bool mailbox_post(struct mailbox *mailbox, struct mail *mail)
{
    mail->next = NULL;
    pthread_mutex_lock(&mailbox->lock);
    bool room = mailbox->count < MAILBOX_MAIL_MAX;
    bool wake_up = room && !mailbox->awake;
    if (room) {
        *mailbox->posted_end = mail;
        mailbox->posted_end = &mail->next;
        mailbox->count++;
        mailbox->awake = true;
    }
    pthread_mutex_unlock(&mailbox->lock);
    if (wake_up) {
        uint64_t one = 1;
        ssize_t written = write(mailbox->source.fd, &one, sizeof(one));
        (void)written; /* a counter that is full already wakes the loop */
    }
    return room;
}

bool mailbox_is_empty(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool empty = !mailbox->posted && !mailbox->opened;
    pthread_mutex_unlock(&mailbox->lock);
    return empty;
}

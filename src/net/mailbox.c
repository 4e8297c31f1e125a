#include "net/mailbox.h"

#include "base/container.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Takes out all posted mail. The last batch must have been opened, otherwise `mail_max` would bound nothing. */
static void mailbox_take_batch(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->opened = mailbox->posted;
    mailbox->posted = NULL;
    mailbox->posted_end = &mailbox->posted;
    mailbox->count = 0;
    mailbox->awake = false;
    pthread_mutex_unlock(&mailbox->lock);
}

static void mailbox_open_some(struct mailbox *mailbox)
{
    for (unsigned opened = 0; mailbox->opened && opened < MAILBOX_OPENED_PER_TURN; opened++) {
        struct mail *mail = mailbox->opened;
        mailbox->opened = mail->next;
        mail->on_open(mail, mailbox->owner);
    }
    if (mailbox->opened)
        loop_defer(mailbox->loop, &mailbox->more);
}

static void on_mailbox_woken(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct mailbox *mailbox = CONTAINER_OF(source, struct mailbox, source);
    uint64_t count;
    if (mailbox->opened) /* the eventfd stays readable, so this runs again */
        return;
    if (read(source->fd, &count, sizeof(count)) < 0)
        return;
    mailbox_take_batch(mailbox);
    mailbox_open_some(mailbox);
}

static void run_mailbox_more(struct loop_task *task)
{
    mailbox_open_some(CONTAINER_OF(task, struct mailbox, more));
}

bool mailbox_init(struct mailbox *mailbox, struct loop *loop, unsigned mail_max, void *owner)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return false;
    *mailbox = (struct mailbox){
        .source = {.fd = fd, .on_ready = on_mailbox_woken},
        .more = {.run = run_mailbox_more},
        .loop = loop,
        .owner = owner,
        .mail_max = mail_max,
    };
    mailbox->posted_end = &mailbox->posted;
    pthread_mutex_init(&mailbox->lock, NULL);
    if (loop_add_level(loop, &mailbox->source))
        return true;
    close(fd);
    return false;
}

void mailbox_drain(struct mailbox *mailbox)
{
    while (!mailbox_is_empty(mailbox)) {
        if (!mailbox->opened)
            mailbox_take_batch(mailbox);
        mailbox_open_some(mailbox);
    }
}

void mailbox_free(struct mailbox *mailbox)
{
    mailbox_drain(mailbox);
    loop_remove(mailbox->loop, &mailbox->source);
    close(mailbox->source.fd);
    pthread_mutex_destroy(&mailbox->lock);
}

bool mailbox_post(struct mailbox *mailbox, struct mail *mail)
{
    mail->next = NULL;
    pthread_mutex_lock(&mailbox->lock);
    bool accepted = mailbox->count < mailbox->mail_max;
    bool wake_up = accepted && !mailbox->awake;
    if (accepted) {
        *mailbox->posted_end = mail;
        mailbox->posted_end = &mail->next;
        mailbox->count++;
        mailbox->awake = true;
    }
    pthread_mutex_unlock(&mailbox->lock);
    if (wake_up) {
        uint64_t one = 1;
        ssize_t written = write(mailbox->source.fd, &one, sizeof(one));
        (void)written; /* fails only when the counter is full, which wakes the loop too */
    }
    return accepted;
}

bool mailbox_is_empty(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool empty = !mailbox->posted && !mailbox->opened;
    pthread_mutex_unlock(&mailbox->lock);
    return empty;
}

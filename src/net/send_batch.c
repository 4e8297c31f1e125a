#include "net/send_batch.h"

#include "log/log.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    NATIVE_MIN = 4, /* fewer sends are cheaper one by one */
    SEND_FLAGS = MSG_NOSIGNAL | MSG_DONTWAIT,
};

struct send_batch {
    struct io_uring ring;
    bool native;
};

struct send_batch *send_batch_make(void)
{
    struct send_batch *batch = calloc(1, sizeof(*batch));
    if (batch) /* SUBMIT_ALL: one send that fails to start must not hold up the others */
        batch->native =
            io_uring_queue_init(SEND_BATCH_MAX, &batch->ring,
                                IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN) == 0;
    return batch;
}

static void close_native_batch(struct send_batch *batch)
{
    if (batch->native)
        io_uring_queue_exit(&batch->ring);
    batch->native = false;
}

void send_batch_free(struct send_batch **batch)
{
    if (*batch)
        close_native_batch(*batch);
    free(*batch);
    *batch = NULL;
}

bool send_batch_is_native(const struct send_batch *batch)
{
    return batch->native;
}

/* Returns how many, from the first on, the kernel has sent or refused. */
static size_t run_native_batch(struct send_batch *batch, struct send *sends, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct io_uring_sqe *entry = io_uring_get_sqe(&batch->ring);
        assert(entry); /* the ring has SEND_BATCH_MAX entries, and is empty between runs */
        io_uring_prep_send(entry, sends[i].fd, sends[i].data, sends[i].len, SEND_FLAGS);
        io_uring_sqe_set_data(entry, &sends[i]);
    }
    int submitted;
    do
        submitted = io_uring_submit(&batch->ring);
    while (submitted == -EINTR);
    size_t taken = submitted < 0 ? 0 : (size_t)submitted;
    for (unsigned ended = 0; ended < taken;) {
        struct io_uring_cqe *entry;
        unsigned head, found = 0;
        while (io_uring_wait_cqe(&batch->ring, &entry) == -EINTR) /* no send waits: it is there */
            ;
        io_uring_for_each_cqe(&batch->ring, head, entry)
        {
            ((struct send *)io_uring_cqe_get_data(entry))->result = entry->res;
            found++;
        }
        assert(found);
        io_uring_cq_advance(&batch->ring, found);
        ended += found;
    }
    return taken;
}

void send_batch_run(struct send_batch *batch, struct send *sends, size_t count)
{
    assert(count <= SEND_BATCH_MAX);
    size_t done = 0;
    if (batch->native && count >= NATIVE_MIN) {
        done = run_native_batch(batch, sends, count);
        if (done < count) {
            /* the kernel is out of memory; sends it did not take must not go out later */
            log_warn("io_uring_given_up", "sends=one_by_one");
            close_native_batch(batch);
        }
    }
    for (size_t i = done; i < count; i++) {
        ssize_t sent = send(sends[i].fd, sends[i].data, sends[i].len, SEND_FLAGS);
        sends[i].result = sent < 0 ? -errno : sent;
    }
}

/*
 * A send batch gives the sends of many sockets to the kernel in one system call, where the kernel offers
 * that (io_uring): what a change costs that goes to thousands of subscribers is mostly the calls that
 * send it. Where it does not, or for a few, each send is a call of its own; nobody notices but the
 * processor.
 *
 * No send waits: the sockets do not block, so all have come to their end when send_batch_run() returns,
 * and the bytes belong to the caller again. One thread at a time.
 */
#ifndef ROLLCALL_NET_SEND_BATCH_H
#define ROLLCALL_NET_SEND_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SEND_BATCH_MAX = 256 };

struct send_batch;

struct send {
    int fd;
    const char *data;
    size_t len;
    ssize_t went; /* set by the run: bytes, or an errno below 0 */
};

/* NULL: no memory. Without a kernel that offers batches it is made too. */
struct send_batch *send_batch_make(void);
void send_batch_free(struct send_batch **batch);

/* Whether the kernel takes batches. */
bool send_batch_is_native(const struct send_batch *batch);

/* At most SEND_BATCH_MAX, of different sockets: the order among them is not kept. */
void send_batch_run(struct send_batch *batch, struct send *sends, size_t count);

#endif

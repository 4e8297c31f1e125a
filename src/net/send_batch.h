/*
 * A send batch gives the sends of many sockets to the kernel in one system call, where the kernel offers
 * that (io_uring): when a change goes to thousands of subscribers, most of its cost is the system calls that
 * send it. Without io_uring, or for a few sends, each send is a system call of its own, with the same result.
 *
 * No send waits: the sockets do not block, so all sends have ended when send_batch_run() returns, and the
 * bytes belong to the caller again. One thread at a time.
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
    ssize_t result; /* set by the run: bytes sent, or a negative errno */
};

/* Returns NULL when out of memory; succeeds also where the kernel has no io_uring. */
struct send_batch *send_batch_make(void);
void send_batch_free(struct send_batch **batch);

/* Whether the kernel takes batches (io_uring). */
bool send_batch_is_native(const struct send_batch *batch);

/* At most SEND_BATCH_MAX sends, each on a socket of its own, since their order is not kept. */
void send_batch_run(struct send_batch *batch, struct send *sends, size_t count);

#endif

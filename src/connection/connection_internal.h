/*
 * Shared by the files of a connection: connection.c (life, time, input), connection_send.c (output),
 * connection_end.c (closing). No other file includes this.
 */
#ifndef ROLLCALL_CONNECTION_CONNECTION_INTERNAL_H
#define ROLLCALL_CONNECTION_CONNECTION_INTERNAL_H

#include "connection/connection.h"

static inline int64_t connection_now_ms(const struct connection *connection)
{
    return connection->context->loop->clock.now_ms;
}

/* Counts what the queue has grown or shrunk since it held `before` bytes. */
static inline void connection_count_queue(struct connection *connection, uint32_t before)
{
    uint32_t after = outbound_held(&connection->outbound);
    if (after != before)
        memory_account_add(&connection->context->memory, MEMORY_QUEUES,
                           (int64_t)after - (int64_t)before);
}

/* The only function that changes the state. */
void connection_set_state(struct connection *connection, enum connection_state state);

/* These use the queue's reserve, like connection_send_frame(). A NULL blob is refused. They return false when
 * nothing was queued. */
bool connection_push(struct connection *connection, struct blob *blob, uint64_t key);
bool connection_push_message(struct connection *connection, const struct message *message);

/* Acts on the level of the queue; the only place that interprets levels. */
void connection_check_level(struct connection *connection);

/* Reads a throttled client again. */
void connection_unthrottle(struct connection *connection);

/* Queues a close frame and leaves OPEN. */
void connection_start_ending(struct connection *connection, unsigned code, struct slice reason);

/* Closes the stream or transport; GONE follows in a later task. */
void connection_hang_up(struct connection *connection);

/* While ENDING with an empty queue: queues the close frame that is still owed, or closes the socket. */
void connection_finish_ending(struct connection *connection);

/* Makes a close frame for use when out of memory. Returns NULL when out of memory already. */
struct blob *connection_make_spare_close(void);

#endif

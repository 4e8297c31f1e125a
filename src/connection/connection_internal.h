/*
 * What the rooms of a connection share: connection.c (life, time, what comes in), connection_send.c (what
 * goes out), connection_end.c (how it ends). Nobody else includes this.
 */
#ifndef ROLLCALL_CONNECTION_CONNECTION_INTERNAL_H
#define ROLLCALL_CONNECTION_CONNECTION_INTERNAL_H

#include "connection/connection.h"

static inline int64_t connection_now_ms(const struct connection *connection)
{
    return connection->context->loop->clock.now_ms;
}

/* The one door for changes of state. */
void connection_set_state(struct connection *connection, enum connection_state state);

/* These use the queue's reserve, for last words and control frames; NULL blobs are refused. False: not
 * queued. */
bool connection_push(struct connection *connection, struct blob *blob, uint64_t key);
bool connection_push_message(struct connection *connection, const struct message *message);
bool connection_push_control(struct connection *connection, enum websocket_opcode opcode,
                             struct slice payload, uint64_t key);

/* What a level of the queue means is decided here and nowhere else. */
void connection_check_level(struct connection *connection);

/* Queues a close frame and leaves OPEN. */
void connection_start_ending(struct connection *connection, unsigned code, struct slice reason);

/* Lets go of what carries it; GONE follows in a later task. */
void connection_hang_up(struct connection *connection);

/* What is left to do when all is sent. */
void connection_finish_ending(struct connection *connection);

/* A close frame for when there is no memory for anything else; NULL when there is none even for that. */
struct blob *connection_make_spare_close(void);

#endif

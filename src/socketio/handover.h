/*
 * Moving an HTTP connection to the worker that its request is for, in this process or another.
 *
 * The kernel spreads connections over all processes and workers that share a port, while an Engine.IO session lives
 * on one worker of one process. Its id names both (engine.h). A request that reaches another worker is moved there
 * before its body is read, and its connection stays there: the next request on it is most likely for the same
 * Engine.IO session.
 *
 *   head read ──handover_give()──► mailbox of the other worker ──► http_connection_move_in()
 *                  │                 with socket, TLS state and the bytes read so far
 *                  └──► descriptor passing to the other process ──► http_connection_accept_moved()
 *                         with socket and bytes; TLS state cannot leave its process
 *
 * A board lists the workers of a process. It is filled while they are made; once they run, only `left` changes, under
 * the lock of its place. Other processes are not listed: the name of a worker's descriptor passing follows from its
 * place (net/fd_passing.h), and when nobody uses that name any more, the Engine.IO session has ended with its
 * process.
 *
 * Mailboxes and descriptor passing bound the work. A connection that cannot be moved stays, its request is refused
 * like any with an unknown sid, and the client opens a new Engine.IO session. During a drain a worker gives and takes
 * connections until its last client has gone or its time is up. Then it leaves (handover_leave()): its loop is about
 * to stop, and a connection in its mailbox would stay there.
 */
#ifndef ROLLCALL_SOCKETIO_HANDOVER_H
#define ROLLCALL_SOCKETIO_HANDOVER_H

#include "http/http_connection.h"
#include "net/fd_passing.h"
#include "net/mailbox.h"
#include "socketio/socketio_context.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct handover_place {
    struct socketio_context *context;
    struct mailbox *mailbox;
    pthread_mutex_t lock;
    bool left; /* nothing is posted to the mailbox any more; under the lock */
};

struct handover_board {
    uint32_t process; /* as in the ids of Engine.IO sessions */
    size_t count;
    struct handover_place places[];
};

/* Returns NULL when out of memory. */
struct handover_board *handover_board_make(size_t workers, uint32_t process);
void handover_board_free(struct handover_board **board);

/* Enters a worker into the board and sets its place. Before any worker runs. */
void handover_board_put(struct handover_board *board, size_t worker,
                        struct socketio_context *context, struct mailbox *mailbox);

/* Opens the descriptor passing by which other processes move connections to this worker; the caller closes it.
 * Returns false, with errno, when they cannot; everything else works. */
bool handover_open(struct fd_passing *passing, struct socketio_context *context);

/* From now on no connection is moved to this worker; those moved before are in its mailbox. */
void handover_leave(struct socketio_context *context);

/* Returns whether all workers of the process have left. */
bool handover_all_left(const struct socketio_context *context);

/* Moves the connection of a request whose head was just read, if it is for another worker. Returns true when it
 * has moved; the HTTP connection is gone then. */
bool handover_give(struct http_connection *connection);

#endif

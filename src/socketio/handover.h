/*
 * Handing an HTTP connection over to the worker its request is for, of this process or of another.
 *
 * The kernel spreads connections over all who share a port as it likes, while an Engine.IO session lives on
 * one worker of one process. Its id names both (socketio/engine.h); a request that reaches another is
 * moved before its body is read, and stays: the next request on that connection is most likely for the
 * same session.
 *
 *   start_exchange() ──handover_give()──► mailbox of the other worker ──► http_session_move_in()
 *                         │                 with socket, TLS session and the bytes read so far
 *                         └──► passage of the other process's worker ──► http_session_accept_moved()
 *                                with socket and bytes; a TLS session cannot leave its process
 *
 * A board lists the workers of a process. It is filled while they are made; once they run, only `left` changes, under
 * the lock of its place. Other processes are listed nowhere: the passage of a worker is called by its place
 * (net/fd_passing.h), and where nobody has that name any more the session has gone with its process.
 *
 * Bounded by mailbox and passage. What cannot be handed over stays and is refused like any request with an
 * unknown session, and a client then opens a new one. A drain changes nothing as long as there are sessions: a worker
 * gives and takes until its last has gone, or its time is up. Then it leaves (handover_leave()): its loop is
 * about to turn no more, and what was put into its mailbox would stay there.
 */
#ifndef ROLLCALL_SOCKETIO_HANDOVER_H
#define ROLLCALL_SOCKETIO_HANDOVER_H

#include "http/http_session.h"
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
    bool left; /* nothing goes into the mailbox any more; under the lock */
};

struct handover_board {
    uint32_t process; /* its name in session ids */
    size_t count;
    struct handover_place places[];
};

/* NULL when memory is short. */
struct handover_board *handover_board_make(size_t workers, uint32_t process);
void handover_board_free(struct handover_board **board);

/* Says where a worker is, and to it where the others are. Before any of them runs. */
void handover_board_put(struct handover_board *board, size_t worker,
                        struct socketio_context *context, struct mailbox *mailbox);

/* Opens a worker's passage, by which other processes bring what is for it; the caller closes it. False,
 * with errno: they cannot, all else works. */
bool handover_open(struct fd_passing *passage, struct socketio_context *context);

/* Nothing is handed over to this worker from now on; what was before is in its mailbox. */
void handover_leave(struct socketio_context *context);

/* Moves the connection of a request whose head was just read, if it is for another worker. True: it has
 * gone, the session with it. */
bool handover_give(struct http_session *session);

#endif

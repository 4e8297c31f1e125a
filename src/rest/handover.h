/*
 * Handing an HTTP connection over to the worker its request is for.
 *
 * The kernel spreads connections over workers as it likes, while an Engine.IO session lives on one. Its
 * id names the worker (connection/engine.h); a request that reaches another is moved there with its
 * socket, its TLS session and the bytes read so far, before its body is read, and stays: the next request
 * on that connection is most likely for the same session.
 *
 *   start_exchange() ──handover_give()──► mailbox of the other worker ──► http_session_unpack()
 *
 * A board lists the workers of a process. It is filled while they are made and only read once they run,
 * so it needs no lock. Bounded by the mailbox; when that is full the request stays and is refused like
 * any with an unknown session.
 */
#ifndef ROLLCALL_REST_HANDOVER_H
#define ROLLCALL_REST_HANDOVER_H

#include "rest/http_session.h"
#include "socket/mailbox.h"

#include <stdbool.h>
#include <stddef.h>

struct handover_place {
    struct rest_context *rest;
    struct mailbox *mailbox;
};

struct handover_board {
    size_t count;
    struct handover_place places[];
};

/* NULL when memory is short. */
struct handover_board *handover_board_make(size_t workers);
void handover_board_free(struct handover_board **board);

/* Says where a worker is, and to it where the others are. Before any of them runs. */
void handover_board_put(struct handover_board *board, size_t worker, struct rest_context *rest,
                        struct mailbox *mailbox);

/* Moves the connection of a request whose head was just read, if it is for another worker. True: it has
 * gone, the session with it. */
bool handover_give(struct http_session *session);

#endif

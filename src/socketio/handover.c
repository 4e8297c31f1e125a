#include "socketio/handover.h"

#include "base/container.h"
#include "socketio/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct handover_mail {
    struct mail mail;
    struct socketio_context *to;
    struct http_moved_connection moved;
};

struct handover_board *handover_board_make(size_t workers, uint32_t process)
{
    struct handover_board *board =
        calloc(1, sizeof(*board) + workers * sizeof(struct handover_place));
    if (board) {
        board->process = process;
        board->count = workers;
        for (size_t i = 0; i < workers; i++)
            pthread_mutex_init(&board->places[i].lock, NULL);
    }
    return board;
}

void handover_board_free(struct handover_board **board)
{
    for (size_t i = 0; *board && i < (*board)->count; i++)
        pthread_mutex_destroy(&(*board)->places[i].lock);
    free(*board);
    *board = NULL;
}

void handover_board_put(struct handover_board *board, size_t worker,
                        struct socketio_context *context, struct mailbox *mailbox)
{
    board->places[worker].context = context;
    board->places[worker].mailbox = mailbox;
    context->board = board;
    context->place = (struct engine_place){board->process, (uint16_t)worker};
}

/* ---- another worker ---- */

static void on_handover_mail(struct mail *mail, void *owner)
{
    (void)owner;
    struct handover_mail *opened = CONTAINER_OF(mail, struct handover_mail, mail);
    http_connection_move_in(&opened->to->api->listener, &opened->moved);
    free(opened);
}

void handover_leave(struct socketio_context *context)
{
    if (!context->board)
        return;
    struct handover_place *place = &context->board->places[context->place.worker];
    pthread_mutex_lock(&place->lock);
    place->left = true;
    pthread_mutex_unlock(&place->lock);
}

bool handover_all_left(const struct socketio_context *context)
{
    bool all_left = true;
    for (size_t i = 0; context->board && i < context->board->count; i++) {
        struct handover_place *place = &context->board->places[i];
        pthread_mutex_lock(&place->lock);
        all_left &= place->left;
        pthread_mutex_unlock(&place->lock);
    }
    return all_left;
}

static bool handover_give_to_worker(struct http_connection *connection, size_t worker)
{
    struct socketio_context *here = socketio_context_of(connection->exchange);
    struct handover_board *board = here->board;
    struct handover_mail *mail = worker < board->count ? malloc(sizeof(*mail)) : NULL;
    if (!mail)
        return false;
    struct handover_place *place = &board->places[worker];
    *mail = (struct handover_mail){.mail.on_open = on_handover_mail, .to = place->context};
    if (!http_connection_move_out(connection, &mail->moved)) {
        free(mail);
        return false;
    }
    pthread_mutex_lock(&place->lock);
    bool posted = !place->left && mailbox_post(place->mailbox, &mail->mail);
    pthread_mutex_unlock(&place->lock);
    if (!posted) {
        mail->to = here; /* it comes back, and its request is refused */
        on_handover_mail(&mail->mail, NULL);
    }
    return true;
}

/* ---- another process ---- */

static struct slice handover_name(char out[FD_PASSING_NAME_BYTES_MAX],
                                  const struct engine_place *place)
{
    int len = snprintf(out, FD_PASSING_NAME_BYTES_MAX, "rollcall-%08" PRIx32 "-%u", place->process,
                       place->worker);
    return (struct slice){out, (size_t)len};
}

static void on_connection_passed(void *arg, int fd, struct slice bytes)
{
    struct socketio_context *context = arg;
    http_connection_accept_moved(&context->api->listener, fd, bytes);
}

bool handover_open(struct fd_passing *passing, struct socketio_context *context)
{
    char name[FD_PASSING_NAME_BYTES_MAX];
    return fd_passing_open(passing, context->sessions->loop, handover_name(name, &context->place),
                           on_connection_passed, context);
}

/* The other process reads the head again, as if it had accepted the connection. */
static bool handover_give_to_process(struct http_connection *connection,
                                     const struct engine_place *place)
{
    char name[FD_PASSING_NAME_BYTES_MAX];
    struct buffer bytes = BUFFER_BOUNDED(FD_PASSING_BYTES_MAX);
    if (connection->stream.tls || connection->stream.closing || connection->stream.failed)
        return false;
    buffer_append_slice(&bytes, buffer_slice(&connection->exchange->head_bytes));
    buffer_append_slice(&bytes, buffer_slice(&connection->in));
    bool given =
        !bytes.failed && fd_passing_send(handover_name(name, place), connection->stream.source.fd,
                                         buffer_slice(&bytes));
    buffer_free(&bytes);
    int fd;
    struct tls_connection *tls;
    /* Our descriptor is closed without shutting the connection down. It is detached first, since close() does
     * not remove a descriptor from epoll that another process has too. */
    if (given && stream_detach(&connection->stream, &fd, &tls))
        close(fd);
    return given;
}

bool handover_give(struct http_connection *connection)
{
    const struct exchange *exchange = connection->exchange;
    const struct socketio_context *context = socketio_context_of(exchange);
    struct slice sid = http1_query_find(exchange->head.target.query, SLICE("sid"));
    struct engine_place place;
    if (!context->board || !sid.len || !slice_is(exchange->head.target.path, "/socket.io/") ||
        !engine_sid_place(sid, &place))
        return false;
    bool same_process = place.process == context->place.process;
    if (same_process && place.worker == context->place.worker)
        return false;
    bool given = same_process ? handover_give_to_worker(connection, place.worker)
                              : handover_give_to_process(connection, &place);
    if (given)
        metrics_count(context->sessions->metrics, METRIC_HTTP_HANDOVERS);
    return given;
}

#include "rest/handover.h"

#include "base/container.h"
#include "connection/engine.h"

#include <stdlib.h>
#include <unistd.h>

struct handover_mail {
    struct mail mail;
    struct rest_context *to;
    struct http_parcel parcel;
};

struct handover_board *handover_board_make(size_t workers)
{
    struct handover_board *board =
        calloc(1, sizeof(*board) + workers * sizeof(struct handover_place));
    if (board)
        board->count = workers;
    return board;
}

void handover_board_free(struct handover_board **board)
{
    free(*board);
    *board = NULL;
}

void handover_board_put(struct handover_board *board, size_t worker, struct rest_context *rest,
                        struct mailbox *mailbox)
{
    board->places[worker] = (struct handover_place){rest, mailbox};
    rest->board = board;
    rest->worker = worker;
}

/* The other worker a request is for; NULL: it is for this one, or for any. */
static const struct handover_place *place_of(const struct exchange *exchange)
{
    const struct handover_board *board = exchange->context->board;
    struct slice sid = http1_query_find(exchange->head.target.query, SLICE("sid"));
    size_t worker;
    if (!board || !sid.len || !slice_is(exchange->head.target.path, "/socket.io/") ||
        !engine_sid_worker(sid, &worker) || worker >= board->count ||
        worker == exchange->context->worker)
        return NULL;
    return &board->places[worker];
}

static void open_mail(struct mail *mail, void *owner)
{
    (void)owner;
    struct handover_mail *taken = CONTAINER_OF(mail, struct handover_mail, mail);
    http_session_unpack(taken->to, &taken->parcel);
    free(taken);
}

bool handover_give(struct http_session *session)
{
    const struct handover_place *place = place_of(session->exchange);
    if (!place || session->context->handlers->draining)
        return false;
    struct handover_mail *mail = malloc(sizeof(*mail));
    if (!mail)
        return false;
    *mail = (struct handover_mail){.mail.open = open_mail, .to = place->rest};
    if (!http_session_pack(session, &mail->parcel)) {
        free(mail);
        return false;
    }
    metrics_count(session->context->handlers->metrics, METRIC_HTTP_HANDOVERS);
    if (!mailbox_post(place->mailbox, &mail->mail)) {
        mail->to = session->context; /* back again, to be refused */
        open_mail(&mail->mail, NULL);
    }
    return true;
}

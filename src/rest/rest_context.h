/* What the HTTP side of one worker works with. Made by gateway.c. */
#ifndef ROLLCALL_REST_REST_CONTEXT_H
#define ROLLCALL_REST_REST_CONTEXT_H

#include "auth/jwt_sign.h"
#include "base/list.h"
#include "connection/engine.h"
#include "handler/context.h"
#include "metrics/exposition.h"
#include "rest/sender_rates.h"
#include "socket/stream.h"
#include "socket/tls.h"

struct handover_board;
struct polling_set;

struct rest_context {
    struct handler_context *handlers;
    struct stream_set *streams;
    struct tls_context *tls; /* NULL: plain; replaced on SIGHUP */
    struct exposition *exposition;
    void (*sample)(
        void *arg); /* before metrics are shown: brings this worker's up to date; may be NULL */
    void *sample_arg;
    const struct jwt_signer *dev_signer; /* NULL: no /dev/token */
    void (*drain)(void *arg);            /* starts the drain of the whole process */
    void *drain_arg;
    struct list https;  /* HTTP connections open */
    struct list echoes; /* connections to /v1/echo, which no route leads to */
    size_t http_count;
    size_t connections_max; /* of this worker, all kinds */
    struct sender_rates sender_rates;
    const struct handover_board *board; /* the workers of the process; NULL: this one alone */
    struct engine_place place;          /* which of them this is */
    struct polling_set *polling;        /* Engine.IO sessions without a WebSocket */
    bool shedding;                      /* memory is short: nobody new */
};

/* A connection was accepted: takes the descriptor. */
void http_session_accept(struct rest_context *context, int fd);

/* From now on each answer is the last of its connection. */
void http_session_drain(struct rest_context *context);

/* Closes those that wait for a request, and have not begun to send one. */
void http_session_close_idle(struct rest_context *context);

/* Closes all of them at once. */
void http_session_close_all(struct rest_context *context);

#endif

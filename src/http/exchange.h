/*
 * An exchange is one HTTP request and the one answer it gets.
 *
 *   head read ──► route found ──► token verified, if the route needs one ──► body read ──► handler
 *   handler ──now or later──► exchange_reply…() exactly once, which ends the exchange
 *
 * A route that `streams_body` has its handler called before the body is read: exchange_stream_body() makes the body come in
 * pieces, and exchange_pause_body() stops it for a while. An answer of unknown length is written in pieces too: exchange_begin_answer(),
 * exchange_write(), exchange_end_answer().
 *
 * A handler may keep the exchange while it waits for something. When the client closes the connection meanwhile,
 * the exchange stays until it is answered, and the answer is dropped. Head, body and parameters live as long as
 * the exchange.
 */
#ifndef ROLLCALL_HTTP_EXCHANGE_H
#define ROLLCALL_HTTP_EXCHANGE_H

#include "auth/identity.h"
#include "base/buffer.h"
#include "protocol/http1/http1.h"
#include "protocol/http1/http1_body.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>

enum { EXCHANGE_PARAMETERS_MAX = 2, EXCHANGE_PARAMETER_BYTES_MAX = 512 };

struct http_listener;
struct http_route;
struct http_connection;

typedef void (*exchange_gone_hook)(void *arg);
typedef void (*exchange_ended_hook)(void *arg, bool answered);
typedef void (*exchange_sent_hook)(void *arg);

/* Takes a body as it arrives. It may answer at any time, which ends the exchange. */
struct exchange_body_sink {
    void (*on_bytes)(void *arg, struct slice bytes); /* borrowed for the call */
    void (*on_end)(void *arg);                       /* the body was complete */
};

struct exchange {
    struct http_connection *connection; /* NULL: the connection is closed */
    struct http_listener *listener;
    const struct http_route *route;
    struct buffer head_bytes; /* the slices of `head` point into it */
    struct http1_head head;
    struct http1_body body_decoder;
    struct buffer body;
    struct slice parameters[EXCHANGE_PARAMETERS_MAX]; /* the {…} of the route's path, decoded */
    char parameter_bytes[EXCHANGE_PARAMETERS_MAX][EXCHANGE_PARAMETER_BYTES_MAX];
    struct identity identity;  /* if the route needs a token */
    unsigned paid;             /* from the budget of its route */
    const char *route_headers; /* of each answer of its route, complete lines; may be NULL */
    exchange_gone_hook on_client_gone; /* see exchange_hold() */
    void *gone_arg;
    exchange_ended_hook on_ended; /* see exchange_watch() */
    void *ended_arg;
    const struct exchange_body_sink *body_sink; /* see exchange_stream_body() */
    void *body_arg;
    bool body_paused;
    exchange_sent_hook on_answer_sent; /* see exchange_begin_answer() */
};

static inline struct slice exchange_user(const struct exchange *exchange)
{
    return identity_user(&exchange->identity);
}

/* Whether the request has a body, judging by its head. */
static inline bool exchange_has_body(const struct exchange *exchange)
{
    return exchange->head.chunked || exchange->head.content_length > 0;
}

/* The answer will take some time: reading goes on meanwhile, and `on_client_gone` runs if the client closes first.
 * The exchange must be answered even then; the answer is dropped. */
void exchange_hold(struct exchange *exchange, exchange_gone_hook on_client_gone, void *arg);

/* `on_ended` runs when the exchange ends: `answered` is false if the client closed first. NULL: none runs. */
void exchange_watch(struct exchange *exchange, exchange_ended_hook on_ended, void *arg);

/* For the handler of a route that `streams_body`: gives each piece of the body to the sink, whatever the body's length. A
 * client that sends nothing for message_seconds is answered with 408. */
void exchange_stream_body(struct exchange *exchange, const struct exchange_body_sink *sink,
                          void *arg);

/* Stops the body: no more comes, and nothing more is read from the client's socket, until it is resumed. Resuming gives
 * what has been received meanwhile to the sink at once. */
void exchange_pause_body(struct exchange *exchange);
void exchange_resume_body(struct exchange *exchange);

/* Begins an answer of unknown length. `on_sent` runs whenever everything that was written has been sent, so that the next
 * piece can be made; `on_client_gone` as in exchange_hold(). The exchange must be ended in any case. */
void exchange_begin_answer(struct exchange *exchange, const char *content_type,
                           exchange_sent_hook on_sent, exchange_gone_hook on_client_gone,
                           void *arg);

/* Writes a piece; it must not be empty. */
void exchange_write(struct exchange *exchange, struct slice bytes);

/* Ends the answer. `complete` false: something failed, so the connection is cut, and the client sees that a part is
 * missing. */
void exchange_end_answer(struct exchange **exchange, bool complete);

/* Answers with a body; `headers` are additional complete lines ("Name: value\r\n…") or "". */
void exchange_reply(struct exchange **exchange, unsigned status, const char *content_type,
                    const char *headers, struct slice body);

/* Answers with JSON from a buffer, which is freed; answers 503 if the buffer ran out of memory. */
void exchange_reply_json(struct exchange **exchange, unsigned status, struct buffer *json);

/* Answers 204. */
void exchange_reply_empty(struct exchange **exchange);

/* Answers {"error":{"code","message"}}; a 503 and a 429 carry Retry-After. */
void exchange_error(struct exchange **exchange, unsigned status, enum error_code code,
                    const char *message);

/* Decodes a query parameter into `out`, of `size` bytes (EXCHANGE_PARAMETER_BYTES_MAX or more). Returns false when
 * it is absent or malformed. */
bool exchange_query(const struct exchange *exchange, struct slice name, char *out, size_t size,
                    struct slice *value);

/* The request's token: from Authorization, else `access_token` in the query, else the WebSocket subprotocol.
 * SLICE_NONE without one. */
struct slice exchange_token(const struct exchange *exchange);

/* Whether the request's Origin, if it has one, is allowed. */
bool exchange_origin_allowed(const struct exchange *exchange);

/* Whether the request names this machine as its host, and comes from a page of this machine or from no page: so it comes
 * from no website, not even from one whose name was made to lead here. */
bool exchange_is_local(const struct exchange *exchange);

#endif

/*
 * An exchange is one HTTP request and the one answer it gets.
 *
 *   head and body read ──► route found ──► token verified, where the route asks for one ──► handler
 *   handler ──now or later──► exchange_reply…() exactly once, which ends the exchange
 *
 * A handler may keep the exchange while it waits for others; when the peer goes meanwhile, the
 * exchange stays until it is answered and the answer is dropped. Head, body and parameters last as
 * long as the exchange.
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
struct http_session;

struct exchange {
    struct http_session *session; /* NULL: the peer has gone */
    struct http_listener *door;
    const struct http_route *route;
    struct buffer head_bytes; /* what head's slices point into */
    struct http1_head head;
    struct http1_body body_decoder;
    struct buffer body;
    struct slice parameters[EXCHANGE_PARAMETERS_MAX]; /* {…} of the route's path, decoded */
    char parameter_bytes[EXCHANGE_PARAMETERS_MAX][EXCHANGE_PARAMETER_BYTES_MAX];
    struct identity identity; /* where the route asks for a token */
    void (*gone)(void *arg);  /* see exchange_hold() */
    void *gone_arg;
    void (*ended)(void *arg, bool answered); /* see exchange_watch() */
    void *ended_arg;
};

static inline struct slice exchange_user(const struct exchange *exchange)
{
    return identity_user(&exchange->identity);
}

/* The answer will take its time: the peer is watched meanwhile, and `gone` runs if it goes first. The
 * exchange is owed its answer even then; it is dropped. */
void exchange_hold(struct exchange *exchange, void (*gone)(void *arg), void *arg);

/* `ended` runs when the exchange is over: answered, or not since its peer went before. NULL: nobody is told. */
void exchange_watch(struct exchange *exchange, void (*ended)(void *arg, bool answered), void *arg);

/* Answers with a body; `headers` are further whole lines ("Name: value\r\n…") or "". */
void exchange_reply(struct exchange **exchange, unsigned status, const char *content_type,
                    const char *headers, struct slice body);

/* Answers with JSON from a buffer, which is freed; without memory for it, 503. */
void exchange_reply_json(struct exchange **exchange, unsigned status, struct buffer *json);

/* 204 */
void exchange_reply_empty(struct exchange **exchange);

/* {"error":{"code","message"}}; a 503 and a 429 carry Retry-After. */
void exchange_error(struct exchange **exchange, unsigned status, enum error_code code,
                    const char *message);

/* A query parameter, decoded into `out` (EXCHANGE_PARAMETER_BYTES_MAX or more of room). False when it
 * is absent or malformed. */
bool exchange_query(const struct exchange *exchange, struct slice name, char *out, size_t room,
                    struct slice *value);

/* The token the request carries, raw; SLICE_NONE without one. */
struct slice exchange_token(const struct exchange *exchange);

/* Whether the Origin it names, if any, is allowed. */
bool exchange_origin_allowed(const struct exchange *exchange);

#endif

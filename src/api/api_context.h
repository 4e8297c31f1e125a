/*
 * What the HTTP side of one worker works with, behind its door (http_listener.h). Made by gateway_compose.c.
 *
 * A worker holds `connections_max` connections, HTTP and others together. When they are as many, a newcomer takes
 * the place of one that asks for nothing: an HTTP connection that waits for a request, or a Socket.IO client of
 * whom nobody knows who it is; so connections that say nothing keep nobody out. Where there is none either it is
 * refused, and so is everybody new while memory is short. Requests are routed by router_table.h, and those for an
 * Engine.IO session that lives elsewhere are handed over (handover.h).
 */
#ifndef ROLLCALL_API_API_CONTEXT_H
#define ROLLCALL_API_API_CONTEXT_H

#include "api/sender_rates.h"
#include "auth/jwt_sign.h"
#include "base/container.h"
#include "base/list.h"
#include "http/exchange.h"
#include "http/http_listener.h"
#include "metrics/exposition.h"
#include "session/session_context.h"

/* Why nobody new is taken while `shedding`. */
#define API_SHEDDING_TEXT "memory is short"

struct http_route;

/*
 * A transport that comes by HTTP requests of its own, besides WebSockets: what it adds to the HTTP side. It
 * lives as long as the context. app/ puts it in.
 */
struct api_transport {
    const struct http_route *routes; /* in addition to the API's */
    size_t route_count;
    /* As http_listener_owner's, of every request. */
    bool (*on_head)(struct exchange *exchange);
    bool (*give_away)(struct http_session *session);
    /* How long the body of a request to one of its routes may be. */
    size_t (*body_bytes_max)(const struct exchange *exchange);
    /* Cuts off the connection that can be spared most, for a newcomer's sake. Returns false when there is none. */
    bool (*displace)(struct api_transport *transport);
};

struct api_context {
    struct http_listener listener;
    struct session_context *handlers;
    struct exposition *exposition;
    void (*sample)(void *arg); /* brings metrics up to date before they are shown; may be NULL */
    void *sample_arg;
    const struct jwt_signer *dev_signer; /* NULL: no /dev/token */
    void (*drain)(void *arg);            /* starts the drain of the whole process */
    void *drain_arg;
    struct list echoes;     /* connections to /v1/echo, which no route leads to */
    size_t connections_max; /* of this worker, all kinds */
    struct sender_rates sender_rates;
    struct api_transport *transport; /* NULL: WebSockets alone */
    bool shedding;                   /* memory is short: nobody new */
};

extern const struct http_listener_owner api_listener_owner;

static inline struct api_context *rest_of(const struct exchange *exchange)
{
    return CONTAINER_OF(exchange->listener, struct api_context, listener);
}

/* The answer to a ledger status other than OK. */
void rest_ledger_error(struct exchange **exchange, enum ledger_status status);

/* The body as a JSON object's members in handlers->scratch; false after a 400 was sent. */
bool rest_json(struct exchange **exchange);

#endif

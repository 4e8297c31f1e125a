/*
 * The HTTP side of one worker, with its listener (http/http_listener.h). Made by app/gateway/gateway_compose.c.
 *
 * A worker holds at most `connections_max` connections, HTTP and others together. At the limit a new connection
 * replaces one that does nothing: an HTTP connection without a complete request, or a client of the transport that
 * has not authenticated; so silent connections do not keep others out. If there is none, the user with most connections
 * gives way, and its place is free when it has closed; API_OVERSHOOT_MAX connections may wait for that. If no user has
 * two, the new connection is refused, as are all new connections while memory is short. api_routes.h routes the requests.
 */
#ifndef ROLLCALL_API_API_CONTEXT_H
#define ROLLCALL_API_API_CONTEXT_H

#include "api/api_keys.h"
#include "auth/jwt_sign.h"
#include "base/container.h"
#include "base/list.h"
#include "http/exchange.h"
#include "http/http_listener.h"
#include "metrics/exposition.h"
#include "session/session_context.h"

enum { API_OVERSHOOT_MAX = 16, API_EVICTION_PERIOD_MS = 20 };

/* Why new connections are refused while `shedding`. */
#define API_SHEDDING_TEXT "memory is short"

/* Connections of operators at a time, beside those of clients. */
enum { API_OPERATIONS_CONNECTIONS_MAX = 256 };

struct http_route;

/*
 * The hooks of a transport that is carried by HTTP requests of its own. It lives as long as the context. app/ fills
 * it in, so that this folder depends on no transport.
 */
struct api_transport {
    const struct http_route *routes; /* in addition to the API's */
    size_t route_count;
    /* The head of any request was read. Returns false when the request is answered already. */
    bool (*on_head)(struct exchange *exchange);
    /* As in http_listener_owner; called for every request. */
    bool (*give_away)(struct http_connection *connection);
    /* How long the body of a request to one of its routes may be. */
    size_t (*body_bytes_max)(const struct exchange *exchange);
    /* Cuts off an unauthenticated connection to make space for a new one. Returns false when there is none. */
    bool (*displace)(struct api_transport *transport);
};

struct api_context {
    struct http_listener listener;
    struct http_listener operations; /* for operators: see api_operations_are_hidden() */
    bool has_operations;             /* the process has such a listener: ops.listen */
    struct session_context *sessions;
    struct exposition *exposition;
    void (*sample)(void *arg); /* updates metrics before they are shown; may be NULL */
    void *sample_arg;
    struct list erasures;                /* api/service/service_erasure.h */
    size_t import_count;                 /* imports under way: api/service/service_import.h */
    const struct jwt_signer *dev_signer; /* NULL: no /dev/token */
    void (*drain)(void *arg);            /* starts the drain of the whole process */
    void *drain_arg;
    struct list echoes;       /* connections to /v1/echo, which are on no route */
    size_t connections_max;   /* of this worker, all kinds */
    struct list held_answers; /* see api_budget.h */
    struct api_keys keys;
    struct api_transport *transport; /* NULL: only WebSockets */
    bool shedding;                   /* memory is short: new connections are refused */
    int64_t evicted_at_ms;           /* when api_evict_busiest() looked at all users */
};

extern const struct http_listener_owner api_listener_owner;

/* All places are taken: of the user with most connections here, the one that has been silent longest gives way. Returns
 * false when no user has two, or when it was asked a moment ago. */
bool api_evict_busiest(struct api_context *context);

static inline struct api_context *api_context_of(const struct exchange *exchange)
{
    return exchange->listener->arg;
}

/* Metrics, administration, readiness and the console are hidden from clients of the public listener if they have a
 * listener of their own, which serves everything. */
static inline bool api_operations_are_hidden(const struct exchange *exchange)
{
    const struct api_context *context = api_context_of(exchange);
    return context->has_operations && exchange->listener == &context->listener;
}

/* Answers a ledger status other than OK. */
void api_ledger_error(struct exchange **exchange, enum ledger_status status);

/* Answers an error with the JSON members of the native one. Retry-After only has whole seconds. */
void api_error(struct exchange **exchange, const struct message_error *error);

/* Reads the body as a JSON object, its JSON members into sessions->scratch. Returns false after answering 400. */
bool api_read_json(struct exchange **exchange);

#endif

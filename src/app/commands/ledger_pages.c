#include "app/commands/ledger_pages.h"

#include "base/container.h"
#include "http/http_listener.h"
#include "http/http_route.h"
#include "ledger/ledger_exposition.h"
#include "ledger/ledger_metrics.h"
#include "metrics/exposition.h"
#include "metrics/metric_text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCEPT_QUEUE_MAX = 64, UNSENT_BYTES_MAX = 128 * 1024 };

struct ledger_pages {
    struct ledger_pages_options options;
    struct http_listener http;
    struct metrics metrics; /* of the HTTP listener; not shown */
    struct listener listener;
    int64_t start_wall_ms;
};

static struct ledger_pages *ledger_pages_of(const struct exchange *exchange)
{
    return CONTAINER_OF(exchange->listener, struct ledger_pages, http);
}

/* ---- the pages ---- */

static void serve_ledger_health(struct exchange *exchange)
{
    exchange_reply(&exchange, 200, "application/json", "", SLICE("{\"status\":\"ok\"}"));
}

static void serve_ledger_ready(struct exchange *exchange)
{
    const struct ledger_pages *pages = ledger_pages_of(exchange);
    if (pages->http.draining)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "draining");
    else if (!atomic_load(&ledger_metrics(pages->options.ledger)->available))
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "the database fails");
    else
        exchange_reply(&exchange, 200, "application/json", "", SLICE("{\"status\":\"ready\"}"));
}

static void serve_ledger_metrics(struct exchange *exchange)
{
    const struct ledger_pages *pages = ledger_pages_of(exchange);
    struct ledger_service_counts counts = ledger_service_counts(pages->options.service);
    struct buffer text = BUFFER_INIT;
    ledger_exposition_write_service(&text, &counts);
    ledger_exposition_write_ledger(&text, ledger_metrics(pages->options.ledger));
    metric_text_process(&text, pages->start_wall_ms);
    if (text.failed)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    else
        exchange_reply(&exchange, 200, EXPOSITION_CONTENT_TYPE, "", buffer_slice(&text));
    buffer_free(&text);
}

static const struct http_route ROUTES[] = {
    {HTTP1_GET, "/healthz", 0, serve_ledger_health},
    {HTTP1_GET, "/readyz", 0, serve_ledger_ready},
    {HTTP1_GET, "/metrics", 0, serve_ledger_metrics},
};

/* ---- the owner of the HTTP listener ---- */

static bool make_ledger_page_space(struct http_listener *http)
{
    return http->connection_count < LEDGER_PAGES_CONNECTIONS_MAX || http_listener_displace(http);
}

/* No page takes a body. */
static size_t ledger_page_body_bytes_max(struct exchange *exchange)
{
    (void)exchange;
    return 0;
}

static void answer_ledger_page(struct exchange *exchange)
{
    struct buffer allowed = BUFFER_INIT;
    exchange->route =
        http_route_find(ROUTES, sizeof(ROUTES) / sizeof(ROUTES[0]), exchange, &allowed);
    if (exchange->route)
        exchange->route->handle(exchange);
    else if (allowed.len)
        http_route_not_allowed(exchange, buffer_slice(&allowed));
    else
        exchange_error(&exchange, 404, ERROR_NOT_FOUND, "there is nothing at this path");
    buffer_free(&allowed);
}

static const struct http_listener_owner ledger_page_owner = {.make_space = make_ledger_page_space,
                                                             .body_bytes_max =
                                                                 ledger_page_body_bytes_max,
                                                             .answer = answer_ledger_page};

/* ---- life ---- */

static void on_ledger_client_accepted(void *arg, int fd)
{
    http_listener_accept(arg, fd);
}

struct ledger_pages *ledger_pages_open(const struct ledger_pages_options *options,
                                       const char *address, char error[LISTENER_ERROR_TEXT_MAX])
{
    struct listener_options listening = {.address = address,
                                         .accept_queue_max = ACCEPT_QUEUE_MAX,
                                         .unsent_bytes_max = UNSENT_BYTES_MAX};
    struct ledger_pages *pages = calloc(1, sizeof(*pages));
    if (!pages) {
        snprintf(error, LISTENER_ERROR_TEXT_MAX, "out of memory");
        return NULL;
    }
    pages->options = *options;
    pages->start_wall_ms = options->loop->clock.wall_ms;
    pages->http = (struct http_listener){.owner = &ledger_page_owner,
                                         .loop = options->loop,
                                         .streams = options->streams,
                                         .metrics = &pages->metrics,
                                         .config = options->config};
    http_listener_init(&pages->http);
    if (!listener_open(&pages->listener, options->loop, &listening, on_ledger_client_accepted,
                       &pages->http, error)) {
        free(pages);
        return NULL;
    }
    return pages;
}

uint16_t ledger_pages_port(const struct ledger_pages *pages)
{
    return pages->listener.port;
}

void ledger_pages_drain(struct ledger_pages *pages)
{
    http_listener_drain(&pages->http);
}

void ledger_pages_end(struct ledger_pages *pages)
{
    listener_close(&pages->listener);
    http_listener_close_all(&pages->http);
}

bool ledger_pages_is_ended(const struct ledger_pages *pages)
{
    return pages->listener.source.fd < 0 && pages->http.connection_count == 0;
}

void ledger_pages_free(struct ledger_pages **pages)
{
    struct ledger_pages *freed = *pages;
    *pages = NULL;
    if (!freed)
        return;
    assert(freed->http.connection_count == 0);
    listener_close(&freed->listener);
    free(freed);
}

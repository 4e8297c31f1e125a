#include "app/commands/process_pages.h"

#include "base/container.h"
#include "http/http_listener.h"
#include "http/http_route.h"
#include "metrics/exposition.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCEPT_QUEUE_MAX = 64, UNSENT_BYTES_MAX = 128 * 1024 };

struct process_pages {
    struct process_pages_options options;
    struct http_listener http;
    struct metrics metrics; /* of the HTTP listener; not shown */
    struct listener listener;
};

static struct process_pages *process_pages_of(const struct exchange *exchange)
{
    return CONTAINER_OF(exchange->listener, struct process_pages, http);
}

/* ---- the pages ---- */

static void serve_process_health(struct exchange *exchange)
{
    exchange_reply(&exchange, 200, "application/json", "", SLICE("{\"status\":\"ok\"}"));
}

static void serve_process_ready(struct exchange *exchange)
{
    const struct process_pages *pages = process_pages_of(exchange);
    const char *unready =
        pages->http.draining ? "draining" : pages->options.unready(pages->options.arg);
    if (unready)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, unready);
    else
        exchange_reply(&exchange, 200, "application/json", "", SLICE("{\"status\":\"ready\"}"));
}

static void serve_process_metrics(struct exchange *exchange)
{
    const struct process_pages *pages = process_pages_of(exchange);
    struct buffer text = BUFFER_INIT;
    pages->options.write_metrics(pages->options.arg, &text);
    if (text.failed)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    else
        exchange_reply(&exchange, 200, EXPOSITION_CONTENT_TYPE, "", buffer_slice(&text));
    buffer_free(&text);
}

static const struct http_route ROUTES[] = {
    {HTTP1_GET, "/healthz", 0, serve_process_health},
    {HTTP1_GET, "/readyz", 0, serve_process_ready},
    {HTTP1_GET, "/metrics", 0, serve_process_metrics},
};

/* ---- the owner of the HTTP listener ---- */

static bool make_process_page_space(struct http_listener *http)
{
    return http->connection_count < PROCESS_PAGES_CONNECTIONS_MAX || http_listener_displace(http);
}

/* No page takes a body. */
static size_t process_page_body_bytes_max(struct exchange *exchange)
{
    (void)exchange;
    return 0;
}

static void answer_process_page(struct exchange *exchange)
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

static const struct http_listener_owner process_page_owner = {.make_space = make_process_page_space,
                                                              .body_bytes_max =
                                                                  process_page_body_bytes_max,
                                                              .answer = answer_process_page};

/* ---- life ---- */

static void on_process_client_accepted(void *arg, int fd)
{
    http_listener_accept(arg, fd);
}

struct process_pages *process_pages_open(const struct process_pages_options *options,
                                         const char *address, char error[LISTENER_ERROR_TEXT_MAX])
{
    struct listener_options listening = {.address = address,
                                         .accept_queue_max = ACCEPT_QUEUE_MAX,
                                         .unsent_bytes_max = UNSENT_BYTES_MAX};
    struct process_pages *pages = calloc(1, sizeof(*pages));
    if (!pages) {
        snprintf(error, LISTENER_ERROR_TEXT_MAX, "out of memory");
        return NULL;
    }
    pages->options = *options;
    pages->http = (struct http_listener){.owner = &process_page_owner,
                                         .loop = options->loop,
                                         .streams = options->streams,
                                         .metrics = &pages->metrics,
                                         .config = options->config};
    http_listener_init(&pages->http);
    if (!listener_open(&pages->listener, options->loop, &listening, on_process_client_accepted,
                       &pages->http, error)) {
        free(pages);
        return NULL;
    }
    return pages;
}

uint16_t process_pages_port(const struct process_pages *pages)
{
    return pages->listener.port;
}

void process_pages_drain(struct process_pages *pages)
{
    http_listener_drain(&pages->http);
}

void process_pages_end(struct process_pages *pages)
{
    listener_close(&pages->listener);
    http_listener_close_all(&pages->http);
}

bool process_pages_is_ended(const struct process_pages *pages)
{
    return pages->listener.source.fd < 0 && pages->http.connection_count == 0;
}

void process_pages_free(struct process_pages **pages)
{
    struct process_pages *freed = *pages;
    *pages = NULL;
    if (!freed)
        return;
    assert(freed->http.connection_count == 0);
    listener_close(&freed->listener);
    free(freed);
}

/* The console page, its scripts and the API description: files that the build embeds in the program. */
#include "api/api_routes.h"
#include "api/assets.h"

#define SECURITY_HEADERS                                                                           \
    "Content-Security-Policy: default-src 'self'; connect-src 'self' ws: wss:; "                   \
    "frame-ancestors 'none'\r\n"                                                                   \
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"                          \
    "Cache-Control: no-cache\r\n"

/* Users join by name in development mode only; otherwise the first page describes the server. */
static struct slice choose_asset(struct exchange *exchange)
{
    struct slice path = exchange->head.target.path;
    bool is_dev = api_context_of(exchange)->dev_signer;
    return !is_dev && slice_is(path, "/") ? SLICE("/server.html") : path;
}

static const struct asset *find_asset(struct exchange *exchange)
{
    struct slice path = choose_asset(exchange);
    bool is_public = slice_is(path, "/openapi.json") || slice_is(path, "/asyncapi.json") ||
                     slice_starts_with(path, SLICE("/client/"));
    bool is_hidden = !is_public && api_operations_are_hidden(exchange);
    for (const struct asset *asset = ASSETS; asset->path && !is_hidden; asset++)
        if (slice_is(path, asset->path))
            return asset;
    return NULL;
}

void rest_asset(struct exchange *exchange)
{
    const struct asset *asset = find_asset(exchange);
    if (!asset)
        exchange_error(&exchange, 404, ERROR_NOT_FOUND, "there is nothing at this path");
    else if (!http_route_fits(HTTP1_GET, exchange->head.method))
        http_route_not_allowed(exchange, SLICE("GET, HEAD"));
    else
        exchange_reply(&exchange, 200, asset->content_type, SECURITY_HEADERS,
                       (struct slice){(const char *)asset->bytes, asset->len});
}

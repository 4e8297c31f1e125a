/*
 * Routes of HTTP requests: a table with one row for each resource and method.
 *
 * A path is matched segment by segment; "{name}" matches any one segment and puts it, percent-decoded, into
 * exchange->parameters. HEAD uses the route of GET.
 */
#ifndef ROLLCALL_HTTP_HTTP_ROUTE_H
#define ROLLCALL_HTTP_HTTP_ROUTE_H

#include "http/exchange.h"

#include <stdbool.h>
#include <stddef.h>

struct http_route {
    enum http1_method method;
    const char *path;
    unsigned access; /* which token it needs; the table's owner defines the values */
    void (*handle)(struct exchange *exchange);
    unsigned
        budget; /* which budget of the user it takes from; the table's owner defines the values */
    bool streams_body; /* the handler takes the body as it arrives: exchange_stream_body() */
};

/* Finds the route of a request, or NULL; `allowed` then gets the methods that the path has, if any. */
const struct http_route *http_route_find(const struct http_route *routes, size_t count,
                                         struct exchange *exchange, struct buffer *allowed);

/* Whether a route of one method serves requests of the other. */
bool http_route_fits(enum http1_method wanted, enum http1_method given);

/* Answers 405 with the methods that the path has. */
void http_route_not_allowed(struct exchange *exchange, struct slice methods);

#endif

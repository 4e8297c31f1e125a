/*
 * Routes of HTTP requests: a table, one row a resource and method.
 *
 * A path is matched segment by segment; "{name}" takes any one segment, percent-decoded, into
 * exchange->parameters. HEAD goes where GET goes.
 */
#ifndef ROLLCALL_HTTP_HTTP_ROUTE_H
#define ROLLCALL_HTTP_HTTP_ROUTE_H

#include "http/exchange.h"

#include <stdbool.h>
#include <stddef.h>

struct http_route {
    enum http1_method method;
    const char *path;
    unsigned access; /* what it asks of the token, as the table's owner counts */
    void (*handle)(struct exchange *exchange);
};

/* The route of a request, or NULL; `allowed` then lists the methods its path has, if any. */
const struct http_route *http_route_find(const struct http_route *routes, size_t count,
                                         struct exchange *exchange, struct buffer *allowed);

/* Whether what is there for one method is there for the other. */
bool http_route_fits(enum http1_method wanted, enum http1_method given);

/* 405, with the methods the path has. */
void http_route_not_allowed(struct exchange *exchange, const struct buffer *allowed);

#endif

#include "http/http_route.h"

#include <stdio.h>

static const char *const METHOD_NAMES[] = {
    [HTTP1_GET] = "GET, HEAD", [HTTP1_POST] = "POST",     [HTTP1_PUT] = "PUT",
    [HTTP1_PATCH] = "PATCH",   [HTTP1_DELETE] = "DELETE",
};

/* Puts the decoded parameters of the path into the exchange. */
static bool http_route_matches(struct exchange *exchange, const char *pattern)
{
    struct slice want = slice_after(slice_of(pattern), 1);
    struct slice have = slice_after(exchange->head.target.path, 1);
    size_t parameters = 0;
    while (want.data && have.data) {
        struct slice want_segment, have_segment;
        want = slice_split(want, '/', &want_segment);
        have = slice_split(have, '/', &have_segment);
        if (want_segment.len && want_segment.data[0] == '{') {
            size_t len;
            if (parameters == EXCHANGE_PARAMETERS_MAX ||
                have_segment.len > EXCHANGE_PARAMETER_BYTES_MAX)
                return false;
            char *bytes = exchange->parameter_bytes[parameters];
            if (!http1_percent_decode(have_segment, bytes, &len) || len == 0)
                return false;
            exchange->parameters[parameters++] = (struct slice){bytes, len};
        } else if (!slice_equal(want_segment, have_segment)) {
            return false;
        }
    }
    return !want.data && !have.data;
}

bool http_route_fits(enum http1_method wanted, enum http1_method given)
{
    return wanted == given || (wanted == HTTP1_GET && given == HTTP1_HEAD);
}

const struct http_route *http_route_find(const struct http_route *routes, size_t count,
                                         struct exchange *exchange, struct buffer *allowed)
{
    for (size_t i = 0; i < count; i++) {
        if (!http_route_matches(exchange, routes[i].path))
            continue;
        if (http_route_fits(routes[i].method, exchange->head.method))
            return &routes[i];
        buffer_append_text(allowed, allowed->len ? ", " : "");
        buffer_append_text(allowed, METHOD_NAMES[routes[i].method]);
    }
    return NULL;
}

void http_route_not_allowed(struct exchange *exchange, struct slice methods)
{
    char header[128];
    char json[256];
    snprintf(header, sizeof(header), "Allow: %.*s\r\n", SLICE_FORMAT(methods));
    int len =
        snprintf(json, sizeof(json),
                 "{\"error\":{\"code\":\"INVALID_MESSAGE\",\"message\":\"this path takes %.*s\"}}",
                 SLICE_FORMAT(methods));
    exchange_reply(&exchange, 405, "application/json", header, (struct slice){json, (size_t)len});
}

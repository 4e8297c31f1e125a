/*
 * The target of an HTTP/1 request: its forms (RFC 9112, 3.2), its escapes, its query.
 *
 * A target is split, never decoded, when the head is parsed: "/a%2Fb" stays one path segment.
 * Whoever has cut out a segment or a query value decodes that. All slices borrow from the request's
 * bytes. Pure functions. Any thread.
 */
#ifndef ROLLCALL_PROTOCOL_HTTP1_HTTP1_TARGET_H
#define ROLLCALL_PROTOCOL_HTTP1_HTTP1_TARGET_H

#include "base/slice.h"

struct http1_target {
    struct slice authority; /* of the absolute form, "http://authority/..."; else none */
    struct slice path;      /* raw, begins with '/'; or "*" */
    struct slice query;     /* raw, without the '?'; data is NULL when there is no '?' */
};

/* Splits a target in origin form or absolute form; "*" is taken only with `asterisk_allowed`.
 * False: another form, or a byte that may not stand in one. */
bool http1_target_parse(struct slice text, bool asterisk_allowed, struct http1_target *target);

/* Whether this may be a host and port: no path, no userinfo, no blanks. Empty is valid. */
bool http1_host_valid(struct slice host);

/* Undoes the %-escapes of a path segment. `out` has room for text.len bytes and may be text.data.
 * False on a bad escape or an escaped NUL. */
bool http1_percent_decode(struct slice text, char *out, size_t *len);

/* The same for a query's name or value, where '+' is a space. */
bool http1_query_decode(struct slice text, char *out, size_t *len);

/* Takes the next "name=value" off the front of *query, both raw; a value that is not there is
 * SLICE_NONE. False at the end. Empty parameters are passed over. */
bool http1_query_next(struct slice *query, struct slice *name, struct slice *value);

/* The raw value of the first parameter called `name`, escaped or not; data is NULL when there is none. */
struct slice http1_query_find(struct slice query, struct slice name);

#endif

/*
 * The target of an HTTP/1 request: its forms (RFC 9112, 3.2), its escapes, its query.
 *
 * Parsing the head splits a target but does not decode it, so that "/a%2Fb" stays one path segment. The caller
 * decodes a segment or a query value after cutting it out. All slices borrow from the request's bytes. Pure
 * functions. Any thread.
 */
#ifndef ROLLCALL_PROTOCOL_HTTP1_HTTP1_TARGET_H
#define ROLLCALL_PROTOCOL_HTTP1_HTTP1_TARGET_H

#include "base/slice.h"

struct http1_target {
    struct slice authority; /* of the absolute form, "http://authority/..."; else none */
    struct slice path;      /* raw, begins with '/'; or "*" */
    struct slice query;     /* raw, without the '?'; data is NULL when there is no '?' */
};

/* Splits a target in origin form or absolute form; "*" is accepted only with `asterisk_allowed`. Returns false
 * for another form or an invalid byte. */
bool http1_target_parse(struct slice text, bool asterisk_allowed, struct http1_target *target);

/* Whether `host` can be a host and port: no path, no userinfo, no blanks. Empty is valid. */
bool http1_host_valid(struct slice host);

/* Decodes the %-escapes of a path segment. `out` has a capacity of text.len bytes and may be text.data. Returns
 * false for a bad escape or an escaped NUL. */
bool http1_percent_decode(struct slice text, char *out, size_t *len);

/* The same for a query's name or value, where '+' is a space. */
bool http1_query_decode(struct slice text, char *out, size_t *len);

/* Takes the next "name=value" off the front of *query, both raw; a missing value is SLICE_NONE. Returns false at
 * the end. Skips empty parameters. */
bool http1_query_next(struct slice *query, struct slice *name, struct slice *value);

/* The raw value of the first parameter called `name`, escaped or not; data is NULL when there is none. */
struct slice http1_query_find(struct slice query, struct slice name);

#endif

/*
 * One attempt to fetch keys, and the kinds of credentials (sources) that know how. The fetch belongs to itself: it lives
 * until it has ended. One that is abandoned ends with the request in flight.
 */
#ifndef ROLLCALL_AWS_AWS_FETCH_H
#define ROLLCALL_AWS_AWS_FETCH_H

#include "aws/aws_environment.h"
#include "aws/aws_key_set.h"
#include "base/buffer.h"

enum { AWS_FETCH_BODY_BYTES_MAX = 64 * 1024, AWS_FETCH_ERROR_MAX = 320 };

struct aws_fetch;

/* Takes `keys`; NULL: the fetch failed, and `error`, borrowed, says why. Runs exactly once unless the fetch is abandoned. */
typedef void (*aws_fetch_done)(void *arg, struct aws_key_set *keys, const char *error);

struct aws_source {
    const char *name;
    /* Begins to fetch. Returns false, and has done nothing, when this kind is not configured. */
    bool (*start)(struct aws_fetch *fetch);
};

extern const struct aws_source aws_environment_source;
extern const struct aws_source aws_web_identity_source;
extern const struct aws_source aws_profile_source;
extern const struct aws_source aws_container_source;
extern const struct aws_source aws_instance_source;

struct aws_fetch {
    const struct aws_environment *environment;
    const char *region;
    struct http_client *http;
    const char *source_name; /* of the kind that is configured; NULL: none is */
    struct buffer token;     /* a secret that authorizes this fetch */
    char error[AWS_FETCH_ERROR_MAX];
    aws_fetch_done done; /* NULL: abandoned */
    void *arg;
};

/* Asks the first of the sources that is configured; `done` may run inside. The fetch is a shallow copy of *start, whose
 * texts outlive it; it is stored in *out while it is in flight, and NULL before `done` runs. Returns false, with no call of
 * `done`, when out of memory. */
bool aws_fetch_start(const struct aws_fetch *start, struct aws_fetch **out);

/* Makes sure that `done` never runs; nulls the caller's pointer. */
void aws_fetch_abandon(struct aws_fetch **fetch);

/* For sources. The fetch is gone after these: */
void aws_fetch_fail(struct aws_fetch *fetch, const char *error);
void aws_fetch_succeed(struct aws_fetch *fetch, const struct aws_key_text *text);

/* Sends a request; a request that cannot be sent fails the fetch. */
void aws_fetch_send(struct aws_fetch *fetch, struct http_client_request *request,
                    http_client_done done);

/* Returns whether the response has status 200 and somebody waits for it; otherwise the fetch has failed. */
bool aws_fetch_is_answered(struct aws_fetch *fetch, const struct http_client_response *response);

/* Ends the fetch with the keys in a JSON answer. */
void aws_fetch_take_json(struct aws_fetch *fetch, const struct http_client_response *response);

#endif

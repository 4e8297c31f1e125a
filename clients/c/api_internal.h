/*
 * The inside of rollcall_api.h. Not installed.
 *
 *   api.c          the interface for the application; requests and the connection they go over
 *   api_answer.c   the answer to the first request: head, body, errors, a lost connection
 *
 *   IDLE ──request──► SENT ──head──► BODY ──end──► answered, IDLE
 *                      └── failed or timed out ──► answered, IDLE without a connection
 *
 * The states are those of the first request in the queue: `sent` and `has_head`. Every request that was sent ends in
 * api_answer.c, with exactly one call of the application.
 */
#ifndef ROLLCALL_CLIENTS_C_API_INTERNAL_H
#define ROLLCALL_CLIENTS_C_API_INTERNAL_H

#include "base/buffer.h"
#include "base/clock.h"
#include "link.h"
#include "protocol/http1/http1_body.h"
#include "rollcall_api.h"

struct api_request {
    struct api_request *next;
    rollcall_api_answered *answered;
    void *arg;
    bool repeated;      /* sent a second time: over a new connection, or with a fresh token */
    const char *method; /* static */
    char *path;
    char *json;
};

struct rollcall_api {
    struct link link;
    char *host;
    char *ca_file;
    char *token;
    const char *(*fresh_token)(void *arg);
    void *arg;
    struct clock clock;
    struct api_request *requests; /* the first is under way */
    size_t request_count;
    bool in_callback;

    bool sent;     /* the first request is in `out`, or on its way */
    bool kept;     /* the connection has carried an answer before */
    bool has_head; /* of the answer */
    bool closes;   /* the server ends the connection with this answer */
    unsigned status;
    int64_t retry_after_ms;
    int64_t deadline_ms;
    struct buffer out;
    size_t out_sent;
    struct buffer in; /* the head until it is complete */
    struct http1_body body;
    struct buffer answer;
};

void api_request_free(struct api_request **request);

/* api_answer.c */
/* Bytes of the server. */
void api_handle_bytes(struct rollcall_api *api, const char *data, size_t len);
/* The connection failed, or the time is over: drops it, and answers the request that was sent, if any, or lets it be sent
 * again. */
void api_lost(struct rollcall_api *api, const char *code, const char *why);

#endif

/*
 * A hook is a question to the application: one signed POST, one answer.
 *
 *   hook_ask() ──admitted (hook_gate.h)──► POST ──► answered, failed or out of time ──► done(), exactly once
 *
 * The URL comes from the configuration alone. Requests are signed like webhooks (webhooks/webhook_signature.h), go over kept
 * connections and are never redirected. The application may see a question twice, under one webhook-id, when it closes a
 * kept connection just then (http_client/http_client.h). Neither a body nor a token reaches the log.
 *
 * One per worker and URL; a plain struct that its owner fills in. Threading: the loop's thread only.
 */
#ifndef ROLLCALL_HOOKS_HOOK_H
#define ROLLCALL_HOOKS_HOOK_H

#include "base/random.h"
#include "base/slice.h"
#include "hooks/hook_gate.h"
#include "http_client/http_client.h"
#include "metrics/metrics.h"
#include "webhooks/webhook_signature.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of an answer's body. */
enum { HOOK_ANSWER_BYTES_MAX = 64 * 1024 };

/* What it points to is borrowed and outlives the hook. */
struct hook {
    const char *name; /* for the log */
    const char *url;
    const char *ca_file;          /* NULL: the system's */
    struct webhook_signer signer; /* the hook's own; its owner frees it */
    int64_t time_limit_ms;
    struct hook_gate *gate;
    struct http_client *client;
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    bool closed; /* nothing more is asked: the worker ends */
};

enum hook_result {
    HOOK_ACCEPTED, /* 2xx */
    HOOK_REFUSED,  /* 4xx */
    HOOK_FAILED,   /* any other answer, or none in time */
};

struct hook_answer {
    enum hook_result result;
    unsigned status;   /* 0: there was no answer */
    struct slice body; /* borrowed until done() returns */
};

typedef void (*hook_done)(void *arg, const struct hook_answer *answer);

/* Asks with a JSON body, which is borrowed until this returns. Unless it returns HOOK_ADMITTED, `done` never runs; else it
 * runs in a later turn. Out of memory is HOOK_TOO_MANY. */
enum hook_admission hook_ask(struct hook *hook, struct slice body, hook_done done, void *arg);

#endif

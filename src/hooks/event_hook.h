/*
 * The event hook: an event with a name that is not a command goes to the application, and its answer back to the client.
 *
 *   question  {"user_id", "device_id", "conn_id", "name", "data", "args"}
 *   answer    2xx with JSON, or without a body (null): the acknowledgement
 *             4xx: an error, with the text of {"message"} if there is one
 *             anything else, no answer in time: SERVICE_UNAVAILABLE, which the breaker counts
 *
 * Order: the application gets the events of one connection one after the other, in the order in which the client sent
 * them: the next one is asked when the last one is answered. Connections do not wait for one another.
 *
 *   event_hook_ask() ──the connection has none in flight──► asked ──► answered ──► done()
 *                    ──else──► waits in its lane ────────────▲
 *
 * Bounds: hooks.in_flight_max for all (hook_gate.h), and of these at most one in EVENT_HOOK_USER_SHARE for one user on
 * this worker; an event waits at most as long as an answer may take; the replies that a connection is owed bound its lane
 * (session/pending_reply.h), and EVENT_HOOK_WAITING_BYTES_MAX all lanes of a worker. What is beyond is refused with
 * SERVER_BUSY. A lane outlives its connection: what the server has received goes to the application all the same.
 *
 * Threading: the loop's thread only.
 */
#ifndef ROLLCALL_HOOKS_EVENT_HOOK_H
#define ROLLCALL_HOOKS_EVENT_HOOK_H

#include "base/list.h"
#include "base/table.h"
#include "base/ulid.h"
#include "hooks/hook.h"

enum {
    EVENT_HOOK_USER_SHARE = 4,
    EVENT_HOOK_WAITING_BYTES_MAX = 16 * 1024 * 1024,
    EVENT_HOOK_NAME_BYTES_MAX = 128,
};

struct event_hook {
    struct hook *hook; /* borrowed */
    struct table lanes;
    struct list all_lanes; /* the same, to count a user's */
    size_t user_lanes_max;
    size_t waiting_bytes;
};

/* Borrowed until the function that gets it returns. */
struct event_question {
    struct slice user_id;
    struct slice device_id;
    struct ulid conn_id;
    struct slice name;
    struct slice data; /* the first argument, raw JSON; SLICE_NONE: none */
    struct slice args; /* all arguments, raw JSON with commas between them; SLICE_NONE: none */
};

enum event_result {
    EVENT_ANSWERED,
    EVENT_REFUSED, /* by the application */
    EVENT_BUSY,    /* beyond a bound */
    EVENT_FAILED,
};

struct event_answer {
    enum event_result result;
    unsigned status;   /* EVENT_REFUSED: of the HTTP answer */
    struct slice data; /* EVENT_ANSWERED: raw JSON */
    const char *text;  /* else: the reason */
};

typedef void (*event_hook_done)(void *arg, const struct event_answer *answer);

/* Returns false when out of memory. */
bool event_hook_init(struct event_hook *events, struct hook *hook, uint32_t in_flight_max,
                     uint64_t hash_seed);

/* No question may be in flight any more: http_client_free() completes them. */
void event_hook_free(struct event_hook *events);

/* Asks the application. `done` runs exactly once, possibly before this returns. */
void event_hook_ask(struct event_hook *events, const struct event_question *question,
                    event_hook_done done, void *arg);

#endif

/*
 * One command of a client in progress: it keeps its bytes until it is answered, because a cluster may redirect
 * it (MOVED, ASK) or ask to retry (TRYAGAIN, CLUSTERDOWN), and a server may lack a script's source (NOSCRIPT).
 * All of this is hidden from the caller.
 *
 * Redirections are bounded by REDIS_REDIRECTS_MAX and retries by REDIS_REQUEST_LIMIT_MS; a request that is
 * not answered by then is answered with NULL.
 */
#ifndef ROLLCALL_REDIS_REDIS_REQUEST_H
#define ROLLCALL_REDIS_REDIS_REQUEST_H

#include "redis/redis_cluster.h"
#include "redis/redis_script.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    REDIS_REDIRECTS_MAX = 5,
    REDIS_REQUEST_LIMIT_MS = 3000,
    REDIS_RETRY_DELAY_MS = 100,
    REDIS_RETRIES_WAITING_MAX = 10000,
};

/* The requests of one client. */
struct redis_requests {
    struct redis_cluster *cluster;
    struct redis_request *waiting; /* to be retried, the next one first */
    struct redis_request **waiting_end;
    size_t waiting_count;
    struct wheel_timer timer;
    struct buffer scratch;
};

struct redis_request {
    struct redis_request *next; /* in `waiting` */
    struct redis_requests *requests;
    redis_reply_done done;
    void *arg;
    const struct redis_script *script; /* NULL: a plain command */
    size_t argument_count;             /* of a script: keys and arguments */
    uint16_t slot;
    bool any_slot;
    bool wants_source;
    uint8_t redirects;
    int64_t limit_ms;
    int64_t retry_ms;
    size_t len;
    char bytes[]; /* for a script: without the part that names it */
};

void redis_requests_init(struct redis_requests *requests, struct redis_cluster *cluster);

/* Answers waiting requests with NULL. The connections must have ended before. */
void redis_requests_cancel(struct redis_requests *requests);

/* Does the same, and frees. */
void redis_requests_free(struct redis_requests *requests);

/* Makes a request of the bytes in the scratch buffer. Returns NULL when out of memory. */
struct redis_request *redis_request_make(struct redis_requests *requests, redis_reply_done done,
                                         void *arg);

/* Takes the request, sends it to its server and answers it, with NULL at once when it cannot be sent. */
void redis_request_send(struct redis_request *request);

#endif

/*
 * One command of a client on its way: its bytes are kept until it is answered, since a cluster may send it
 * elsewhere (MOVED, ASK), ask for patience (TRYAGAIN, CLUSTERDOWN) or a server may want a script's
 * source (NOSCRIPT). Who asked hears of none of this.
 *
 * Redirections are bounded by REDIS_REDIRECTS_MAX and patience by REDIS_REQUEST_LIMIT_MS; what is not
 * answered by then counts as out of reach.
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
    struct redis_request *waiting; /* to be tried again, the next first */
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
    char bytes[]; /* a script's without what names it */
};

void redis_requests_init(struct redis_requests *requests, struct redis_cluster *cluster);

/* Answers those that wait with NULL. The links must be ended already. */
void redis_requests_free(struct redis_requests *requests);

/* Makes one of the bytes in the scratch buffer; NULL when memory is short. */
struct redis_request *redis_request_make(struct redis_requests *requests, redis_reply_done done,
                                         void *arg);

/* Takes it, sends it where it belongs and answers it, with NULL at once when that cannot be. */
void redis_request_send(struct redis_request *request);

#endif

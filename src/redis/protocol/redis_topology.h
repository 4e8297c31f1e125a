/*
 * Which server of a cluster serves which slot, as one of its servers reports it (CLUSTER SLOTS), and where an
 * error redirects us (MOVED, ASK). No I/O.
 *
 * A server without a configured name reports an empty one; its host is then the one that was asked.
 */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_TOPOLOGY_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_TOPOLOGY_H

#include "redis/protocol/redis_slot.h"
#include "redis/protocol/redis_url.h"
#include "redis/protocol/resp.h"

#include <stdbool.h>
#include <stdint.h>

enum { REDIS_NODES_MAX = 256, REDIS_NO_OWNER = UINT16_MAX };

struct redis_topology {
    struct redis_address masters[REDIS_NODES_MAX];
    size_t master_count;
    struct redis_address replicas[REDIS_NODES_MAX];
    size_t replica_count;
    uint16_t owner[REDIS_SLOTS]; /* a master's index, or REDIS_NO_OWNER */
};

/* Returns false when the reply is not a slot table, or has more than REDIS_NODES_MAX masters. Leaves out
 * replicas beyond that number. */
bool redis_topology_read(struct redis_topology *out, const struct resp_value *reply,
                         const char *asked_host);

/* Parses "MOVED 3999 127.0.0.1:6381" or the same with ASK. */
bool redis_topology_redirect(struct slice error, const char *asked_host, uint16_t *slot,
                             struct redis_address *address);

#endif

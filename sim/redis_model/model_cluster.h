/*
 * Redis Cluster: which of several servers has which slot, what a server answers for slots that it does not have, and slots that
 * move from one server to another, key by key.
 *
 *   an owner that migrates the slot    has the keys: serves; has none of them: ASK; has some: TRYAGAIN
 *   a server that imports the slot     after ASKING: serves, but TRYAGAIN if it has not all of several keys; else: MOVED
 *   any other server                   MOVED
 *
 * The servers know at once what one of them is told: there is no gossip. PUBLISH reaches only clients of the same server.
 *
 * Threading and ownership: one thread. The cluster belongs to the owner of the models, which refer to it.
 */
#ifndef ROLLCALL_SIM_REDIS_MODEL_CLUSTER_H
#define ROLLCALL_SIM_REDIS_MODEL_CLUSTER_H

#include "redis/protocol/redis_slot.h"
#include "redis_model/model_call.h"

enum {
    MODEL_CLUSTER_NODES_MAX = 8,
    MODEL_CLUSTER_ID_LEN = 40,
    MODEL_CLUSTER_HOST_BYTES = 16,
    MODEL_CLUSTER_NOBODY = 255,
};

struct model_node {
    struct redis_model *model;
    char id[MODEL_CLUSTER_ID_LEN + 1];
    char host[MODEL_CLUSTER_HOST_BYTES];
    uint16_t port;
    size_t master; /* a replica's; a master's own place */
    bool is_away;  /* keys cannot be moved to it */
};

struct model_cluster {
    struct model_node nodes[MODEL_CLUSTER_NODES_MAX];
    size_t count;
    bool is_down;               /* as all servers report it: a part of the slots is not served */
    uint8_t owner[REDIS_SLOTS]; /* a place among the nodes, or MODEL_CLUSTER_NOBODY */
    uint8_t migrating_to[REDIS_SLOTS]; /* what the owner was told */
    uint8_t importing_at[REDIS_SLOTS]; /* the server that was told to import it */
};

void model_cluster_init(struct model_cluster *cluster);

/* Makes the model one of the servers. `id` NULL: one is made up. Returns its place. */
size_t model_cluster_add(struct model_cluster *cluster, struct redis_model *model, const char *id,
                         const char *host, uint16_t port);

/* The server owns the slots from now on. Clients of the server before are unsubscribed from their channels in them. */
void model_cluster_assign(struct model_cluster *cluster, unsigned first, unsigned last,
                          size_t place);

/* The other server takes the place of a master, with all its slots; the master becomes its replica. Data stays where it is. */
void model_cluster_promote(struct model_cluster *cluster, size_t master, size_t replica);

/* Finishes all moves that are under way, as `redis-cli --cluster fix` does. */
void model_cluster_fix(struct model_cluster *cluster);

/* The server that a key is looked for at first. */
struct redis_model *model_cluster_find(const struct model_cluster *cluster, struct slice key);

/* Returns NULL when the server may execute the command, else the error, which may be in `text`. */
enum { MODEL_CLUSTER_ERROR_BYTES = 96 };
const char *model_cluster_refuse(const struct model_call *call, const struct model_command *command,
                                 char text[MODEL_CLUSTER_ERROR_BYTES]);

#endif

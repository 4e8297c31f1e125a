/*
 * A model of one Redis server, in memory and without I/O: bytes of commands in, bytes of replies out, at a time that the
 * owner sets. It runs the product's own scripts with Lua and answers the commands that they and the product's client use, as
 * Redis 7 does (redis_model_test.c compares the two); any other command is an error.
 *
 *     commands ──► redis_session_receive() ──► replies in session->out
 *                                        └──► pushes in the `out` of the sessions that subscribed
 *
 * What the model can be told to do wrong, for simulations: lose its data (redis_model_clear) or some of it (redis_model_evict), refuse writes (`is_full`), be a replica,
 * be loading. Several models are a cluster when model_cluster.h makes them one.
 *
 * Threading: one. Same commands at the same times give the same bytes.
 */
#ifndef ROLLCALL_SIM_REDIS_REDIS_MODEL_H
#define ROLLCALL_SIM_REDIS_REDIS_MODEL_H

#include "base/buffer.h"
#include "base/list.h"
#include "base/table.h"
#include "redis/protocol/resp.h"
#include "redis_model/model_request.h"
#include "redis_model/model_value.h"

enum { MODEL_DIGEST_TEXT = 40, MODEL_DIGESTS_KEPT = 64 };

struct lua_State;
struct model_cluster;

/* The digest of a script that was sent, so that it is not computed again. */
struct model_digest {
    uint64_t hash; /* of the source; 0: none */
    char text[MODEL_DIGEST_TEXT + 1];
};

struct redis_model {
    int64_t now_us; /* the server's wall clock */
    bool is_full;   /* writes that need memory are refused (OOM) */
    bool is_loading;
    bool is_replica;
    uint64_t replication_id; /* another one after each start and takeover */
    /* ---- */
    struct model_cluster *cluster; /* NULL: it is alone */
    size_t place;                  /* in the cluster */
    struct table keys;
    struct lua_State *lua;
    struct redis_session *script_session; /* that runs a script */
    struct model_digest digests[MODEL_DIGESTS_KEPT];
    struct model_value *scripts; /* a hash: digest → source */
    struct buffer script_reply;  /* to the command that a script calls */
    struct list sessions;
    uint64_t random;            /* for HRANDFIELD and SPOP */
    uint64_t commands;          /* executed, those of scripts too */
    struct table tracked;       /* keys that sessions are told about (model_tracking.h) */
    int64_t tracked_expires_us; /* none of them expires before */
    int64_t tracking_expired_us;
    bool has_pushes;
};

/* A connection to the model. */
struct redis_session {
    struct list place;
    struct redis_model *model;
    struct buffer in;
    struct model_request request; /* that is executed */
    struct buffer out;            /* the owner sends and consumes it */
    int resp;                     /* the protocol's version, 2 or 3 */
    struct model_value *channels;
    struct model_value *shard_channels;
    struct model_value *tracked; /* keys whose change it is told of, once */
    bool tracks;
    struct buffer pushes; /* to be sent after the reply */
    bool caches_next;     /* the keys of the next command are tracked */
    struct buffer queued; /* commands between MULTI and EXEC, as they came */
    size_t queued_count;
    bool in_multi;
    bool multi_failed;
    bool is_asking;  /* ASKING was the last command */
    bool is_closing; /* after QUIT, or bytes that are no command */
};

void redis_model_init(struct redis_model *model, int64_t now_us, uint64_t seed);
void redis_model_free(struct redis_model *model);

/* Removes all data, as a restart without persistence does; scripts too. Sessions stay. */
void redis_model_clear(struct redis_model *model);

/* Adds copies of the other's keys, none of which may be there. */
void redis_model_copy(struct redis_model *model, const struct redis_model *from);

/* Removes about so many per cent of the keys that have a lifetime. */
void redis_model_evict(struct redis_model *model, unsigned percent);

void redis_session_open(struct redis_session *session, struct redis_model *model);
void redis_session_close(struct redis_session *session);

/* Executes the commands that are complete. */
void redis_session_receive(struct redis_session *session, struct slice bytes);

#endif

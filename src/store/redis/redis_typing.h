/*
 * The typing store on Redis: one for a fleet.
 *
 * A chat is one hash, `typing:r:<chat>`, and every operation one script on it (store/redis/lua/typing.lua), so that
 * a cluster needs no more than a single server does. Who types has one field, whose value names the devices
 * that type and when each notice ends; the key lives as long as the longest of them. Who stops has none; that
 * the next update must keep the pace is known from `typing_pace:{typing:r:<chat>}:<user>`, beside the chat
 * (but for a chat with a '}' in its id, where a stop forgets it). What one script does is bounded: an update
 * sweeps a few fields of those who went silent, and a chat is read by a sample.
 *
 * No answer to a start or a stop is STATE_UNKNOWN, no answer to a read and an answer that makes no sense are
 * STATE_UNAVAILABLE. A foreign value under the key is
 * removed.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_TYPING_H
#define ROLLCALL_STORE_REDIS_REDIS_TYPING_H

#include "base/clock.h"
#include "redis/redis_client.h"
#include "store/typing_store.h"

struct redis_typing_options {
    struct redis_client *client; /* borrowed for the store's life */
    int64_t ttl_ms;
    uint32_t rate_per_second;
    const struct clock *clock; /* NULL: Redis's own (redis_store.h) */
};

/* A worker's port. NULL when memory is short. May be freed while answers are owed; they come when the client
 * gives them. */
struct typing_store *redis_typing_make(const struct redis_typing_options *options);

#endif

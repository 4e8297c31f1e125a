/*
 * The typing store on Redis, shared by a fleet.
 *
 * A chat is one hash, `typing:r:<chat>`, and every operation is one script on it (store/redis/lua/typing.lua), so a
 * cluster needs nothing more than a single server. A user who types has one field; its value names the typing devices
 * and when each notice ends. The key lives as long as the longest notice. A user who stops has no field; the time of the
 * last update, which limits the rate of the next one, is kept in `typing_pace:{typing:r:<chat>}:<user>` in the same slot.
 * A chat with a '}' in its id cannot have such a key, so there a stop resets the rate limit. The work of one script is
 * bounded: an update checks a few fields for notices that ended, and a read samples the chat.
 *
 * When Redis does not answer a start or a stop, the result is STATE_UNKNOWN. When it does not answer a read, or when a
 * reply is malformed, the result is STATE_UNAVAILABLE. A foreign value under the key is removed.
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

/* Creates one worker's store. Returns NULL when out of memory. It may be freed while operations are pending; they
 * complete when the client answers them. */
struct typing_store *redis_typing_make(const struct redis_typing_options *options);

#endif

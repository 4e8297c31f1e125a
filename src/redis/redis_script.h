/*
 * A Lua script that Redis runs atomically. It is sent by its SHA-1, computed once; a server that does not
 * know it (a new one, or after SCRIPT FLUSH) says NOSCRIPT, and then gets the source. Immutable once
 * made, so that workers may share it. All keys of one call must be in one slot.
 */
#ifndef ROLLCALL_REDIS_REDIS_SCRIPT_H
#define ROLLCALL_REDIS_REDIS_SCRIPT_H

#include "base/buffer.h"
#include "base/slice.h"
#include "redis/redis_words.h"

#include <stdbool.h>
#include <stddef.h>

enum { REDIS_SHA_LEN = 40 };

struct redis_script {
    struct slice source; /* borrowed: usually a constant */
    char sha[REDIS_SHA_LEN + 1];
};

/* False when the system's cryptography gives no SHA-1. */
bool redis_script_init(struct redis_script *script, struct slice source);

/* Appends what names the script in a call with so many keys and arguments; what follows, from the number of
 * keys on, is redis_script_write_call()'s and the same in both forms. */
void redis_script_write_sha(const struct redis_script *script, size_t count, struct buffer *out);
void redis_script_write_source(const struct redis_script *script, size_t count, struct buffer *out);
void redis_script_write_call(struct buffer *out, struct redis_words keys,
                             struct redis_words arguments);

#endif

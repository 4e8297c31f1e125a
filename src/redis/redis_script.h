/*
 * A Lua script that Redis runs atomically. The first call on a connection brings its source, all others name it
 * by its SHA-1, computed once; so a server always knows it, and carries scripts out in the order they were sent. One
 * that forgot it nevertheless (SCRIPT FLUSH) says NOSCRIPT, and then gets the source again. Immutable once
 * made, so that workers may share it. All keys of one call must be in one slot.
 */
#ifndef ROLLCALL_REDIS_REDIS_SCRIPT_H
#define ROLLCALL_REDIS_REDIS_SCRIPT_H

#include "base/buffer.h"
#include "base/slice.h"
#include "redis/protocol/redis_args.h"

#include <stdbool.h>
#include <stddef.h>

enum { REDIS_SHA_LEN = 40, REDIS_KNOWN_SCRIPTS_MAX = 64 };

struct redis_script {
    struct slice source; /* borrowed: usually a constant */
    char sha[REDIS_SHA_LEN + 1];
};

/* The scripts, by their sources, that a server was sent on one connection; zeroed when that begins. Those beyond the
 * bound count as known, and NOSCRIPT tells. */
struct redis_known_scripts {
    const char *sources[REDIS_KNOWN_SCRIPTS_MAX];
    size_t count;
};

/* False when the system's cryptography gives no SHA-1. */
bool redis_script_init(struct redis_script *script, struct slice source);

/* Whether it is known; it is from now on. */
bool redis_script_meet(struct redis_known_scripts *known, const struct redis_script *script);

/* Appends what names the script in a call with so many keys and arguments; what follows, from the number of
 * keys on, is redis_script_write_call()'s and the same in both forms. */
void redis_script_write_sha(const struct redis_script *script, size_t count, struct buffer *out);
void redis_script_write_source(const struct redis_script *script, size_t count, struct buffer *out);
void redis_script_write_call(struct buffer *out, struct redis_args keys,
                             struct redis_args arguments);

#endif

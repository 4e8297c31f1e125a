/*
 * A Lua script that Redis runs atomically. The first run on a connection sends its source, later runs name it
 * by its SHA-1, computed once; so the server has it, and runs scripts in the order they were sent. A
 * server that lost it nevertheless (SCRIPT FLUSH) answers NOSCRIPT, and then gets the source again.
 * Immutable once made, so workers may share it. All keys of one run must be in one slot.
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

/* The scripts, by their sources, that were sent on one connection; zeroed when it opens. Scripts beyond the
 * bound count as known; NOSCRIPT corrects that. */
struct redis_known_scripts {
    const char *sources[REDIS_KNOWN_SCRIPTS_MAX];
    size_t count;
};

/* Returns false when OpenSSL offers no SHA-1. */
bool redis_script_init(struct redis_script *script, struct slice source);

/* Marks the script as sent. Returns whether it was before, so that its SHA-1 suffices. */
bool redis_script_mark_sent(struct redis_known_scripts *known, const struct redis_script *script);

/* Appends the part of the command that names the script, for `count` keys and arguments together. The rest,
 * from the number of keys on, is the same in both forms: redis_script_write_arguments(). */
void redis_script_write_sha(const struct redis_script *script, size_t count, struct buffer *out);
void redis_script_write_source(const struct redis_script *script, size_t count, struct buffer *out);
void redis_script_write_arguments(struct buffer *out, struct redis_args keys,
                                  struct redis_args arguments);

#endif

#include "redis/redis_script.h"

#include "redis/protocol/resp.h"

#include <openssl/evp.h>
#include <stdio.h>

enum { SHA_BYTES = REDIS_SHA_LEN / 2, ARGS_BEFORE_KEYS = 3 };

bool redis_script_init(struct redis_script *script, struct slice source)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    script->source = source;
    if (EVP_Digest(source.data, source.len, digest, NULL, EVP_sha1(), NULL) != 1)
        return false;
    for (size_t i = 0; i < SHA_BYTES; i++)
        snprintf(script->sha + 2 * i, 3, "%02x", digest[i]);
    return true;
}

bool redis_script_mark_sent(struct redis_known_scripts *known, const struct redis_script *script)
{
    for (size_t i = 0; i < known->count; i++)
        if (known->sources[i] == script->source.data)
            return true;
    if (known->count == REDIS_KNOWN_SCRIPTS_MAX)
        return true;
    known->sources[known->count++] = script->source.data;
    return false;
}

void redis_script_write_sha(const struct redis_script *script, size_t count, struct buffer *out)
{
    resp_write_count(out, ARGS_BEFORE_KEYS + count);
    resp_write_argument(out, SLICE("EVALSHA"));
    resp_write_argument(out, (struct slice){script->sha, REDIS_SHA_LEN});
}

void redis_script_write_source(const struct redis_script *script, size_t count, struct buffer *out)
{
    resp_write_count(out, ARGS_BEFORE_KEYS + count);
    resp_write_argument(out, SLICE("EVAL"));
    resp_write_argument(out, script->source);
}

void redis_script_write_arguments(struct buffer *out, struct redis_args keys,
                                  struct redis_args arguments)
{
    resp_write_integer(out, (int64_t)keys.count);
    for (size_t i = 0; i < keys.count; i++)
        resp_write_argument(out, keys.items[i]);
    for (size_t i = 0; i < arguments.count; i++)
        resp_write_argument(out, arguments.items[i]);
}

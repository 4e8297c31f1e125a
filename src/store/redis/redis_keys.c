#include "store/redis/redis_keys.h"

#include <assert.h>

/* Where the next byte goes. */
struct key_writer {
    char *out;
    size_t len;
};

static void put(struct key_writer *key, struct slice text)
{
    assert(key->len + text.len <= REDIS_KEY_BYTES_MAX);
    if (text.len)
        memcpy(key->out + key->len, text.data, text.len);
    key->len += text.len;
}

static bool is_escape(struct slice text)
{
    return slice_starts_with(text, SLICE("%25")) || slice_starts_with(text, SLICE("%7D"));
}

/* Whether the id as it is would end the tag, or could be read as an encoded one. */
static bool needs_encoding(struct slice id)
{
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i] == '}' || is_escape(slice_after(id, i)))
            return true;
    return false;
}

static void put_encoded(struct key_writer *key, struct slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        if (id.data[i] == '%')
            put(key, SLICE("%25"));
        else if (id.data[i] == '}')
            put(key, SLICE("%7D"));
        else
            put(key, (struct slice){id.data + i, 1});
    }
}

struct slice redis_key_user(const struct redis_keys *keys, char out[REDIS_KEY_BYTES_MAX],
                            const char *prefix, struct slice user, const char *suffix)
{
    struct key_writer key = {.out = out};
    assert(user.len > 0); /* braces around nothing are no tag */
    put(&key, slice_of(prefix));
    if (keys->cluster)
        put(&key, SLICE("{"));
    if (keys->cluster && needs_encoding(user))
        put_encoded(&key, user);
    else
        put(&key, user);
    if (keys->cluster)
        put(&key, SLICE("}"));
    put(&key, slice_of(suffix));
    return (struct slice){out, key.len};
}

struct slice redis_key_plain(char out[REDIS_KEY_BYTES_MAX], const char *prefix, struct slice id)
{
    struct key_writer key = {.out = out};
    put(&key, slice_of(prefix));
    put(&key, id);
    return (struct slice){out, key.len};
}

/* Without a '}' the whole of a key decides its slot, and so does the whole of it as a tag. */
struct slice redis_key_beside(char out[REDIS_KEY_BYTES_MAX], const char *prefix, struct slice key,
                              struct slice id)
{
    struct key_writer written = {.out = out};
    if (memchr(key.data, '}', key.len))
        return SLICE_NONE;
    put(&written, slice_of(prefix));
    put(&written, SLICE("{"));
    put(&written, key);
    put(&written, SLICE("}:"));
    put(&written, id);
    return (struct slice){out, written.len};
}

/* Undoes put_encoded() where it was done. False: nothing is written so. */
static bool put_decoded(struct key_writer *key, struct slice text)
{
    bool encoded = false;
    for (size_t i = 0; i < text.len && !encoded; i++)
        encoded = is_escape(slice_after(text, i));
    for (size_t i = 0; i < text.len; i++) {
        struct slice left = slice_after(text, i);
        bool escape = is_escape(left);
        if (encoded && left.data[0] == '%' && !escape)
            return false;
        put(key, escape ? slice_starts_with(left, SLICE("%25")) ? SLICE("%") : SLICE("}")
                        : slice_first(left, 1));
        i += escape ? 2 : 0;
    }
    return !encoded || needs_encoding((struct slice){key->out, key->len});
}

bool redis_key_read_user(const struct redis_keys *keys, char out[REDIS_KEY_BYTES_MAX],
                         struct slice key, const char *prefix, struct slice *user,
                         struct slice *rest)
{
    struct key_writer written = {.out = out};
    struct slice text = slice_after(key, strlen(prefix));
    *rest = SLICE_NONE;
    if (!slice_starts_with(key, slice_of(prefix)) || text.len == 0 ||
        text.len > REDIS_KEY_BYTES_MAX)
        return false;
    if (!keys->cluster) {
        put(&written, text);
    } else {
        struct slice tag;
        *rest = slice_split(slice_after(text, 1), '}', &tag);
        if (text.data[0] != '{' || !rest->data || tag.len == 0 || !put_decoded(&written, tag))
            return false;
    }
    *user = (struct slice){out, written.len};
    return true;
}

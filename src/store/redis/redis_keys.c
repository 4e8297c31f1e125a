#include "store/redis/redis_keys.h"

#include <assert.h>

/* A key that is being written. */
struct key_writer {
    char *out;
    size_t len;
};

static void key_append(struct key_writer *key, struct slice text)
{
    assert(key->len + text.len <= REDIS_KEY_BYTES_MAX);
    if (text.len)
        memcpy(key->out + key->len, text.data, text.len);
    key->len += text.len;
}

static bool starts_with_key_escape(struct slice text)
{
    return slice_starts_with(text, SLICE("%25")) || slice_starts_with(text, SLICE("%7D"));
}

/* Whether the plain id would end the hash tag, or would look like an encoded id. */
static bool needs_key_encoding(struct slice id)
{
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i] == '}' || starts_with_key_escape(slice_after(id, i)))
            return true;
    return false;
}

static void key_append_encoded(struct key_writer *key, struct slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        if (id.data[i] == '%')
            key_append(key, SLICE("%25"));
        else if (id.data[i] == '}')
            key_append(key, SLICE("%7D"));
        else
            key_append(key, (struct slice){id.data + i, 1});
    }
}

struct slice redis_key_user(const struct redis_keys *keys, char out[REDIS_KEY_BYTES_MAX],
                            const char *prefix, struct slice user, const char *suffix)
{
    struct key_writer key = {.out = out};
    assert(user.len > 0); /* empty braces are not a hash tag */
    key_append(&key, slice_of(prefix));
    if (keys->cluster)
        key_append(&key, SLICE("{"));
    if (keys->cluster && needs_key_encoding(user))
        key_append_encoded(&key, user);
    else
        key_append(&key, user);
    if (keys->cluster)
        key_append(&key, SLICE("}"));
    key_append(&key, slice_of(suffix));
    return (struct slice){out, key.len};
}

struct slice redis_key_plain(char out[REDIS_KEY_BYTES_MAX], const char *prefix, struct slice id)
{
    struct key_writer key = {.out = out};
    key_append(&key, slice_of(prefix));
    key_append(&key, id);
    return (struct slice){out, key.len};
}

/* A key without a '}' has no hash tag, so it hashes as a whole, as it does when it is the tag of another key. */
struct slice redis_key_beside(char out[REDIS_KEY_BYTES_MAX], const char *prefix, struct slice key,
                              struct slice id)
{
    struct key_writer written = {.out = out};
    if (memchr(key.data, '}', key.len))
        return SLICE_NONE;
    key_append(&written, slice_of(prefix));
    key_append(&written, SLICE("{"));
    key_append(&written, key);
    key_append(&written, SLICE("}:"));
    key_append(&written, id);
    return (struct slice){out, written.len};
}

/* Decodes the text if it is encoded. Returns false when key_append_encoded() cannot have written it. */
static bool key_append_decoded(struct key_writer *key, struct slice text)
{
    bool encoded = false;
    for (size_t i = 0; i < text.len && !encoded; i++)
        encoded = starts_with_key_escape(slice_after(text, i));
    for (size_t i = 0; i < text.len; i++) {
        struct slice left = slice_after(text, i);
        bool escape = starts_with_key_escape(left);
        if (encoded && left.data[0] == '%' && !escape)
            return false;
        key_append(key, escape ? slice_starts_with(left, SLICE("%25")) ? SLICE("%") : SLICE("}")
                               : slice_first(left, 1));
        i += escape ? 2 : 0;
    }
    return !encoded || needs_key_encoding((struct slice){key->out, key->len});
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
        key_append(&written, text);
    } else {
        struct slice tag;
        *rest = slice_split(slice_after(text, 1), '}', &tag);
        if (text.data[0] != '{' || !rest->data || tag.len == 0 ||
            !key_append_decoded(&written, tag))
            return false;
    }
    *user = (struct slice){out, written.len};
    return true;
}

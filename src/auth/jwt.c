#include "auth/jwt.h"

#include "auth/jwt_claims.h"
#include "auth/keys/key.h"
#include "text/base64url.h"
#include "text/json.h"

enum { DECODED_BYTES_MAX = JWT_BYTES_MAX / 4 * 3 + 2 };

/* The parts of a token, still encoded. */
struct token_parts {
    struct slice header;
    struct slice claims;
    struct slice signature;
    struct slice signed_text; /* header, dot, claims: the signed bytes */
};

static bool split_token(struct slice token, struct token_parts *out)
{
    struct slice rest = slice_split(token, '.', &out->header);
    if (!rest.data)
        return false;
    out->signature = slice_split(rest, '.', &out->claims);
    if (!out->signature.data || out->signature.len == 0)
        return false;
    out->signed_text = slice_first(token, out->header.len + 1 + out->claims.len);
    return out->header.len > 0 && out->claims.len > 0;
}

struct token_header {
    struct slice algorithm; /* data is NULL if absent */
    struct slice key_name;
    bool critical;
    bool duplicate;
};

static void read_token_string(struct json *json, struct slice *value, bool *duplicate)
{
    *duplicate |= value->data != NULL;
    json_string(json, value);
}

static bool read_token_header(char *text, size_t len, struct token_header *out)
{
    struct json json;
    struct slice name;
    *out = (struct token_header){0};
    json_init(&json, text, len);
    json_object(&json);
    while (json_member(&json, &name)) {
        if (slice_is(name, "alg")) {
            read_token_string(&json, &out->algorithm, &out->duplicate);
        } else if (slice_is(name, "kid")) {
            read_token_string(&json, &out->key_name, &out->duplicate);
        } else {
            out->critical |= slice_is(name, "crit");
            json_skip(&json);
        }
    }
    return json_done(&json) && out->algorithm.data && !out->duplicate;
}

/* An empty `kid` names a key that cannot exist; it is not the same as no `kid`. */
static enum jwt_result choose_token_keys(const struct key_set *keys,
                                         const struct token_header *header,
                                         struct key_set_candidates *out)
{
    enum key_algorithm algorithm;
    if (header->critical)
        return JWT_CRITICAL_EXTENSION;
    if (!key_algorithm_parse(header->algorithm, &algorithm))
        return JWT_WRONG_ALGORITHM;
    if (header->key_name.data && header->key_name.len == 0)
        return JWT_UNKNOWN_KEY;
    switch (key_set_choose(keys, header->key_name, algorithm, out)) {
    case KEY_SET_CHOSEN:
        return JWT_OK;
    case KEY_SET_WRONG_ALGORITHM:
        return JWT_WRONG_ALGORITHM;
    case KEY_SET_AMBIGUOUS:
        return JWT_AMBIGUOUS_KEY;
    case KEY_SET_UNKNOWN_NAME:
        break;
    }
    return JWT_UNKNOWN_KEY;
}

enum jwt_result jwt_verify(const struct key_set *keys, const struct jwt_policy *policy,
                           struct slice token, int64_t wall_ms, struct identity *out)
{
    unsigned char decoded[DECODED_BYTES_MAX]; /* one part at a time */
    size_t len;
    struct token_parts parts;
    struct token_header header;
    struct key_set_candidates candidates;
    if (token.len > JWT_BYTES_MAX)
        return JWT_TOO_LONG;
    if (!split_token(token, &parts) || !base64url_decode(parts.header, decoded, &len))
        return JWT_MALFORMED;
    if (!read_token_header((char *)decoded, len, &header))
        return JWT_BAD_HEADER;
    enum jwt_result result = choose_token_keys(keys, &header, &candidates);
    if (result != JWT_OK)
        return result;
    if (!base64url_decode(parts.signature, decoded, &len))
        return JWT_MALFORMED;
    size_t tried = 0;
    while (tried < candidates.count &&
           !key_verify(candidates.keys[tried], parts.signed_text, decoded, len))
        tried++;
    if (tried == candidates.count)
        return JWT_BAD_SIGNATURE;
    if (!base64url_decode(parts.claims, decoded, &len))
        return JWT_MALFORMED;
    result = jwt_claims_check((char *)decoded, len, policy, wall_ms, out);
    if (jwt_result_names_user(result))
        out->key_tag = candidates.keys[tried]->tag;
    return result;
}

bool jwt_names_unknown_key(const struct key_set *keys, struct slice token)
{
    unsigned char decoded[DECODED_BYTES_MAX];
    size_t len;
    struct token_parts parts;
    struct token_header header;
    return token.len <= JWT_BYTES_MAX && split_token(token, &parts) &&
           base64url_decode(parts.header, decoded, &len) &&
           read_token_header((char *)decoded, len, &header) && header.key_name.len > 0 &&
           !key_set_has_name(keys, header.key_name);
}

static const struct {
    const char *label;
    const char *text;
} descriptions[JWT_RESULT_COUNT] = {
#define JWT_RESULT_DESCRIPTION(name, label, text) [name] = {label, text},
    JWT_RESULTS(JWT_RESULT_DESCRIPTION)
#undef JWT_RESULT_DESCRIPTION
};

const char *jwt_result_label(enum jwt_result result)
{
    return descriptions[result].label;
}

const char *jwt_result_text(enum jwt_result result)
{
    return descriptions[result].text;
}

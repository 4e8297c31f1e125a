#include "auth/keys/jwk.h"

#include "text/base64url.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/param_build.h>

enum {
    FIELD_BYTES = 32, /* a coordinate of P-256, or an Ed25519 key */
    NUMBER_TEXT_MAX = (KEY_SIGNATURE_BYTES_MAX + 1) * 4 / 3 + 1,
    NUMBER_BYTES_MAX = NUMBER_TEXT_MAX / 4 * 3 + 2,
};

enum jwk_json_member { KTY, USE, ALG, KID, CRV, N, E, X, Y, JSON_MEMBER_COUNT };

static const char *const json_member_names[JSON_MEMBER_COUNT] = {"kty", "use", "alg", "kid", "crv",
                                                                 "n",   "e",   "x",   "y"};

/* JSON members that only private or symmetric keys have (RFC 7518 §6, RFC 8037 §2). */
static const char *const secret_names[] = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"};

struct jwk_json_members {
    struct slice value[JSON_MEMBER_COUNT]; /* data is NULL if absent */
    bool secret;
    bool duplicate;
    bool has_key_ops;
    bool may_verify;
};

static void read_jwk_key_ops(struct json *json, struct jwk_json_members *members)
{
    members->duplicate |= members->has_key_ops;
    members->has_key_ops = true;
    json_array(json);
    while (json_element(json)) {
        struct slice key_op;
        if (json_string(json, &key_op) && slice_is(key_op, "verify"))
            members->may_verify = true;
    }
}

static void read_jwk_json_member(struct json *json, struct slice name,
                                 struct jwk_json_members *members)
{
    for (size_t i = 0; i < JSON_MEMBER_COUNT; i++) {
        if (slice_is(name, json_member_names[i])) {
            members->duplicate |= members->value[i].data != NULL;
            json_string(json, &members->value[i]);
            return;
        }
    }
    if (slice_is(name, "key_ops")) {
        read_jwk_key_ops(json, members);
        return;
    }
    for (size_t i = 0; i < sizeof(secret_names) / sizeof(secret_names[0]); i++)
        members->secret |= slice_is(name, secret_names[i]);
    json_skip(json);
}

/* Decodes a number of any length that an RSA key may have. */
static BIGNUM *read_jwk_number(struct slice text)
{
    unsigned char bytes[NUMBER_BYTES_MAX];
    size_t len;
    if (text.len == 0 || text.len > NUMBER_TEXT_MAX || !base64url_decode(text, bytes, &len))
        return NULL;
    return BN_bin2bn(bytes, (int)len, NULL);
}

static bool read_jwk_field(struct slice text, unsigned char out[FIELD_BYTES])
{
    unsigned char bytes[FIELD_BYTES + 2];
    size_t len;
    if (text.len != 43 || !base64url_decode(text, bytes, &len) || len != FIELD_BYTES)
        return false;
    memcpy(out, bytes, FIELD_BYTES);
    return true;
}

static EVP_PKEY *make_jwk_public_key(const char *type, OSSL_PARAM *parameters)
{
    EVP_PKEY *pkey = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (context && parameters && EVP_PKEY_fromdata_init(context) == 1)
        EVP_PKEY_fromdata(context, &pkey, EVP_PKEY_PUBLIC_KEY, parameters);
    EVP_PKEY_CTX_free(context);
    return pkey;
}

static EVP_PKEY *make_jwk_rsa_key(const struct jwk_json_members *members)
{
    EVP_PKEY *pkey = NULL;
    OSSL_PARAM *parameters = NULL;
    BIGNUM *n = read_jwk_number(members->value[N]);
    BIGNUM *e = read_jwk_number(members->value[E]);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (n && e && builder && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1) {
        parameters = OSSL_PARAM_BLD_to_param(builder);
        pkey = make_jwk_public_key("RSA", parameters);
    }
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    BN_free(n);
    BN_free(e);
    return pkey;
}

/* OpenSSL refuses a point that is not on the curve. */
static EVP_PKEY *make_jwk_p256_key(const struct jwk_json_members *members)
{
    unsigned char point[1 + 2 * FIELD_BYTES] = {POINT_CONVERSION_UNCOMPRESSED};
    if (!read_jwk_field(members->value[X], point + 1) ||
        !read_jwk_field(members->value[Y], point + 1 + FIELD_BYTES))
        return NULL;
    char group[] = "P-256";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)),
        OSSL_PARAM_construct_end(),
    };
    return make_jwk_public_key("EC", parameters);
}

static EVP_PKEY *make_jwk_ed25519_key(const struct jwk_json_members *members)
{
    unsigned char raw[FIELD_BYTES];
    if (!read_jwk_field(members->value[X], raw))
        return NULL;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, sizeof(raw));
}

static const struct jwk_kind {
    const char *type;
    const char *curve; /* NULL: the type has none */
    const char *algorithm;
    EVP_PKEY *(*make)(const struct jwk_json_members *members);
} kinds[] = {
    {"RSA", NULL, "RS256", make_jwk_rsa_key},
    {"EC", "P-256", "ES256", make_jwk_p256_key},
    {"OKP", "Ed25519", "EdDSA", make_jwk_ed25519_key},
};

static const struct jwk_kind *find_jwk_kind(const struct jwk_json_members *members)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (slice_is(members->value[KTY], kinds[i].type) &&
            (!kinds[i].curve || slice_is(members->value[CRV], kinds[i].curve)))
            return &kinds[i];
    }
    return NULL;
}

static bool is_jwk_value_absent_or(struct slice value, const char *wanted)
{
    return !value.data || slice_is(value, wanted);
}

static enum jwk_result refuse_jwk(struct jwk *out, const char *reason)
{
    out->reason = reason;
    return JWK_REFUSED;
}

static enum jwk_result skip_jwk(struct jwk *out, const char *reason)
{
    out->reason = reason;
    return JWK_SKIPPED;
}

static enum jwk_result build_jwk(const struct jwk_json_members *members, struct jwk *out)
{
    if (members->duplicate)
        return refuse_jwk(out, "has a duplicate JSON member");
    if (!members->value[KTY].data)
        return refuse_jwk(out, "has no `kty`");
    if (slice_is(members->value[KTY], "oct"))
        return refuse_jwk(out, "is a symmetric key, expected public keys only");
    if (members->secret)
        return refuse_jwk(out, "is a private key, expected public keys only");
    const struct jwk_kind *kind = find_jwk_kind(members);
    if (!kind)
        return skip_jwk(out, "has a `kty` or `crv` that is not RSA, P-256 or Ed25519");
    if (!is_jwk_value_absent_or(members->value[ALG], kind->algorithm))
        return skip_jwk(out,
                        "has an `alg` that is not RS256, ES256 or EdDSA or does not fit its type");
    if (!is_jwk_value_absent_or(members->value[USE], "sig"))
        return skip_jwk(out, "has a `use` that is not `sig`");
    if (members->has_key_ops && !members->may_verify)
        return skip_jwk(out, "has `key_ops` without `verify`");
    out->pkey = kind->make(members);
    return out->pkey ? JWK_OK
                     : refuse_jwk(out, "has numbers that are missing or do not form a key");
}

enum jwk_result jwk_read(struct json *json, struct jwk *out)
{
    struct jwk_json_members members = {0};
    struct slice name;
    *out = (struct jwk){0};
    json_object(json);
    while (json_member(json, &name))
        read_jwk_json_member(json, name, &members);
    if (json->error)
        return refuse_jwk(out, "is not a JSON object");
    out->id = members.value[KID];
    return build_jwk(&members, out);
}

/*
 * Tests the verification of tokens and everything it reads: tokens, headers, claims and key files.
 *
 * The private halves of the sample keys were deleted after the sample tokens were signed, so nobody can make
 * another valid token. The property is therefore simple: a token that verifies has the header and claims of a
 * sample. (Not the same signature: ECDSA has two for each message.)
 *
 * Input: a letter, then a token (t), a header (h), claims (c) or a key file (k).
 */
#include "auth/jwt.h"
#include "auth/jwt_claims.h"
#include "auth/user_id.h"
#include "fuzz.h"
#include "log/log.h"
#include "text/base64url.h"

static const int64_t now_ms = INT64_C(1700000000000);

static const char sample_keys[] =
    "{\"keys\":[{\"e\":\"AQAB\",\"kty\":\"RSA\",\"n\":\"vrQS9u2kN7eB1pQib8cGCCMrcSkfrl_mX"
    "YHxxO7JOOnDmMOSzM3_vqjYtm3ddfy-Qefj7PdNDHvSG6pEpNJh9av7gLioYwHPbzxDpXkhozI1IHLC93CJu"
    "BkeBUcQHk88TMPDzajliA3fke_aw63yW9GkCnCvDS79atrxdqIm-6-DzSG0K0vzbx-u5B32Qqc91fse8BOOF"
    "s3yjnUAjncVoqryVecmuGM9HX2sgpT73hj3m6eUfmbuxf1LZCaGqKuD3zCF0kkVuZWEp0y8rcKriP1mQwtBh"
    "aXRfWswfhWXnYwc0eKe8ozY-fcw8hBHqtUSBAZgethRjnBuw9ljngVsyQ\",\"kid\":\"r\"},{\"crv\":"
    "\"P-256\",\"kty\":\"EC\",\"x\":\"1vdnXm95vE6-0HQNEr5lNzScil6xKQDpJt_DcRbhFlc\",\"y\""
    ":\"Nj81hrN971yrc8qizhzhGn9jWTNqTfgC-9V3xchEv-Y\",\"kid\":\"e\"},{\"crv\":\"Ed25519\""
    ",\"kty\":\"OKP\",\"x\":\"6husmzRwmmxQUFLkYl1w4RiivKrsMLVNbGlywCehYyI\",\"kid\":\"d\""
    "}]}";

static const char *const sample_tokens[] = {
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJzdWIiOiJhbGljZSIsImV4cCI6NDAwMDAwMDAwMH0.REV11"
    "NkmbhklAJuf54o3EuLZMvJMQYsuL_p4rud6iKHXZTL7jzMkneSQoVg212La6MRENNec0IEPXLW8Pt3KPXdeP"
    "-qxpY_4h8PE1RbOMPl8it44lL92j8layxeP91rtj3R0VuMvsM9HWu4sC8JXYAGXlVrbCXWXNs5QPV7cE823v"
    "sSthaTY9cRn-FFbZHg8BSbEiB5X3KYXg6xSoWazOaundrVkgtxcbrXFuLzvh94U0wg1r8Rce_JAz7WTAJFnE"
    "2E8j8ZrZzb6Rlg3pOIuIYH1usND3unO9KnDV9rXgtXn84bbuqm6gdlaWCRGjBcg2y6OAANQLzSNmYYZe__bM"
    "A",
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImUifQ.eyJzdWIiOiJhbGljZSIsImV4cCI6NDAwMDAwMDAwMH0.cFWEq"
    "FsPJzPOZDW36E_5XBCujdjQTlvkdgL8FPZIwZUcsrL6Yq1wVGIU7by1vY3rbriIzb1nHf1eCgm_e4gXEA",
    "eyJhbGciOiJFZERTQSIsImtpZCI6ImQifQ.eyJzdWIiOiJhbGljZSIsImV4cCI6NDAwMDAwMDAwMH0.U-MfI"
    "la5YX8ELLvUHlDUYKsDxKYHwE-cnVR0zKkEOkffV2YOXJ__HHH82D74GP5nlGFcyIPnto1H1S-PRxkCBg",
};

enum { SAMPLE_COUNT = sizeof(sample_tokens) / sizeof(sample_tokens[0]) };

/* Returns the signed part: everything before the last dot. */
static struct slice signed_text(struct slice token)
{
    const char *dot = token.len ? memrchr(token.data, '.', token.len) : NULL;
    return dot ? slice_first(token, (size_t)(dot - token.data)) : SLICE_NONE;
}

static bool was_signed(struct slice token)
{
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        if (slice_equal(signed_text(token), signed_text(slice_of(sample_tokens[i]))))
            return true;
    }
    return false;
}

static enum jwt_result verify(const struct key_set *keys, struct slice token)
{
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    struct identity identity;
    enum jwt_result result = jwt_verify(keys, &policy, token, now_ms, &identity);
    fuzz_require(result != JWT_OK || slice_is(identity_user(&identity), "alice"),
                 "the identity is the token's");
    return result;
}

/* Loaded once, since it never changes. The samples must verify, or nothing is tested. */
static const struct key_set *samples(void)
{
    static struct key_set *keys;
    if (keys)
        return keys;
    char text[sizeof(sample_keys)];
    struct auth_error error;
    log_init(LOG_LEVEL_ERROR, false);
    memcpy(text, sample_keys, sizeof(text));
    keys = key_set_parse("samples", text, sizeof(text) - 1, &error);
    fuzz_require(keys != NULL, "the sample keys load");
    for (size_t i = 0; i < SAMPLE_COUNT; i++)
        fuzz_require(verify(keys, slice_of(sample_tokens[i])) == JWT_OK, "the samples verify");
    return keys;
}

static void try_token(const struct key_set *keys, struct slice token)
{
    if (verify(keys, token) == JWT_OK)
        fuzz_require(was_signed(token), "nothing verifies that was not signed");
}

/* Verifies the given header with valid claims and an invalid signature. */
static void try_header(const struct key_set *keys, struct slice header)
{
    static const char claims[] = "{\"sub\":\"alice\",\"exp\":4000000000}";
    static const unsigned char signature[64] = {1};
    struct buffer token = BUFFER_INIT;
    base64url_encode(&token, header.data, header.len);
    buffer_append_byte(&token, '.');
    base64url_encode(&token, claims, strlen(claims));
    buffer_append_byte(&token, '.');
    base64url_encode(&token, signature, sizeof(signature));
    fuzz_require(verify(keys, buffer_slice(&token)) != JWT_OK, "no header forges a token");
    buffer_free(&token);
}

static void try_claims(char *text, size_t len)
{
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    struct identity identity;
    policy.audience = SLICE("chat");
    if (jwt_claims_check(text, len, &policy, now_ms, &identity) != JWT_OK)
        return;
    fuzz_require(user_id_valid(identity_user(&identity)), "the user id is valid");
    fuzz_require(identity.expires_at_wall_ms > now_ms, "the token has not expired");
    fuzz_require(identity.scopes <= (IDENTITY_SCOPE_ADMIN | IDENTITY_SCOPE_DELIVER),
                 "only known scopes are set");
}

static void try_keys(char *text, size_t len)
{
    struct auth_error error = {""};
    struct key_set *keys = key_set_parse("input", text, len, &error);
    fuzz_require(keys || slice_starts_with(slice_of(error.text), SLICE("input: ")),
                 "a refusal names the file");
    fuzz_require(!keys || (key_set_count(keys) > 0 && key_set_count(keys) <= KEY_SET_KEYS_MAX),
                 "a set has keys, and not too many");
    key_set_release(&keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct slice rest = {(const char *)data + 1, size - 1};
    char *copy = fuzz_copy(rest.data, rest.len);
    const struct key_set *keys = samples();
    if (data[0] == 't')
        try_token(keys, rest);
    else if (data[0] == 'h')
        try_header(keys, rest);
    else if (data[0] == 'c')
        try_claims(copy, rest.len);
    else
        try_keys(copy, rest.len);
    free(copy);
    return 0;
}

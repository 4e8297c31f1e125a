#include "auth/jwt_claims.h"

#include "text/json.h"

/* The end of the year 9999. What lies beyond is taken for it, so that no sum overflows. */
static const int64_t time_max_ms = INT64_C(253402300799999);

struct claims {
    struct slice audience_wanted;
    struct slice subject;
    struct slice issuer;
    struct slice scope;
    double expires_at_seconds;
    double not_before_seconds;
    bool audience_matches;
};

static void read_subject(struct json *json, struct claims *claims)
{
    json_string(json, &claims->subject);
}

static void read_expiry(struct json *json, struct claims *claims)
{
    json_double(json, &claims->expires_at_seconds);
}

static void read_not_before(struct json *json, struct claims *claims)
{
    json_double(json, &claims->not_before_seconds);
}

static void read_issuer(struct json *json, struct claims *claims)
{
    json_string(json, &claims->issuer);
}

static void read_scope(struct json *json, struct claims *claims)
{
    json_string(json, &claims->scope);
}

static void match_audience(struct json *json, struct claims *claims)
{
    struct slice audience;
    if (json_string(json, &audience))
        claims->audience_matches |= slice_equal(audience, claims->audience_wanted);
}

static void read_audience(struct json *json, struct claims *claims)
{
    if (json_peek(json) != JSON_ARRAY) {
        match_audience(json, claims);
        return;
    }
    json_array(json);
    while (json_element(json))
        match_audience(json, claims);
}

enum claim { SUBJECT, EXPIRY, NOT_BEFORE, ISSUER, AUDIENCE, SCOPE, CLAIM_COUNT };

static const struct {
    const char *name;
    void (*read)(struct json *json, struct claims *claims);
} claim_readers[CLAIM_COUNT] = {
    [SUBJECT] = {"sub", read_subject},       [EXPIRY] = {"exp", read_expiry},
    [NOT_BEFORE] = {"nbf", read_not_before}, [ISSUER] = {"iss", read_issuer},
    [AUDIENCE] = {"aud", read_audience},     [SCOPE] = {"scope", read_scope},
};

/* Reads one member; `seen` has a bit for each claim met so far. False when one stands twice. */
static bool read_claim(struct json *json, struct slice name, struct claims *claims, unsigned *seen)
{
    for (unsigned i = 0; i < CLAIM_COUNT; i++) {
        if (!slice_is(name, claim_readers[i].name))
            continue;
        if (*seen & 1u << i)
            return false;
        *seen |= 1u << i;
        claim_readers[i].read(json, claims);
        return true;
    }
    json_skip(json);
    return true;
}

static bool read_claims(char *text, size_t len, struct claims *claims, unsigned *seen)
{
    struct json json;
    struct slice name;
    json_init(&json, text, len);
    json_object(&json);
    while (json_member(&json, &name)) {
        if (!read_claim(&json, name, claims, seen))
            return false;
    }
    return json_done(&json);
}

static int64_t milliseconds(double seconds)
{
    if (!(seconds > 0))
        return 0;
    return seconds >= (double)time_max_ms / 1000 ? time_max_ms : (int64_t)(seconds * 1000);
}

static enum jwt_result check(const struct claims *claims, unsigned seen,
                             const struct jwt_policy *policy, int64_t wall_ms)
{
    if (!(seen & 1u << SUBJECT) || !user_id_valid(claims->subject))
        return JWT_BAD_SUBJECT;
    if (!(seen & 1u << EXPIRY))
        return JWT_NO_EXPIRY;
    if (seen & 1u << NOT_BEFORE &&
        wall_ms + policy->not_before_leeway_ms < milliseconds(claims->not_before_seconds))
        return JWT_NOT_YET_VALID;
    if (policy->issuer.len > 0 && !slice_equal(claims->issuer, policy->issuer))
        return JWT_WRONG_ISSUER;
    if (policy->audience.len > 0 && !claims->audience_matches)
        return JWT_WRONG_AUDIENCE;
    if (wall_ms >= milliseconds(claims->expires_at_seconds) + policy->expiry_leeway_ms)
        return JWT_EXPIRED;
    return JWT_OK;
}

uint32_t jwt_claims_scopes(struct slice scope)
{
    uint32_t scopes = 0;
    while (scope.len > 0) {
        struct slice name;
        scope = slice_split(scope, ' ', &name);
        if (slice_is(name, "admin"))
            scopes |= IDENTITY_SCOPE_ADMIN;
        else if (slice_is(name, "deliver"))
            scopes |= IDENTITY_SCOPE_DELIVER;
    }
    return scopes;
}

enum jwt_result jwt_claims_check(char *text, size_t len, const struct jwt_policy *policy,
                                 int64_t wall_ms, struct identity *out)
{
    struct claims claims = {.audience_wanted = policy->audience};
    unsigned seen = 0;
    if (!read_claims(text, len, &claims, &seen))
        return JWT_BAD_CLAIMS;
    enum jwt_result result = check(&claims, seen, policy, wall_ms);
    if (!jwt_result_names_user(result))
        return result;
    memcpy(out->user, claims.subject.data, claims.subject.len);
    out->user_len = (uint8_t)claims.subject.len;
    out->scopes = jwt_claims_scopes(claims.scope);
    out->expires_at_wall_ms = milliseconds(claims.expires_at_seconds);
    return result;
}

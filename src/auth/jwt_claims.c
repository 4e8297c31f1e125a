#include "auth/jwt_claims.h"

#include "text/json.h"

/* The end of the year 9999. Later times are clamped to it, so that no sum overflows. */
static const int64_t time_max_ms = INT64_C(253402300799999);

struct claims {
    struct slice audience_wanted;
    struct slice subject;
    struct slice issuer;
    struct slice scope;
    double expires_at_seconds;
    double issued_at_seconds;
    double not_before_seconds;
    bool audience_matches;
};

static void match_token_audience(struct json *json, struct claims *claims)
{
    struct slice audience;
    if (json_string(json, &audience))
        claims->audience_matches |= slice_equal(audience, claims->audience_wanted);
}

static void read_token_audience(struct json *json, struct claims *claims)
{
    if (json_peek(json) != JSON_ARRAY) {
        match_token_audience(json, claims);
        return;
    }
    json_array(json);
    while (json_element(json))
        match_token_audience(json, claims);
}

/* It is not required, so one that is no number counts as absent. */
static void read_token_issue_time(struct json *json, struct claims *claims)
{
    if (json_peek(json) == JSON_NUMBER)
        json_double(json, &claims->issued_at_seconds);
    else
        json_skip(json);
}

enum claim { SUBJECT, EXPIRY, ISSUED_AT, NOT_BEFORE, ISSUER, AUDIENCE, SCOPE, CLAIM_COUNT };

static const char *const claim_names[CLAIM_COUNT] = {
    [SUBJECT] = "sub", [EXPIRY] = "exp",   [ISSUED_AT] = "iat", [NOT_BEFORE] = "nbf",
    [ISSUER] = "iss",  [AUDIENCE] = "aud", [SCOPE] = "scope",
};

/* Reads one JSON member; `seen` has a bit for each claim read before. Returns false for a duplicate. */
static bool read_token_claim(struct json *json, struct slice name, struct claims *claims,
                             unsigned *seen)
{
    unsigned claim = 0;
    while (claim < CLAIM_COUNT && !slice_is(name, claim_names[claim]))
        claim++;
    if (claim < CLAIM_COUNT && *seen & 1u << claim)
        return false;
    *seen |= claim < CLAIM_COUNT ? 1u << claim : 0;
    switch ((enum claim)claim) {
    case SUBJECT:
        json_string(json, &claims->subject);
        break;
    case EXPIRY:
        json_double(json, &claims->expires_at_seconds);
        break;
    case ISSUED_AT:
        read_token_issue_time(json, claims);
        break;
    case NOT_BEFORE:
        json_double(json, &claims->not_before_seconds);
        break;
    case ISSUER:
        json_string(json, &claims->issuer);
        break;
    case AUDIENCE:
        read_token_audience(json, claims);
        break;
    case SCOPE:
        json_string(json, &claims->scope);
        break;
    case CLAIM_COUNT:
        json_skip(json);
        break;
    }
    return true;
}

static int64_t claim_milliseconds(double seconds)
{
    if (!(seconds > 0))
        return 0;
    return seconds >= (double)time_max_ms / 1000 ? time_max_ms : (int64_t)(seconds * 1000);
}

static enum jwt_result check_claim_values(const struct claims *claims, unsigned seen,
                                          const struct jwt_policy *policy, int64_t wall_ms)
{
    if (!(seen & 1u << SUBJECT) || !user_id_valid(claims->subject))
        return JWT_BAD_SUBJECT;
    if (!(seen & 1u << EXPIRY))
        return JWT_NO_EXPIRY;
    if (seen & 1u << NOT_BEFORE &&
        wall_ms + policy->not_before_leeway_ms < claim_milliseconds(claims->not_before_seconds))
        return JWT_NOT_YET_VALID;
    if (policy->issuer.len > 0 && !slice_equal(claims->issuer, policy->issuer))
        return JWT_WRONG_ISSUER;
    if (policy->audience.len > 0 && !claims->audience_matches)
        return JWT_WRONG_AUDIENCE;
    if (wall_ms >= claim_milliseconds(claims->expires_at_seconds) + policy->expiry_leeway_ms)
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
        else if (slice_is(name, "service"))
            scopes |= IDENTITY_SCOPE_SERVICE;
    }
    return scopes;
}

enum jwt_result jwt_claims_check(char *text, size_t len, const struct jwt_policy *policy,
                                 int64_t wall_ms, struct identity *out)
{
    struct claims claims = {.audience_wanted = policy->audience};
    unsigned seen = 0;
    struct json json;
    struct slice name;
    json_init(&json, text, len);
    json_object(&json);
    while (json_member(&json, &name)) {
        if (!read_token_claim(&json, name, &claims, &seen))
            return JWT_BAD_CLAIMS;
    }
    if (!json_done(&json))
        return JWT_BAD_CLAIMS;
    enum jwt_result result = check_claim_values(&claims, seen, policy, wall_ms);
    if (!jwt_result_names_user(result))
        return result;
    memcpy(out->user, claims.subject.data, claims.subject.len);
    out->user_len = (uint8_t)claims.subject.len;
    out->scopes = jwt_claims_scopes(claims.scope);
    out->issued_at_s = claim_milliseconds(claims.issued_at_seconds) / 1000;
    out->expires_at_wall_ms = claim_milliseconds(claims.expires_at_seconds);
    return result;
}

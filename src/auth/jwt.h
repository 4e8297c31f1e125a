/*
 * Verifying a bearer's token: a signed JWT (RFC 7519) in compact form.
 *
 * The order is fixed: shape, header, choice of key, signature, and only then the claims, so that
 * nothing an attacker wrote is acted upon before it is known who signed it. What needs no
 * cryptography comes first, so that nonsense is cheap to refuse.
 *
 * - The algorithm is the key's. A header whose `alg` differs is refused; so is anything that is not
 *   RS256, ES256 or EdDSA, and any `crit` extension. Keys in the header (`jwk`, `jku`, …) are not
 *   looked at.
 * - `sub` (a user id) and `exp` are required; `nbf` is honoured; `iss` and `aud` are when the
 * policy names one. `scope` is a list separated by spaces.
 * - Base64url and JSON are read strictly, and a member that is read may stand only once.
 *
 * Verification has no state: any thread may call it with a set it holds a reference to. It
 * allocates nothing but what OpenSSL does for the length of the call. No result or text ever
 * carries a part of the token.
 */
#ifndef ROLLCALL_AUTH_JWT_H
#define ROLLCALL_AUTH_JWT_H

#include "auth/identity.h"
#include "auth/keys/key_set.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { JWT_BYTES_MAX = 8192 };

/* Name of the result, its label in metrics, and its text for logs and error messages. */
#define JWT_RESULTS(X)                                                                             \
    X(JWT_OK, "ok", "token is valid")                                                              \
    X(JWT_TOO_LONG, "too_long", "token is longer than 8192 bytes")                                 \
    X(JWT_MALFORMED, "malformed", "token is not three parts of base64url")                         \
    X(JWT_BAD_HEADER, "bad_header", "token header is not the JSON object it should be")            \
    X(JWT_CRITICAL_EXTENSION, "critical_extension", "token demands an extension")                  \
    X(JWT_WRONG_ALGORITHM, "wrong_algorithm", "token algorithm is not that of the key")            \
    X(JWT_UNKNOWN_KEY, "unknown_key", "token names a key that is not known")                       \
    X(JWT_AMBIGUOUS_KEY, "ambiguous_key", "token names no key and too many would fit")             \
    X(JWT_BAD_SIGNATURE, "bad_signature", "token signature does not match")                        \
    X(JWT_BAD_CLAIMS, "bad_claims", "token claims are not the JSON object they should be")         \
    X(JWT_BAD_SUBJECT, "bad_subject",                                                              \
      "token needs a `sub` of 1 to 128 bytes without control characters")                          \
    X(JWT_NO_EXPIRY, "no_expiry", "token needs an `exp`")                                          \
    X(JWT_EXPIRED, "expired", "token has expired")                                                 \
    X(JWT_NOT_YET_VALID, "not_yet_valid", "token is not valid yet")                                \
    X(JWT_WRONG_ISSUER, "wrong_issuer", "token is from another issuer")                            \
    X(JWT_WRONG_AUDIENCE, "wrong_audience", "token is for another audience")

enum jwt_result {
#define JWT_RESULT_NAME(name, label, text) name,
    JWT_RESULTS(JWT_RESULT_NAME)
#undef JWT_RESULT_NAME
        JWT_RESULT_COUNT
};

/* What is asked of a token beyond a good signature. Plain values; the slices are borrowed. */
struct jwt_policy {
    struct slice issuer;   /* empty: any */
    struct slice audience; /* empty: any */
    int64_t expiry_leeway_ms;
    int64_t not_before_leeway_ms;
};

/* A token ends when it says; a clock that is a little behind the issuer's may still start it. */
#define JWT_POLICY_DEFAULT ((struct jwt_policy){.not_before_leeway_ms = 5000})

/* Whether the token was signed for somebody: it is good, or was and nothing but its time is over. */
static inline bool jwt_result_names_user(enum jwt_result result)
{
    return result == JWT_OK || result == JWT_EXPIRED;
}

/* Fills `out` if jwt_result_names_user() and leaves it alone otherwise. `wall_ms` is the current Unix
 * time. */
enum jwt_result jwt_verify(const struct key_set *keys, const struct jwt_policy *policy,
                           struct slice token, int64_t wall_ms, struct identity *out);

/* Static texts. */
const char *jwt_result_label(enum jwt_result result);
const char *jwt_result_text(enum jwt_result result);

#endif

/*
 * Verifies a token: a signed JWT (RFC 7519) in compact form.
 *
 * The order is fixed: shape, header, choice of key, signature, and only then the claims, so that
 * nothing an attacker wrote takes effect before the signer is known. The checks without
 * cryptography come first, so that nonsense is cheap to refuse.
 *
 * - The key determines the algorithm. A header with another `alg` is refused; so is anything but RS256,
 *   ES256, EdDSA or HS256, and any `crit` extension. Keys in the header (`jwk`, `jku`, …) are ignored.
 * - `sub` (a user id) and `exp` are required. `nbf` is checked; `iss` and `aud` are checked if the
 *   policy names one. `scope` is a list separated by spaces.
 * - Base64url and JSON are parsed strictly; a duplicate of a JSON member that is read is refused.
 *
 * Verification has no state: any thread may call it with a key set it holds a reference to. It
 * allocates nothing, except what OpenSSL allocates meanwhile. No result or text contains a
 * part of the token.
 */
#ifndef ROLLCALL_AUTH_JWT_H
#define ROLLCALL_AUTH_JWT_H

#include "auth/identity.h"
#include "auth/keys/key_set.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { JWT_BYTES_MAX = 8192 };

/* Name of the result, its label in metrics, its text for logs and error messages. */
#define JWT_RESULTS(X)                                                                             \
    X(JWT_OK, "ok", "token is valid")                                                              \
    X(JWT_TOO_LONG, "too_long", "token is longer than 8192 bytes")                                 \
    X(JWT_MALFORMED, "malformed", "token is not three base64url parts")                            \
    X(JWT_BAD_HEADER, "bad_header", "token header is not a valid JSON object")                     \
    X(JWT_CRITICAL_EXTENSION, "critical_extension", "token requires an unsupported extension")     \
    X(JWT_WRONG_ALGORITHM, "wrong_algorithm", "token algorithm does not match the key")            \
    X(JWT_UNKNOWN_KEY, "unknown_key", "token names an unknown key")                                \
    X(JWT_AMBIGUOUS_KEY, "ambiguous_key", "token names no key and too many keys fit")              \
    X(JWT_BAD_SIGNATURE, "bad_signature", "token signature does not match")                        \
    X(JWT_BAD_CLAIMS, "bad_claims", "token claims are not a valid JSON object")                    \
    X(JWT_BAD_SUBJECT, "bad_subject",                                                              \
      "token needs a `sub` of 1 to 128 bytes without control characters")                          \
    X(JWT_NO_EXPIRY, "no_expiry", "token needs an `exp`")                                          \
    X(JWT_EXPIRED, "expired", "token has expired")                                                 \
    X(JWT_NOT_YET_VALID, "not_yet_valid", "token is not valid yet")                                \
    X(JWT_WRONG_ISSUER, "wrong_issuer", "token is from another issuer")                            \
    X(JWT_WRONG_AUDIENCE, "wrong_audience", "token is for another audience")                       \
    X(JWT_REVOKED, "token_revoked", "token has been revoked")                                      \
    X(JWT_UNAVAILABLE, "unavailable", "tokens cannot be verified at present")

enum jwt_result {
#define JWT_RESULT_NAME(name, label, text) name,
    JWT_RESULTS(JWT_RESULT_NAME)
#undef JWT_RESULT_NAME
        JWT_RESULT_COUNT
};

/* What a token must satisfy besides a valid signature. Plain values; the slices are borrowed. */
struct jwt_policy {
    struct slice issuer;   /* empty: any */
    struct slice audience; /* empty: any */
    int64_t expiry_leeway_ms;
    int64_t not_before_leeway_ms;
};

/* There is no leeway for expiry; `nbf` has some, for a clock that is slightly behind the
 * issuer's. */
#define JWT_POLICY_DEFAULT ((struct jwt_policy){.not_before_leeway_ms = 5000})

/* Returns whether the result identifies a user: the token is valid, or its only fault is that it
 * expired. */
static inline bool jwt_result_names_user(enum jwt_result result)
{
    return result == JWT_OK || result == JWT_EXPIRED;
}

/* Fills `out` if jwt_result_names_user(), else does not change it. `wall_ms` is the current Unix
 * time. */
enum jwt_result jwt_verify(const struct key_set *keys, const struct jwt_policy *policy,
                           struct slice token, int64_t wall_ms, struct identity *out);

/* Returns whether the token has a `kid` that no key of the set has. Its issuer may have a new key. */
bool jwt_names_unknown_key(const struct key_set *keys, struct slice token);

/* Return static text. */
const char *jwt_result_label(enum jwt_result result);
const char *jwt_result_text(enum jwt_result result);

#endif

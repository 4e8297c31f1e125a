/* Checks the claims of a token whose signature is valid (see auth/jwt.h), and reads its user. A
 * file of its own, so that it can be tested and fuzzed without a signature. */
#ifndef ROLLCALL_AUTH_JWT_CLAIMS_H
#define ROLLCALL_AUTH_JWT_CLAIMS_H

#include "auth/identity.h"
#include "auth/jwt.h"

#include <stddef.h>
#include <stdint.h>

/* Reads the JSON in `text`, which it modifies. Fills `out` if jwt_result_names_user(), else does
 * not change it. */
enum jwt_result jwt_claims_check(char *text, size_t len, const struct jwt_policy *policy,
                                 int64_t wall_ms, struct identity *out);

/* Returns the bits of the scopes in a list separated by spaces. */
uint32_t jwt_claims_scopes(struct slice scope);

#endif

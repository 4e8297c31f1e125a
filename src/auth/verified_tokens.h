/*
 * Remembers tokens that were verified, so that a token that comes with every request is verified once: a signature costs
 * twenty times as much as the digest of the token.
 *
 * A token is known by the SHA-256 of all its bytes; the token itself is not kept. It is remembered when it comes for the second
 * time, since most tokens open one connection and never come again. What is remembered is what the token says. Whether it
 * has expired, its key was removed or its user revoked is for the caller to check at every use.
 *
 * Bound: VERIFIED_TOKENS_MAX tokens, each at the place that its digest names; another token of the same place replaces it.
 * Without memory nothing is remembered. One thread.
 */
#ifndef ROLLCALL_AUTH_VERIFIED_TOKENS_H
#define ROLLCALL_AUTH_VERIFIED_TOKENS_H

#include "auth/identity.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { VERIFIED_TOKENS_MAX = 1024, VERIFIED_TOKENS_DIGEST_BYTES = 32 };

struct verified_token;

/* Zero-initialise it. */
struct verified_tokens {
    struct verified_token **places; /* NULL until a token was noted */
    uint64_t *seen;                 /* of each place: the start of the digest that came last */
};

struct token_digest {
    unsigned char bytes[VERIFIED_TOKENS_DIGEST_BYTES];
};

/* Returns false when there is no digest, which is then never remembered. */
bool token_digest_make(struct token_digest *digest, struct slice token);

/* Returns what the token says if it is remembered, else NULL. Valid until the next call. */
const struct identity *verified_tokens_find(const struct verified_tokens *tokens,
                                            const struct token_digest *digest);

/* Notes that the token was verified. */
void verified_tokens_note(struct verified_tokens *tokens, const struct token_digest *digest,
                          const struct identity *identity);

void verified_tokens_free(struct verified_tokens *tokens);

#endif

#include "auth/verified_tokens.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

struct verified_token {
    struct token_digest digest;
    struct identity identity;
};

bool token_digest_make(struct token_digest *digest, struct slice token)
{
    return SHA256((const unsigned char *)token.data, token.len, digest->bytes) != NULL;
}

/* The digest of a valid token cannot be aimed: only the issuer can make one. */
static uint64_t digest_start(const struct token_digest *digest)
{
    uint64_t start;
    memcpy(&start, digest->bytes, sizeof(start));
    return start;
}

const struct identity *verified_tokens_find(const struct verified_tokens *tokens,
                                            const struct token_digest *digest)
{
    if (!tokens->places)
        return NULL;
    const struct verified_token *token = tokens->places[digest_start(digest) % VERIFIED_TOKENS_MAX];
    bool is_same = token && memcmp(&token->digest, digest, sizeof(*digest)) == 0;
    return is_same ? &token->identity : NULL;
}

static bool make_token_places(struct verified_tokens *tokens)
{
    if (tokens->places)
        return true;
    tokens->places = calloc(VERIFIED_TOKENS_MAX, sizeof(*tokens->places));
    tokens->seen = calloc(VERIFIED_TOKENS_MAX, sizeof(*tokens->seen));
    if (tokens->places && tokens->seen)
        return true;
    verified_tokens_free(tokens);
    return false;
}

void verified_tokens_note(struct verified_tokens *tokens, const struct token_digest *digest,
                          const struct identity *identity)
{
    if (!make_token_places(tokens))
        return;
    uint64_t start = digest_start(digest);
    size_t place = start % VERIFIED_TOKENS_MAX;
    if (tokens->seen[place] != start) {
        tokens->seen[place] = start;
        return;
    }
    if (!tokens->places[place])
        tokens->places[place] = malloc(sizeof(*tokens->places[place]));
    if (tokens->places[place])
        *tokens->places[place] = (struct verified_token){*digest, *identity};
}

void verified_tokens_free(struct verified_tokens *tokens)
{
    for (size_t i = 0; tokens->places && i < VERIFIED_TOKENS_MAX; i++)
        free(tokens->places[i]);
    free(tokens->places);
    free(tokens->seen);
    *tokens = (struct verified_tokens){0};
}

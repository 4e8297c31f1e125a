#include "auth/verifier.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

struct verification {
    struct verification *next;
    verifier_done done;
    void *arg;
    size_t token_len;
    char token[];
};

void verifier_init(struct verifier *verifier, struct key_set *keys, const struct jwt_policy *policy,
                   size_t per_turn, size_t pending_max)
{
    *verifier = (struct verifier){
        .keys = keys, .policy = *policy, .per_turn = per_turn, .pending_max = pending_max};
    verifier->end = &verifier->first;
}

/* A valid token is a secret, so it is erased. */
static void free_verification(struct verification *verification)
{
    OPENSSL_cleanse(verification->token, verification->token_len);
    free(verification);
}

static struct verification *pop_verification(struct verifier *verifier)
{
    struct verification *first = verifier->first;
    verifier->first = first->next;
    if (!verifier->first)
        verifier->end = &verifier->first;
    verifier->pending--;
    return first;
}

void verifier_free(struct verifier *verifier)
{
    while (verifier->first) {
        struct verification *verification = pop_verification(verifier);
        verification->done(verification->arg, JWT_UNKNOWN_KEY, NULL);
        free_verification(verification);
    }
    key_set_release(&verifier->keys);
}

void verifier_use(struct verifier *verifier, struct key_set *keys)
{
    key_set_release(&verifier->keys);
    verifier->keys = keys;
}

bool verifier_submit(struct verifier *verifier, struct slice token, verifier_done done, void *arg)
{
    if (verifier->pending >= verifier->pending_max)
        return false;
    size_t kept =
        token.len <= JWT_BYTES_MAX ? token.len : JWT_BYTES_MAX + 1; /* which is still too long */
    struct verification *verification = malloc(sizeof(*verification) + kept);
    if (!verification)
        return false;
    *verification = (struct verification){.done = done, .arg = arg, .token_len = kept};
    if (kept)
        memcpy(verification->token, token.data, kept);
    *verifier->end = verification;
    verifier->end = &verification->next;
    verifier->pending++;
    return true;
}

bool verifier_run(struct verifier *verifier, const struct clock *clock)
{
    for (size_t i = 0; i < verifier->per_turn && verifier->first; i++) {
        struct verification *verification = pop_verification(verifier);
        struct identity identity;
        enum jwt_result result =
            jwt_verify(verifier->keys, &verifier->policy,
                       (struct slice){verification->token, verification->token_len}, clock->wall_ms,
                       &identity);
        verification->done(verification->arg, result,
                           jwt_result_names_user(result) ? &identity : NULL);
        free_verification(verification);
    }
    return verifier->first != NULL;
}

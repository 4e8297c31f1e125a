#include "auth/verifier.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

struct verification {
    struct verification *next;
    verifier_done done;
    void *arg;
    int64_t waits_until_ms; /* for new keys; 0: it has not waited */
    size_t token_len;
    char token[];
};

static void push_verification(struct verifier_queue *queue, struct verification *verification)
{
    verification->next = NULL;
    *queue->end = verification;
    queue->end = &verification->next;
    queue->count++;
}

static struct verification *pop_verification(struct verifier_queue *queue)
{
    struct verification *first = queue->first;
    queue->first = first->next;
    if (!queue->first)
        queue->end = &queue->first;
    queue->count--;
    return first;
}

void verifier_init(struct verifier *verifier, struct key_set *keys, const struct jwt_policy *policy,
                   size_t per_turn, size_t pending_max)
{
    *verifier = (struct verifier){
        .keys = keys, .policy = *policy, .per_turn = per_turn, .pending_max = pending_max};
    verifier->pending.end = &verifier->pending.first;
    verifier->waiting.end = &verifier->waiting.first;
}

/* A valid token is a secret, so it is erased. */
static void free_verification(struct verification *verification)
{
    OPENSSL_cleanse(verification->token, verification->token_len);
    free(verification);
}

/* Those that wait are pending again. */
static void end_waits(struct verifier *verifier, int64_t now_ms)
{
    while (verifier->waiting.first && verifier->waiting.first->waits_until_ms <= now_ms)
        push_verification(&verifier->pending, pop_verification(&verifier->waiting));
}

void verifier_free(struct verifier *verifier)
{
    end_waits(verifier, INT64_MAX);
    while (verifier->pending.first) {
        struct verification *verification = pop_verification(&verifier->pending);
        verification->done(verification->arg, JWT_UNKNOWN_KEY, NULL);
        free_verification(verification);
    }
    key_set_release(&verifier->keys);
    verified_tokens_free(&verifier->verified);
}

void verifier_use(struct verifier *verifier, struct key_set *keys)
{
    key_set_release(&verifier->keys);
    verifier->keys = keys;
    end_waits(verifier, INT64_MAX);
}

bool verifier_end_waits(struct verifier *verifier, const struct clock *clock)
{
    end_waits(verifier, clock->now_ms);
    return verifier->pending.first != NULL;
}

bool verifier_submit(struct verifier *verifier, struct slice token, verifier_done done, void *arg)
{
    if (verifier->pending.count >= verifier->pending_max)
        return false;
    size_t kept =
        token.len <= JWT_BYTES_MAX ? token.len : JWT_BYTES_MAX + 1; /* which is still too long */
    struct verification *verification = malloc(sizeof(*verification) + kept);
    if (!verification)
        return false;
    *verification = (struct verification){.done = done, .arg = arg, .token_len = kept};
    if (kept)
        memcpy(verification->token, token.data, kept);
    push_verification(&verifier->pending, verification);
    return true;
}

bool verifier_accepts(const struct verifier *verifier, const struct identity *identity)
{
    return verifier->keys && key_set_has_tag(verifier->keys, identity->key_tag) &&
           !(verifier->revocations &&
             revocations_refuse(verifier->revocations, identity_user(identity),
                                identity->issued_at_s));
}

/* Returns whether what was verified before still counts. Otherwise verifying it again says why not. */
static bool is_still_valid(const struct verifier *verifier, const struct identity *identity,
                           int64_t wall_ms)
{
    return identity && wall_ms < identity->expires_at_wall_ms + verifier->policy.expiry_leeway_ms &&
           verifier_accepts(verifier, identity);
}

static enum jwt_result verify_token(struct verifier *verifier, struct slice token, int64_t wall_ms,
                                    struct identity *identity)
{
    struct token_digest digest;
    if (!verifier->keys)
        return JWT_UNAVAILABLE;
    bool has_digest = token.len <= JWT_BYTES_MAX && token_digest_make(&digest, token);
    const struct identity *known =
        has_digest ? verified_tokens_find(&verifier->verified, &digest) : NULL;
    if (is_still_valid(verifier, known, wall_ms)) {
        *identity = *known;
        return JWT_OK;
    }
    enum jwt_result result =
        jwt_verify(verifier->keys, &verifier->policy, token, wall_ms, identity);
    if (result == JWT_OK && !verifier_accepts(verifier, identity))
        return JWT_REVOKED;
    if (result == JWT_OK && has_digest)
        verified_tokens_note(&verifier->verified, &digest, identity);
    return result;
}

/* Returns whether a token that was not verified waits for new keys now. */
static bool wait_for_new_keys(struct verifier *verifier, struct verification *verification,
                              int64_t now_ms)
{
    struct slice token = {verification->token, verification->token_len};
    if (!verifier->ask_for_keys || verification->waits_until_ms ||
        (verifier->keys && !jwt_names_unknown_key(verifier->keys, token)) ||
        verifier->waiting.count >= VERIFIER_WAITING_MAX ||
        !verifier->ask_for_keys(verifier->ask_arg))
        return false;
    verification->waits_until_ms = now_ms + VERIFIER_KEYS_WAIT_MS;
    push_verification(&verifier->waiting, verification);
    return true;
}

bool verifier_run(struct verifier *verifier, const struct clock *clock)
{
    if (verifier->revocations && verifier->revocations->state == REVOCATIONS_LOADING)
        return false;
    for (size_t i = 0; i < verifier->per_turn && verifier->pending.first; i++) {
        struct verification *verification = pop_verification(&verifier->pending);
        struct identity identity;
        enum jwt_result result =
            verify_token(verifier, (struct slice){verification->token, verification->token_len},
                         clock->wall_ms, &identity);
        if (!jwt_result_names_user(result) &&
            wait_for_new_keys(verifier, verification, clock->now_ms))
            continue;
        verification->done(verification->arg, result,
                           jwt_result_names_user(result) ? &identity : NULL);
        free_verification(verification);
    }
    return verifier->pending.first != NULL;
}

#include "peer/peer_greeting.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

static const char MAGIC[4] = {'R', 'C', 'P', 'L'};
static const char LABEL[] = "rollcall peer link";

enum {
    AT_VERSION = sizeof(MAGIC),
    AT_ROLE,
    AT_NAME_LEN,
    AT_NONCE,
    PROVEN_BYTES_MAX = sizeof(LABEL) + 2 + 2 * (PEER_NONCE_BYTES + 1 + PEER_NAME_BYTES_MAX),
};

_Static_assert(PEER_HELLO_BYTES <= PEER_NAME_BYTES_MAX && PEER_PROOF_BYTES <= PEER_NAME_BYTES_MAX,
               "what is due fits `in`");

static void refuse(struct peer_greeting *greeting, const char *why)
{
    greeting->state = PEER_REFUSED;
    greeting->why = why;
}

/* ---- proofs ---- */

static uint8_t *put(uint8_t *at, const void *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static uint8_t *put_introduction(uint8_t *at, const struct peer_introduction *said)
{
    at = put(at, said->nonce, PEER_NONCE_BYTES);
    *at++ = said->name_len;
    return put(at, said->name, said->name_len);
}

/* False only when OpenSSL fails, for want of memory. */
static bool make_proof(const struct peer_greeting *greeting, enum peer_role prover,
                       uint8_t out[PEER_PROOF_BYTES])
{
    bool dials = greeting->role == PEER_DIALS;
    uint8_t text[PROVEN_BYTES_MAX];
    uint8_t *at = put(text, LABEL, sizeof(LABEL));
    size_t len = 0;
    *at++ = PEER_GREETING_VERSION;
    *at++ = (uint8_t)prover;
    at = put_introduction(at, dials ? &greeting->ours : &greeting->theirs);
    at = put_introduction(at, dials ? &greeting->theirs : &greeting->ours);
    return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, greeting->secret.data,
                     greeting->secret.len, text, (size_t)(at - text), out, PEER_PROOF_BYTES,
                     &len) &&
           len == PEER_PROOF_BYTES;
}

static void send_proof(struct peer_greeting *greeting, struct buffer *out)
{
    uint8_t proof[PEER_PROOF_BYTES];
    if (make_proof(greeting, greeting->role, proof))
        buffer_append(out, proof, sizeof(proof));
    else
        refuse(greeting, "no proof can be made");
}

static void check_proof(struct peer_greeting *greeting, struct buffer *out)
{
    enum peer_role prover = greeting->role == PEER_DIALS ? PEER_ACCEPTS : PEER_DIALS;
    uint8_t expected[PEER_PROOF_BYTES];
    if (!make_proof(greeting, prover, expected)) {
        refuse(greeting, "no proof can be made");
        return;
    }
    if (CRYPTO_memcmp(expected, greeting->in, PEER_PROOF_BYTES) != 0) {
        refuse(greeting, "wrong secret: peer.secret differs on the two sides");
        return;
    }
    greeting->state = PEER_GREETED;
    if (greeting->role == PEER_ACCEPTS)
        send_proof(greeting, out);
}

/* ---- introductions ---- */

static void send_hello(const struct peer_greeting *greeting, struct buffer *out)
{
    const struct peer_introduction *ours = &greeting->ours;
    buffer_append(out, MAGIC, sizeof(MAGIC));
    buffer_append_byte(out, PEER_GREETING_VERSION);
    buffer_append_byte(out, (char)greeting->role);
    buffer_append_byte(out, (char)ours->name_len);
    buffer_append(out, ours->nonce, sizeof(ours->nonce));
    buffer_append(out, ours->name, ours->name_len);
}

static void take_hello(struct peer_greeting *greeting)
{
    const uint8_t *in = greeting->in;
    uint8_t role = greeting->role == PEER_DIALS ? PEER_ACCEPTS : PEER_DIALS;
    if (memcmp(in, MAGIC, sizeof(MAGIC)) != 0 || in[AT_NAME_LEN] > PEER_NAME_BYTES_MAX) {
        refuse(greeting, "the other side is no peer of this installation");
    } else if (in[AT_VERSION] != PEER_GREETING_VERSION) {
        refuse(greeting, "the other side has another version of the peer link");
    } else if (in[AT_ROLE] != role) {
        refuse(greeting, "both sides dial, or both accept");
    } else {
        greeting->theirs.name_len = in[AT_NAME_LEN];
        memcpy(greeting->theirs.nonce, in + AT_NONCE, PEER_NONCE_BYTES);
        greeting->state = PEER_NAME_DUE;
    }
}

static void take_name(struct peer_greeting *greeting, struct buffer *out)
{
    memcpy(greeting->theirs.name, greeting->in, greeting->theirs.name_len);
    greeting->state = PEER_PROOF_DUE;
    if (greeting->role == PEER_DIALS)
        send_proof(greeting, out);
    else
        send_hello(greeting, out);
}

/* ---- taking bytes ---- */

static size_t bytes_due(const struct peer_greeting *greeting)
{
    switch (greeting->state) {
    case PEER_HELLO_DUE:
        return PEER_HELLO_BYTES;
    case PEER_NAME_DUE:
        return greeting->theirs.name_len;
    case PEER_PROOF_DUE:
        return PEER_PROOF_BYTES;
    case PEER_GREETED:
    case PEER_REFUSED:
        break;
    }
    return 0;
}

static void take_part(struct peer_greeting *greeting, struct buffer *out)
{
    greeting->in_len = 0;
    if (greeting->state == PEER_HELLO_DUE)
        take_hello(greeting);
    else if (greeting->state == PEER_NAME_DUE)
        take_name(greeting, out);
    else
        check_proof(greeting, out);
}

size_t peer_greeting_take(struct peer_greeting *greeting, struct slice input, struct buffer *out)
{
    size_t taken = 0;
    while (greeting->state != PEER_GREETED && greeting->state != PEER_REFUSED) {
        struct slice part =
            slice_first(slice_after(input, taken), bytes_due(greeting) - greeting->in_len);
        if (part.len)
            memcpy(greeting->in + greeting->in_len, part.data, part.len);
        greeting->in_len += part.len;
        taken += part.len;
        if (greeting->in_len < bytes_due(greeting))
            break;
        take_part(greeting, out);
    }
    return taken;
}

void peer_greeting_begin(struct peer_greeting *greeting, enum peer_role role, struct slice secret,
                         struct slice name, struct random *random, struct buffer *out)
{
    struct slice kept = slice_first(name, PEER_NAME_BYTES_MAX);
    assert(secret.len > 0);
    *greeting = (struct peer_greeting){.role = role, .secret = secret};
    random_bytes(random, greeting->ours.nonce, PEER_NONCE_BYTES);
    greeting->ours.name_len = (uint8_t)kept.len;
    if (kept.len)
        memcpy(greeting->ours.name, kept.data, kept.len);
    if (role == PEER_DIALS)
        send_hello(greeting, out);
}

const char *peer_greeting_broken_off(const struct peer_greeting *greeting)
{
    if (greeting->role == PEER_DIALS && greeting->state == PEER_PROOF_DUE)
        return "refused: peer.secret may differ on the two sides";
    return "broken off by the other side during the greeting";
}

#include "peer/peer_handshake.h"

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
    PROOF_TEXT_BYTES_MAX = sizeof(LABEL) + 2 + 2 * (PEER_NONCE_BYTES + 1 + PEER_NAME_BYTES_MAX),
};

_Static_assert(PEER_HELLO_BYTES <= PEER_NAME_BYTES_MAX && PEER_PROOF_BYTES <= PEER_NAME_BYTES_MAX,
               "each part fits `in`");

static void peer_handshake_refuse(struct peer_handshake *handshake, const char *why)
{
    handshake->state = PEER_HANDSHAKE_REFUSED;
    handshake->why = why;
}

/* ---- proofs ---- */

static uint8_t *peer_handshake_append_identity(uint8_t *at, const struct peer_identity *identity)
{
    at = mempcpy(at, identity->nonce, PEER_NONCE_BYTES);
    *at++ = identity->name_len;
    return mempcpy(at, identity->name, identity->name_len);
}

/* Returns false only when OpenSSL is out of memory. */
static bool peer_handshake_compute_proof(const struct peer_handshake *handshake,
                                         enum peer_role prover, uint8_t out[PEER_PROOF_BYTES])
{
    bool dials = handshake->role == PEER_DIALS;
    uint8_t text[PROOF_TEXT_BYTES_MAX];
    uint8_t *at = mempcpy(text, LABEL, sizeof(LABEL));
    size_t len = 0;
    *at++ = PEER_HANDSHAKE_VERSION;
    *at++ = (uint8_t)prover;
    at = peer_handshake_append_identity(at, dials ? &handshake->ours : &handshake->theirs);
    at = peer_handshake_append_identity(at, dials ? &handshake->theirs : &handshake->ours);
    return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, handshake->secret.data,
                     handshake->secret.len, text, (size_t)(at - text), out, PEER_PROOF_BYTES,
                     &len) &&
           len == PEER_PROOF_BYTES;
}

static void peer_handshake_append_proof(struct peer_handshake *handshake, struct buffer *out)
{
    uint8_t proof[PEER_PROOF_BYTES];
    if (peer_handshake_compute_proof(handshake, handshake->role, proof))
        buffer_append(out, proof, sizeof(proof));
    else
        peer_handshake_refuse(handshake, "cannot compute a proof");
}

static void peer_handshake_check_proof(struct peer_handshake *handshake, struct buffer *out)
{
    enum peer_role prover = handshake->role == PEER_DIALS ? PEER_ACCEPTS : PEER_DIALS;
    uint8_t expected[PEER_PROOF_BYTES];
    if (!peer_handshake_compute_proof(handshake, prover, expected)) {
        peer_handshake_refuse(handshake, "cannot compute a proof");
        return;
    }
    if (CRYPTO_memcmp(expected, handshake->in, PEER_PROOF_BYTES) != 0) {
        peer_handshake_refuse(handshake, "wrong secret: peer.secret differs on the two sides");
        return;
    }
    handshake->state = PEER_HANDSHAKE_DONE;
    if (handshake->role == PEER_ACCEPTS)
        peer_handshake_append_proof(handshake, out);
}

/* ---- hello ---- */

static void peer_handshake_append_hello(const struct peer_handshake *handshake, struct buffer *out)
{
    const struct peer_identity *ours = &handshake->ours;
    buffer_append(out, MAGIC, sizeof(MAGIC));
    buffer_append_byte(out, PEER_HANDSHAKE_VERSION);
    buffer_append_byte(out, (char)handshake->role);
    buffer_append_byte(out, (char)ours->name_len);
    buffer_append(out, ours->nonce, sizeof(ours->nonce));
    buffer_append(out, ours->name, ours->name_len);
}

static void peer_handshake_take_hello(struct peer_handshake *handshake)
{
    const uint8_t *in = handshake->in;
    uint8_t role = handshake->role == PEER_DIALS ? PEER_ACCEPTS : PEER_DIALS;
    if (memcmp(in, MAGIC, sizeof(MAGIC)) != 0 || in[AT_NAME_LEN] > PEER_NAME_BYTES_MAX) {
        peer_handshake_refuse(handshake, "the other side is not a peer of this installation");
    } else if (in[AT_VERSION] != PEER_HANDSHAKE_VERSION) {
        peer_handshake_refuse(handshake, "the other side uses another version of the peer link");
    } else if (in[AT_ROLE] != role) {
        peer_handshake_refuse(handshake, "both sides dial, or both sides accept");
    } else {
        handshake->theirs.name_len = in[AT_NAME_LEN];
        memcpy(handshake->theirs.nonce, in + AT_NONCE, PEER_NONCE_BYTES);
        handshake->state = PEER_HANDSHAKE_NAME;
    }
}

/* ---- taking bytes ---- */

static size_t peer_handshake_due_bytes(const struct peer_handshake *handshake)
{
    switch (handshake->state) {
    case PEER_HANDSHAKE_HELLO:
        return PEER_HELLO_BYTES;
    case PEER_HANDSHAKE_NAME:
        return handshake->theirs.name_len;
    case PEER_HANDSHAKE_PROOF:
        return PEER_PROOF_BYTES;
    case PEER_HANDSHAKE_DONE:
    case PEER_HANDSHAKE_REFUSED:
        break;
    }
    return 0;
}

static void peer_handshake_take_part(struct peer_handshake *handshake, struct buffer *out)
{
    handshake->in_len = 0;
    if (handshake->state == PEER_HANDSHAKE_HELLO) {
        peer_handshake_take_hello(handshake);
    } else if (handshake->state == PEER_HANDSHAKE_NAME) {
        memcpy(handshake->theirs.name, handshake->in, handshake->theirs.name_len);
        handshake->state = PEER_HANDSHAKE_PROOF;
        if (handshake->role == PEER_DIALS)
            peer_handshake_append_proof(handshake, out);
        else
            peer_handshake_append_hello(handshake, out);
    } else {
        peer_handshake_check_proof(handshake, out);
    }
}

size_t peer_handshake_take(struct peer_handshake *handshake, struct slice input, struct buffer *out)
{
    size_t taken = 0;
    while (handshake->state != PEER_HANDSHAKE_DONE && handshake->state != PEER_HANDSHAKE_REFUSED) {
        struct slice part = slice_first(slice_after(input, taken),
                                        peer_handshake_due_bytes(handshake) - handshake->in_len);
        if (part.len)
            memcpy(handshake->in + handshake->in_len, part.data, part.len);
        handshake->in_len += part.len;
        taken += part.len;
        if (handshake->in_len < peer_handshake_due_bytes(handshake))
            break;
        peer_handshake_take_part(handshake, out);
    }
    return taken;
}

void peer_handshake_begin(struct peer_handshake *handshake, enum peer_role role,
                          struct slice secret, struct slice name, struct random *random,
                          struct buffer *out)
{
    struct slice kept = slice_first(name, PEER_NAME_BYTES_MAX);
    assert(secret.len > 0);
    *handshake = (struct peer_handshake){.role = role, .secret = secret};
    random_bytes(random, handshake->ours.nonce, PEER_NONCE_BYTES);
    handshake->ours.name_len = (uint8_t)kept.len;
    if (kept.len)
        memcpy(handshake->ours.name, kept.data, kept.len);
    if (role == PEER_DIALS)
        peer_handshake_append_hello(handshake, out);
}

const char *peer_handshake_close_reason(const struct peer_handshake *handshake)
{
    if (handshake->role == PEER_DIALS && handshake->state == PEER_HANDSHAKE_PROOF)
        return "refused: peer.secret may differ on the two sides";
    return "the other side closed the connection during the handshake";
}

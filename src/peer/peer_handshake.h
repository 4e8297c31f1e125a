/*
 * The handshake in which two processes of one installation prove to each other that they have `peer.secret`.
 * No I/O: it takes bytes as they are read, and appends bytes to send to a buffer.
 *
 *     dialler                                   acceptor
 *     hello: version, role, nonce, name   ──►
 *                                         ◄──   hello
 *     proof                               ──►   checks it before it sends anything made from the secret
 *                                         ◄──   proof
 *
 * A proof is HMAC-SHA256 with the secret as key over the version, the role of the prover, both nonces and
 * both names. So it is valid for this connection only, cannot be sent back as the other side's, and nobody
 * on the way can replace the names. An acceptor gives an unauthenticated peer nothing to guess the secret
 * with; a dialler sends its proof to any process that listens at the address, so the secret must be
 * unguessable.
 *
 * A hello is "RCPL", a byte of version, one of role, one of the name's length, 32 of nonce, the name; a
 * proof is 32 bytes. All of it fits the struct: an unauthenticated peer causes no allocation.
 */
#ifndef ROLLCALL_PEER_PEER_HANDSHAKE_H
#define ROLLCALL_PEER_PEER_HANDSHAKE_H

#include "base/buffer.h"
#include "base/random.h"
#include "base/slice.h"

#include <stdint.h>

enum {
    PEER_HANDSHAKE_VERSION = 1,
    PEER_NAME_BYTES_MAX = 128,
    PEER_NONCE_BYTES = 32,
    PEER_PROOF_BYTES = 32,
    PEER_HELLO_BYTES = 4 + 3 + PEER_NONCE_BYTES, /* without the name */
};

enum peer_role { PEER_DIALS = 'D', PEER_ACCEPTS = 'A' };

enum peer_handshake_state {
    PEER_HANDSHAKE_HELLO, /* the part that the other side sends next; so are NAME and PROOF */
    PEER_HANDSHAKE_NAME,
    PEER_HANDSHAKE_PROOF,
    PEER_HANDSHAKE_DONE,
    PEER_HANDSHAKE_REFUSED
};

/* The nonce and the name that one side sends. */
struct peer_identity {
    uint8_t nonce[PEER_NONCE_BYTES];
    uint8_t name_len;
    char name[PEER_NAME_BYTES_MAX];
};

struct peer_handshake {
    enum peer_handshake_state state;
    enum peer_role role; /* ours */
    struct slice secret;
    struct peer_identity ours;
    struct peer_identity theirs;
    uint8_t in[PEER_NAME_BYTES_MAX]; /* the part that is due; fits the longest of the three */
    size_t in_len;
    const char *why; /* why it was REFUSED, for people to read */
};

/* `secret` is not empty and outlives the handshake; a name is cut to PEER_NAME_BYTES_MAX. Appends bytes to
 * send to `out`. */
void peer_handshake_begin(struct peer_handshake *handshake, enum peer_role role,
                          struct slice secret, struct slice name, struct random *random,
                          struct buffer *out);

/* Takes received bytes up to the end of the handshake and returns how many it took. Appends bytes to send. */
size_t peer_handshake_take(struct peer_handshake *handshake, struct slice input,
                           struct buffer *out);

/* The name of the other side; proved only when the state is PEER_HANDSHAKE_DONE. */
static inline struct slice peer_handshake_peer_name(const struct peer_handshake *handshake)
{
    return (struct slice){handshake->theirs.name, handshake->theirs.name_len};
}

/* The reason to report when the other side closed the connection in this state. */
const char *peer_handshake_close_reason(const struct peer_handshake *handshake);

#endif

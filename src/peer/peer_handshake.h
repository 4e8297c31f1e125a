/*
 * How two processes of one installation prove to one another that they know `peer.secret`. No I/O: bytes
 * come in as they are read, bytes to be sent go into a buffer.
 *
 *     dialler                                   acceptor
 *     hello: version, role, nonce, name   ──►
 *                                         ◄──   hello
 *     proof                               ──►   checks it before it says anything made of the secret
 *                                         ◄──   proof
 *
 * A proof is HMAC-SHA256 with the secret as key over the version, the role of the one who proves, both
 * nonces and both names. So it is good for this conversation alone, cannot be sent back as the other's,
 * and the names cannot be exchanged on the way. An acceptor gives a stranger nothing to guess the secret
 * with; a dialler gives its proof to whoever listens at the address, so the secret must be one that
 * cannot be guessed.
 *
 * A hello is "RCPL", a byte of version, one of role, one of the name's length, 32 of nonce, the name; a
 * proof is 32 bytes. All of it fits the struct: nothing is allocated for a stranger.
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
    PEER_HANDSHAKE_HELLO,
    PEER_HANDSHAKE_NAME,
    PEER_HANDSHAKE_PROOF,
    PEER_HANDSHAKE_DONE,
    PEER_HANDSHAKE_REFUSED
};

/* What one side has said. */
struct peer_introduction {
    uint8_t nonce[PEER_NONCE_BYTES];
    uint8_t name_len;
    char name[PEER_NAME_BYTES_MAX];
};

struct peer_handshake {
    enum peer_handshake_state state;
    enum peer_role role; /* ours */
    struct slice secret;
    struct peer_introduction ours;
    struct peer_introduction theirs;
    uint8_t in[PEER_NAME_BYTES_MAX]; /* of what is due; the longest of the three */
    size_t in_len;
    const char *why; /* of REFUSED, for people to read */
};

/* `secret`, never empty, is borrowed for the handshake's life; a name is cut to PEER_NAME_BYTES_MAX. Appends what is to
 * be sent. */
void peer_handshake_begin(struct peer_handshake *handshake, enum peer_role role, struct slice secret,
                          struct slice name, struct random *random, struct buffer *out);

/* Takes bytes that came, up to the end of the handshake; answers how many. Appends what is to be sent. */
size_t peer_handshake_take(struct peer_handshake *handshake, struct slice input, struct buffer *out);

/* What the other side calls itself; believed only when GREETED. */
static inline struct slice peer_handshake_peer_name(const struct peer_handshake *handshake)
{
    return (struct slice){handshake->theirs.name, handshake->theirs.name_len};
}

/* What to say when the other side ended it in this state. */
const char *peer_handshake_broken_off(const struct peer_handshake *handshake);

#endif

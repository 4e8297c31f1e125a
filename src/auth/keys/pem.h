/*
 * PEM (RFC 7468): the public keys of a file one by one, and one private key to sign with.
 *
 * OpenSSL's own readers would ask for a pass phrase on the terminal; these never do. Text between
 * the blocks is allowed and ignored, as everywhere.
 */
#ifndef ROLLCALL_AUTH_KEYS_PEM_H
#define ROLLCALL_AUTH_KEYS_PEM_H

#include "auth/auth_error.h"
#include "base/slice.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>

struct pem {
    BIO *bio;
    size_t index; /* of the block that comes next */
};

enum pem_result { PEM_KEY, PEM_END, PEM_BAD };

/* Borrows `data` until pem_release(). False when memory runs out. */
bool pem_init(struct pem *pem, const char *data, size_t len);
void pem_release(struct pem *pem);

/* The next block's key, from a public key or a certificate. The caller owns *out on PEM_KEY. */
enum pem_result pem_next_public(struct pem *pem, EVP_PKEY **out, struct auth_error *error);

/* The private key in `text`. NULL when there is none, or it is encrypted. The caller owns it. */
EVP_PKEY *pem_read_private(struct slice text, struct auth_error *error);

#endif

/*
 * PEM (RFC 7468): reads the public keys of a file one by one, and a private key for signing.
 *
 * OpenSSL's own readers would ask for a pass phrase on the terminal; these never do. Text between
 * the blocks is ignored, as usual.
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
    size_t index; /* of the next block */
};

enum pem_result { PEM_KEY, PEM_END, PEM_BAD };

/* Borrows `data` until pem_release(). Returns false when out of memory. */
bool pem_init(struct pem *pem, const char *data, size_t len);
void pem_release(struct pem *pem);

/* Reads the key of the next block, a public key or a certificate. On PEM_KEY the caller owns
 * *out. */
enum pem_result pem_next_public(struct pem *pem, EVP_PKEY **out, struct auth_error *error);

/* Reads the private key in `text`, which the caller then owns. Returns NULL if there is none or it
 * is encrypted. */
EVP_PKEY *pem_read_private(struct slice text, struct auth_error *error);

#endif

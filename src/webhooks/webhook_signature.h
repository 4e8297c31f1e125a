/*
 * Signatures of requests to the application, as Standard Webhooks defines them (version 1, symmetric):
 *
 *     webhook-id: evt_01J…
 *     webhook-timestamp: 1614265330          seconds since 1970, so that a receiver can refuse old requests
 *     webhook-signature: v1,BASE64           HMAC-SHA256 of "id.timestamp.body"
 *
 * The secret is a file with one line, "whsec_" and the base64 of the key. It is read strictly: one spelling of base64
 * (padded, no white space inside), and a key of WEBHOOK_SECRET_BYTES_MIN to WEBHOOK_SECRET_BYTES_MAX bytes. White space at
 * the end of the file is no part of it.
 *
 * Threading: none of its own; a secret that is not changed may be shared. Neither errors nor logs show any part of a
 * secret. It belongs to the struct, whose owner calls webhook_secret_clear().
 */
#ifndef ROLLCALL_WEBHOOKS_WEBHOOK_SIGNATURE_H
#define ROLLCALL_WEBHOOKS_WEBHOOK_SIGNATURE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEBHOOK_SECRET_BYTES_MIN = 16,
    WEBHOOK_SECRET_BYTES_MAX = 128,
    WEBHOOK_SECRET_FILE_BYTES_MAX = 256,
    WEBHOOK_ID_BYTES_MAX = 128,
};

struct webhook_secret {
    unsigned char key[WEBHOOK_SECRET_BYTES_MAX];
    size_t len; /* 0: there is no secret */
};

/* Reads a secret from its text. Returns NULL, or what was expected, as static text; the secret is then empty. */
const char *webhook_secret_parse(struct webhook_secret *secret, struct slice text);

/* Reads a secret from its file. Blocks: call it at the start. Returns like webhook_secret_parse(). */
const char *webhook_secret_read(struct webhook_secret *secret, const char *path);

/* Erases a secret. */
void webhook_secret_clear(struct webhook_secret *secret);

/* The three headers as lines "Name: value", as http_client.h takes them. */
struct webhook_headers {
    char id[sizeof("webhook-id: ") + WEBHOOK_ID_BYTES_MAX];
    char timestamp[sizeof("webhook-timestamp: ") + 20];
    char signature[sizeof("webhook-signature: v1,") + 44];
};

/* Writes the headers of a request. The id has 1 to WEBHOOK_ID_BYTES_MAX printable characters and, being part of what is
 * signed, no '.'. Without a secret `signature` is empty. Returns false when out of memory. */
bool webhook_sign(struct webhook_headers *headers, const struct webhook_secret *secret,
                  struct slice id, int64_t time_seconds, struct slice body);

/* A secret for many signatures on one thread: its key is set up once. Its owner names the secret, which outlives it. */
struct webhook_signer {
    const struct webhook_secret *secret;
    struct evp_mac_ctx_st *mac; /* NULL until the first signature */
};

/* Does what webhook_sign() does. */
bool webhook_signer_sign(struct webhook_signer *signer, struct webhook_headers *headers,
                         struct slice id, int64_t time_seconds, struct slice body);
void webhook_signer_free(struct webhook_signer *signer);

#endif

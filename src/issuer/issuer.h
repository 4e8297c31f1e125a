/*
 * The issuer of tokens publishes its keys as a JWK set at a URL. This fetches them: at the start, every
 * `refresh_ms`, and at once, but at most once in ISSUER_FETCH_MS, when a token names an unknown key. The last good set
 * is kept in a file and used from the start, until the issuer answers.
 *
 * A bad answer (an error, a status other than 200, too large, too slow, not a set of usable keys) changes nothing. The
 * log has a line when answers turn bad and when they turn good again.
 *
 * It is one thread with a loop of its own, so that parsing keys and writing the file hold up no worker. `on_keys` runs
 * on that thread; issuer_ask() may be called from any thread.
 */
#ifndef ROLLCALL_ISSUER_ISSUER_H
#define ROLLCALL_ISSUER_ISSUER_H

#include "auth/keys/key_set.h"
#include "metrics/metrics.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ISSUER_FETCH_MS = 1000,      /* between two fetches, whoever asks */
    ISSUER_RETRY_MS = 5000,      /* after a bad answer, unless refresh_ms is shorter */
    ISSUER_TIME_LIMIT_MS = 5000, /* of one fetch */
    ISSUER_SET_BYTES_MAX = 256 * 1024,
};

struct issuer;

/* Takes a reference to the present keys after every fetch, good or bad; NULL: there are none yet. */
typedef void (*issuer_keys_hook)(void *arg, struct key_set *keys);

/* The texts are borrowed until issuer_stop(). */
struct issuer_options {
    const char *url;
    const char *ca_file; /* NULL: the system's certificates */
    const char *kept_file;
    int64_t refresh_ms;
    struct metrics *metrics; /* only the issuer writes them */
    issuer_keys_hook on_keys;
    void *arg;
};

/* Reads the kept keys, if there are any. Returns NULL when out of memory or descriptors. */
struct issuer *issuer_make(const struct issuer_options *options);

/* Returns a new reference to the kept keys; NULL: there are none. Before issuer_start() only. */
struct key_set *issuer_kept_keys(const struct issuer *issuer);

/* Starts the thread. Returns false if that is impossible. */
bool issuer_start(struct issuer *issuer);

/* Asks for new keys, because a token names an unknown one. on_keys() follows. */
void issuer_ask(struct issuer *issuer);

/* Ends the thread and frees; nulls the caller's pointer. */
void issuer_free(struct issuer **issuer);

#endif

/*
 * API keys of the application's programs: a name, the hash of the key, its scopes. A part of the ledger port; ledger.h has
 * its promises. The key itself is nowhere: auth/api_key.h makes it and its hash.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_KEYS_H
#define ROLLCALL_LEDGER_LEDGER_KEYS_H

#include "ledger/ledger.h"

/* Keys of an installation; beyond it: LIMIT. One list holds them all. */
enum { LEDGER_KEYS_MAX = 1000 };

struct ledger_key {
    struct slice name;
    struct slice hash;
    struct slice scope; /* names separated by spaces */
    int64_t created_at_ms;
    int64_t last_used_ms; /* 0: never */
};

struct ledger_keys_outcome {
    enum ledger_status status;
    const struct ledger_key *keys; /* sorted by name */
    size_t count;
};

typedef void (*ledger_keys_done)(void *arg, const struct ledger_keys_outcome *outcome);

/* Stores a key. A name in use for another hash: CONFLICT; for the same one nothing changes. Name, hash and scope are
 * 1 to LEDGER_ID_BYTES_MAX bytes. */
void ledger_key_put(struct ledger_client *client, struct slice name, struct slice hash,
                    struct slice scope, ledger_change_done done, void *arg);

/* Removes a key. If there is none, the status is OK and nothing changed. */
void ledger_key_delete(struct ledger_client *client, struct slice name, ledger_change_done done,
                       void *arg);

/* Notes that the key was used now (wall clock). If there is no such key, nothing changes. */
void ledger_key_used(struct ledger_client *client, struct slice name, ledger_change_done done,
                     void *arg);

/* Lists all keys. */
void ledger_keys_list(struct ledger_client *client, ledger_keys_done done, void *arg);

#endif

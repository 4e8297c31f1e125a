/*
 * A gateway is one worker: a loop on a thread of its own and everything that works on it. This is the
 * composition root: the one place that puts backends behind ports and parts together.
 *
 *   made ──gateway_run()──► SERVING ──drain order──► DRAINING ──all gone, or time is up──► run returns
 *
 * All gateways of a process are made before the first runs, and have all stopped before the first is
 * freed. Orders (drain, reload) may be given from any thread.
 */
#ifndef ROLLCALL_APP_GATEWAY_H
#define ROLLCALL_APP_GATEWAY_H

#include "app/embedded.h"
#include "app/fleet.h"
#include "auth/jwt_sign.h"
#include "auth/keys/key_set.h"
#include "bus/mailbox/mailbox_bus.h"
#include "config/config.h"
#include "ledger/ledger.h"
#include "metrics/exposition.h"
#include "net/tls.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GATEWAY_ERROR_TEXT_MAX = 512 };

struct handover_board;

/* What the gateways of a process share. Borrowed until the last is freed. */
struct gateway_parts {
    const struct config *config;
    struct embedded *embedded; /* one of the two is NULL */
    struct fleet *fleet;
    struct mailbox_exchange *exchange;
    struct ledger *ledger;
    struct exposition *exposition;
    struct handover_board *board;        /* NULL: a worker alone */
    const struct jwt_signer *dev_signer; /* NULL without --dev */
    size_t workers;
    size_t connections_max; /* of each gateway */
    int64_t started_at_ms;  /* wall clock */
    uint64_t hash_seed;
    void (*drain)(void *arg); /* an administrator wants the process drained; any thread */
    void *drain_arg;
    /* Of a fleet: this gateway's id is its own (NULL), or why it is not; any thread. */
    void (*claimed)(void *arg, const char *refusal);
    void *claimed_arg;
};

struct gateway;

/* NULL when memory or descriptors are short. */
struct gateway *gateway_make(const struct gateway_parts *parts, size_t index);

/* Listens; `port` 0 leaves the configured one. False with a sentence in `error`. */
bool gateway_listen(struct gateway *gateway, uint16_t port, char error[GATEWAY_ERROR_TEXT_MAX]);
uint16_t gateway_port(const struct gateway *gateway);

/* Takes references to keys and, where there is TLS, a context: before it runs, or later to replace
 * them (SIGHUP). From any thread. False when the order could not be given; the references are taken all the
 * same. */
bool gateway_use(struct gateway *gateway, struct key_set *keys, struct tls_context *tls);

/* Serves until drained. */
void gateway_run(struct gateway *gateway);

/* Starts the drain, within a second at the latest. From any thread; cannot fail. */
void gateway_drain(struct gateway *gateway);

/* After all have stopped and the ledger was closed. */
void gateway_free(struct gateway **gateway);

#endif

/*
 * A gateway is one worker: an event loop on its own thread and everything that works on it.
 *
 *   made ──gateway_run()──► SERVING ──gateway_drain()──► DRAINING ──all gone, or timeout──► run returns
 *        ──ledger_close()──► gateway_finish() ──nothing is pending──► gateway_free()
 *
 * The server makes all gateways of a process before the first one runs, finishes them after all have stopped, and
 * frees them after all have finished: completions of one may reach another. When the timeout ends a drain, work may
 * be in flight; each of its completions still runs exactly once. Any thread may order a drain or a reload.
 */
#ifndef ROLLCALL_APP_GATEWAY_GATEWAY_H
#define ROLLCALL_APP_GATEWAY_GATEWAY_H

#include "app/embedded.h"
#include "app/fleet.h"
#include "auth/jwt_sign.h"
#include "auth/keys/key_set.h"
#include "auth/verifier.h"
#include "bus/mailbox/mailbox_bus.h"
#include "config/config.h"
#include "ledger/ledger.h"
#include "metrics/exposition.h"
#include "net/client_addresses.h"
#include "net/tls.h"
#include "store/memory/memory_budget.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GATEWAY_ERROR_TEXT_MAX = 512 };

struct handover_board;
struct hook_parts;
struct webhook_endpoints;
struct memory_budget;

/* An administrator orders the drain of the whole process. Any thread may call it. */
typedef void (*gateway_drain_ordered)(void *arg);

/* In a fleet: the gateway has claimed its id (`refusal` is NULL), or was refused for that reason. Any
 * thread may call it. */
typedef void (*gateway_claimed)(void *arg, const char *refusal);

/* What the gateways of a process share. Each gateway borrows it until it is freed. */
struct gateway_parts {
    const struct config *config;
    struct embedded *embedded; /* exactly one of these two is NULL */
    struct fleet *fleet;
    struct memory_budget *budget; /* what users of this process have left of their budgets */
    struct mailbox_bus_group *bus_group;
    struct ledger *ledger;
    struct exposition *exposition;
    struct handover_board *board;       /* NULL: this process has one worker */
    struct hook_parts *hooks;           /* questions to the application; NULL: none */
    struct memory_budget *memory;       /* see memory_pressure.h */
    struct client_addresses *addresses; /* NULL: see http/http_listener.h */
    const struct webhook_endpoints *webhooks;
    const struct jwt_signer *dev_signer; /* NULL without --dev */
    size_t workers;
    size_t connections_max; /* per gateway */
    int64_t started_at_ms;  /* wall clock */
    uint64_t hash_seed;
    gateway_drain_ordered drain;
    void *drain_arg;
    verifier_ask_for_keys on_keys_wanted; /* NULL: there is no issuer to ask for keys */
    void *on_keys_wanted_arg;
    gateway_claimed on_claimed;
    void *on_claimed_arg;
};

struct gateway;

/* Returns NULL when out of memory or descriptors. */
struct gateway *gateway_make(const struct gateway_parts *parts, size_t index);

/* Listens on `port`, or on the configured port when it is 0. On failure returns false and explains in `error`. */
bool gateway_listen(struct gateway *gateway, uint16_t port, char error[GATEWAY_ERROR_TEXT_MAX]);
uint16_t gateway_port(const struct gateway *gateway);

/* The port of ops.listen; only the first gateway of a process has it. */
uint16_t gateway_operations_port(const struct gateway *gateway);

/* Takes references to the keys and, with TLS, to a context (NULL: it stays as it is): before the gateway runs, or later to replace
 * them (SIGHUP). Any thread may call it. Returns false when the order could not be queued; the references
 * are taken in every case. */
bool gateway_use(struct gateway *gateway, struct key_set *keys, struct tls_context *tls);

/* Serves until the gateway is drained. */
void gateway_run(struct gateway *gateway);

/* Starts the drain within a second. Any thread may call it; it cannot fail. */
void gateway_drain(struct gateway *gateway);

/* Serves commands of operators (control_socket.h) on this gateway's ledger, in the data directory and in that of a SQLite
 * file elsewhere. Before gateway_run(), for one gateway of a process. */
void gateway_open_control(struct gateway *gateway);

/* Completes what is pending: every port answers that it is unavailable. Call it on the main thread after all gateways
 * have stopped and the ledger is closed, for all of them again until each returns false: then nothing was pending. */
bool gateway_finish(struct gateway *gateway);

/* Call it after all gateways have finished. */
void gateway_free(struct gateway **gateway);

#endif

/*
 * What the gateways of a process share, made before the first gateway and freed after the last: limits, the stores in
 * memory or what a fleet needs, the ledger with its breaker, keys and certificates.
 *
 * If a part cannot be made, one line tells the operator why and the process does not start. Keys and
 * certificates can be reloaded later; on an error the process logs it and keeps the old ones.
 *
 * Main thread only; gateways hold their own references to keys and certificates.
 */
#ifndef ROLLCALL_APP_SERVER_PARTS_H
#define ROLLCALL_APP_SERVER_PARTS_H

#include "app/gateway/gateway.h"
#include "app/gateway/gateway_hooks.h"
#include "app/gateway/memory_pressure.h"
#include "app/server_keys.h"
#include "webhooks/webhook_endpoints.h"

#include <limits.h>
#include <stdbool.h>

enum { SERVER_PARTS_WORKERS_MAX = METRICS_WORKERS_MAX - 2 };

struct server_parts {
    const struct config *config;
    struct gateway_parts gateway; /* for each gateway; the caller sets the callbacks */
    struct memory_budget memory;
    struct hook_parts hooks;
    struct webhook_endpoints webhooks;
    struct server_keys keys;
    struct tls_context *tls; /* NULL: plain */
    struct jwt_signer *signer;
};

/* On failure prints the reason and returns false. The process ends then, so nothing is undone. */
bool server_parts_make(struct server_parts *parts, const struct config *config);

/* Reads keys and certificates again. Returns false if some could not be replaced. */
bool server_parts_reload(struct server_parts *parts);

/* Call it after the ledger is closed and the last gateway is freed. */
void server_parts_free(struct server_parts *parts);

/* Prints an error to standard error. Returns false, so that a caller can return the result. */
bool server_parts_fail(const char *what, const char *why);

/* The same for a data directory that cannot be made; errno says why. */
bool server_parts_fail_directory(const char *path);

#endif

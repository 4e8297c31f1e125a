/*
 * What the gateways of a process share, made before the first of them and freed after the last: how much each
 * may take, the state in memory or the place in a fleet, the ledger and the breaker before it, keys and
 * certificates.
 *
 * What cannot be had is said to the operator in one line, and the process does not start. Keys and certificates
 * may be read again while it runs; what is wrong then is logged, and those that were read before stay.
 *
 * Of the main thread; gateways hold references of their own to keys and certificates.
 */
#ifndef ROLLCALL_APP_SERVER_PARTS_H
#define ROLLCALL_APP_SERVER_PARTS_H

#include "app/gateway.h"

#include <limits.h>
#include <stdbool.h>

enum { SERVER_PARTS_WORKERS_MAX = METRICS_WORKERS_MAX };

struct server_parts {
    const struct config *config;
    struct gateway_parts gateway; /* as each gets them; what it calls is the caller's to set */
    struct key_set *keys;
    struct tls_context *tls; /* NULL: plain */
    struct jwt_signer *signer;
    char keys_file[PATH_MAX];
};

/* False: what is wrong was said. There is nothing to undo then, as the process ends. */
bool server_parts_make(struct server_parts *parts, const struct config *config);

/* Reads keys and certificates again. False: some are as they were. */
bool server_parts_reload(struct server_parts *parts);

/* After the ledger was closed and the last gateway freed. */
void server_parts_free(struct server_parts *parts);

/* Says on standard error that something did not work; false, so that a caller can return it. */
bool server_parts_fail(const char *what, const char *why);

#endif

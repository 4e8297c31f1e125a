/*
 * The process around the gateways: what they share, their threads, and signals.
 *
 *   SIGTERM, SIGINT   drains, then exits with 0; a second one exits at once (POST /admin/v1/drain never does)
 *   SIGHUP            reads keys and certificates again; on an error it logs and keeps the old ones
 */
#ifndef ROLLCALL_APP_SERVER_H
#define ROLLCALL_APP_SERVER_H

#include "config/config.h"

/* Serves until all gateways are drained. Returns the exit status. */
int server_run(const struct config *config);

#endif

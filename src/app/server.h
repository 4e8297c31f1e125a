/*
 * The process around the gateways: what they share, the threads they run on, and the signals.
 *
 *   SIGTERM, SIGINT   drain, then exit 0; a second one exits at once
 *   SIGHUP            read keys and certificates again; what is wrong is logged and nothing changes
 */
#ifndef ROLLCALL_APP_SERVER_H
#define ROLLCALL_APP_SERVER_H

#include "config/config.h"

/* Serves until drained. Returns the exit status. */
int server_run(const struct config *config);

#endif

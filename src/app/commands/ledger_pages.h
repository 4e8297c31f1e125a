/*
 * The HTTP pages of `rollcall ledger`: /healthz, /readyz and /metrics, without a token, like those of a gateway.
 *
 *   open ──ledger_pages_drain()──► not ready ──ledger_pages_end()──► closing ──► is_ended: may be freed
 *
 * At most LEDGER_PAGES_CONNECTIONS_MAX connections; a further one replaces the one that has been without a
 * request for longest. Runs on the thread of the loop.
 */
#ifndef ROLLCALL_APP_COMMANDS_LEDGER_PAGES_H
#define ROLLCALL_APP_COMMANDS_LEDGER_PAGES_H

#include "config/config.h"
#include "ledger/remote/ledger_service.h"
#include "net/listener.h"
#include "net/stream.h"

enum { LEDGER_PAGES_CONNECTIONS_MAX = 64 };

/* Borrowed until the pages are freed. */
struct ledger_pages_options {
    struct loop *loop;
    struct stream_set *streams;
    const struct config *config;
    const struct ledger *ledger;
    const struct ledger_service *service;
};

struct ledger_pages;

/* Listens on `address` (HOST:PORT; port 0: any). On failure returns NULL and explains in `error`. */
struct ledger_pages *ledger_pages_open(const struct ledger_pages_options *options,
                                       const char *address, char error[LISTENER_ERROR_TEXT_MAX]);

uint16_t ledger_pages_port(const struct ledger_pages *pages);

/* /readyz answers 503 from now on. */
void ledger_pages_drain(struct ledger_pages *pages);

/* Stops listening and closes all connections within one turn of the loop. */
void ledger_pages_end(struct ledger_pages *pages);
bool ledger_pages_is_ended(const struct ledger_pages *pages);

/* Call it once ledger_pages_is_ended(), or when no connection was ever accepted. */
void ledger_pages_free(struct ledger_pages **pages);

#endif

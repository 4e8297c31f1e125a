/*
 * What `rollcall ledger` says of itself over HTTP: /healthz, /readyz and /metrics, for those who watch it. For
 * anybody who can reach the address, like a gateway's.
 *
 *   open ──ledger_pages_drain()──► not ready ──ledger_pages_end()──► closing ──► is_ended: may be freed
 *
 * It holds LEDGER_PAGES_CONNECTIONS_MAX connections; one more takes the place of the one that has waited longest
 * for a request. One thread, that of the loop.
 */
#ifndef ROLLCALL_APP_COMMANDS_LEDGER_PAGES_H
#define ROLLCALL_APP_COMMANDS_LEDGER_PAGES_H

#include "config/config.h"
#include "ledger/remote/ledger_service.h"
#include "net/listener.h"
#include "net/stream.h"

enum { LEDGER_PAGES_CONNECTIONS_MAX = 64 };

/* All borrowed until the pages are freed. */
struct ledger_pages_options {
    struct loop *loop;
    struct stream_set *streams;
    const struct config *config;
    const struct ledger *ledger;
    const struct ledger_service *service;
};

struct ledger_pages;

/* Listens on `address` (HOST:PORT; port 0: any). NULL with a sentence in `error`. */
struct ledger_pages *ledger_pages_open(const struct ledger_pages_options *options,
                                       const char *address, char error[LISTENER_ERROR_TEXT_MAX]);

/* The port it listens on. */
uint16_t ledger_pages_port(const struct ledger_pages *pages);

/* From now on /readyz is 503. */
void ledger_pages_drain(struct ledger_pages *pages);

/* Listens no more and closes what is open, within a turn of the loop. */
void ledger_pages_end(struct ledger_pages *pages);
bool ledger_pages_is_ended(const struct ledger_pages *pages);

/* When it has ended, or nobody ever came. */
void ledger_pages_free(struct ledger_pages **pages);

#endif

/*
 * Opens the ledger that the configuration names: a SQLite file of this process, or another process over a peer
 * link. The caller adds what it needs on top (clients).
 */
#ifndef ROLLCALL_APP_LEDGER_CHOICE_H
#define ROLLCALL_APP_LEDGER_CHOICE_H

#include "config/config.h"
#include "ledger/ledger.h"
#include "metrics/metrics.h"

#include <stdbool.h>

enum { LEDGER_CHOICE_ERROR_TEXT_MAX = 640 };

/* Returns true if the ledger is another process, which other gateways may share. */
bool ledger_choice_is_remote(const struct config *config);

/* Returns true if the ledger is DynamoDB. */
bool ledger_choice_is_dynamodb(const struct config *config);

/* Opens the ledger; a remote one connects later. On failure returns NULL and explains in `error`. The
 * configuration must outlive it. Free it with ledger_close(). */
struct ledger *ledger_choice_open(const struct config *config,
                                  char error[LEDGER_CHOICE_ERROR_TEXT_MAX]);

/* The same behind a circuit breaker, which all workers of the process share: a failure seen by one protects all. */
struct ledger *ledger_choice_open_with_breaker(const struct config *config,
                                               char error[LEDGER_CHOICE_ERROR_TEXT_MAX]);

/* Sets the gauges of such a ledger. */
void ledger_choice_sample(struct ledger *ledger, const struct config *config,
                          struct metrics *metrics);

#endif

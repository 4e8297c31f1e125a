/*
 * The ledger that the configuration names: a SQLite file of this process, or another process over a peer
 * link. What the program that runs it must have besides (a breaker, clients) is its own.
 */
#ifndef ROLLCALL_APP_LEDGER_CHOICE_H
#define ROLLCALL_APP_LEDGER_CHOICE_H

#include "config/config.h"
#include "ledger/ledger.h"

#include <stdbool.h>

enum { LEDGER_CHOICE_ERROR_TEXT_MAX = 640 };

/* Whether it is another process, which others may share. */
bool ledger_choice_is_remote(const struct config *config);

/* Opens it; a remote one is dialled later. NULL with a sentence in `error`. The configuration outlives it.
 * End it with ledger_close(). */
struct ledger *ledger_choice_open(const struct config *config,
                                  char error[LEDGER_CHOICE_ERROR_TEXT_MAX]);

#endif

/*
 * Runs a control command (app/control/control_call.h) from the command line: on the server that has the ledger open, if one runs,
 * else on the ledger itself.
 */
#ifndef ROLLCALL_APP_COMMANDS_LEDGER_CONTROL_H
#define ROLLCALL_APP_COMMANDS_LEDGER_CONTROL_H

#include "base/slice.h"

#include <stddef.h>

/* `url` NULL: the SQLite file in `data_dir`, which is made if it does not exist. Otherwise the ledger that it names;
 * a server that uses a SQLite file is asked through the directory of the file or through `data_dir` (may be NULL). Returns
 * the exit status; prints what the command says. */
int ledger_control_run(const char *data_dir, const char *url, const struct slice *arguments,
                       size_t count);

#endif

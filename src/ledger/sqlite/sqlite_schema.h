/*
 * The tables of the SQLite ledger and their history. The schema's version is SQLite's user_version;
 * each migration lifts it by one in a transaction of its own, so that an interrupted start leaves a
 * whole schema of some version. A file from a newer program is refused, never touched.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_SCHEMA_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_SCHEMA_H

#include "ledger/sqlite/database.h"

/* Brings a writer's database to the current version. False: `failure_text` says why. */
bool sqlite_schema_migrate(struct database *database);

/* The version this program writes. */
int sqlite_schema_version(void);

#endif

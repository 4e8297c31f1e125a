/*
 * The tables of the SQLite ledger and their migrations. SQLite's user_version holds the schema's version.
 * Each migration raises it by one in a transaction of its own, so that an interrupted start leaves a
 * complete schema of some version. A file from a newer program is refused and not changed.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_SCHEMA_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_SCHEMA_H

#include "ledger/sqlite/database.h"

/* Migrates a writer's database to the current version. Returns false with a reason in `failure_text`. */
bool sqlite_schema_migrate(struct database *database);

/* Returns the version that this program writes. */
int sqlite_schema_version(void);

/* Writes the version once more, so that a file that may only be read is noticed before the first write of a client.
 * Returns false with the database's failure. */
bool sqlite_schema_try_write(struct database *database);

#endif

/*
 * A database is one SQLite connection with its prepared statements. A query is one of those statements in
 * use. Only this file, the schema and the two kinds of thread use SQLite's functions.
 *
 * A statement is named by its SQL text: a `static const char[]` beside the code that runs it. It is
 * prepared at first use, kept until the connection closes, and found again by the address of the text.
 *
 * Failures are sticky: the first error stays in `failure`, and until database_clear_failure() every
 * further query finds nothing and changes nothing. So an operation continues without checks, and
 * its caller checks once, at the end.
 *
 * The writer's connection is the only one that writes and the only one that checkpoints. Both modes use
 * the write-ahead log; the writer's commits wait for the disk (synchronous=FULL).
 *
 * One thread per database.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_DATABASE_H
#define ROLLCALL_LEDGER_SQLITE_DATABASE_H

#include "base/slice.h"
#include "ledger/sqlite/sqlite_contact_space.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    DATABASE_STATEMENTS_MAX = 256, /* slots; a power of two, well above the number of SQL texts */
    DATABASE_BUSY_MS = 1000,       /* wait for a foreign lock, well below the ledger's time limit */
    DATABASE_FAILURE_TEXT_BYTES = 256,
};

enum database_mode { DATABASE_WRITER, DATABASE_READER };

struct database_statement {
    const char *sql;
    sqlite3_stmt *handle;
};

struct database {
    sqlite3 *handle; /* NULL while closed */
    int failure;     /* a primary SQLite result code; SQLITE_OK: none */
    char failure_text[DATABASE_FAILURE_TEXT_BYTES];
    int wal_pages;                              /* length of the log after the last commit */
    int wal_pages_moved;                        /* length of the log at the last checkpoint */
    struct sqlite_contact_space *contact_space; /* the writer's; NULL: none */
    struct database_statement statements[DATABASE_STATEMENTS_MAX];
};

/* Opens a file; `vfs` names SQLite's file layer, NULL its default. Returns false, with a reason in
 * `failure_text`, when the file cannot be opened or is not a usable database. */
bool database_open(struct database *database, const char *path, enum database_mode mode,
                   const char *vfs);

void database_close(struct database *database);

static inline bool database_failed(const struct database *database)
{
    return database->failure != SQLITE_OK;
}

void database_clear_failure(struct database *database);

/* Returns whether a failure makes the connection unusable: its file is damaged, gone, read-only or out of
 * order. A full disk or a lock passes without reopening. */
bool database_needs_reopening(int failure);

/* Runs a statement without parameters or rows. Returns false on failure. */
bool database_run(struct database *database, const char *sql);

/* Runs one or several SQL statements without keeping them prepared. Returns false on failure. */
bool database_run_script(struct database *database, const char *sql);

/* Moves the log's pages into the file, as far as readers allow; `restart` waits for the readers. */
void database_checkpoint(struct database *database, bool restart);

/* ---- queries ---- */

struct query {
    struct database *database;
    sqlite3_stmt *statement; /* NULL: failed or ended */
    int bound;
};

struct query query_open(struct database *database, const char *sql);

/* Opens a query and binds up to three texts; SLICE_NONE ends them. */
struct query query_open_texts(struct database *database, const char *sql, struct slice first,
                              struct slice second, struct slice third);

/* Each binds the next parameter. A text is borrowed until the query ends. */
void query_bind(struct query *query, struct slice text);
void query_bind_int(struct query *query, int64_t value);

/* Moves to the next row. Returns false, and ends the query, after the last row or on failure. */
bool query_next(struct query *query);

/* Read a column of the current row. A text lasts until the next row. */
struct slice query_text(const struct query *query, int column);
int64_t query_int(const struct query *query, int column);

/* Ends a query before its last row. May be called after the end. */
void query_end(struct query *query);

/* Runs a query to its end. Returns how many rows it inserted, updated or deleted. */
int query_run(struct query *query);

/* Runs a query. Returns whether it has a row. */
bool query_found(struct query *query);

#endif

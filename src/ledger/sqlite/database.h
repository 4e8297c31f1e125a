/*
 * A database is one SQLite connection with its prepared statements, and a query is one of those
 * statements in use. The only files that speak to SQLite directly are these and the schema's.
 *
 * A statement is named by its SQL text: a `static const char[]` beside the code that runs it,
 * prepared at first use, kept until the connection closes, found again by the text's address.
 *
 * Failures are sticky: the first error is kept in `failure`, and until database_clear_failure()
 * every further query finds nothing and changes nothing, so that code reads straight on and the one
 * who runs a request looks once, at the end.
 *
 * The writer's connection is the only one that writes and the only one that checkpoints. Both kinds
 * use the write-ahead log; the writer's commits wait for the disk (synchronous=FULL).
 *
 * One thread per database.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_DATABASE_H
#define ROLLCALL_LEDGER_SQLITE_DATABASE_H

#include "base/slice.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    DATABASE_STATEMENTS_MAX = 256, /* slots; a power of two, well above the number of SQL texts */
    DATABASE_BUSY_MS = 1000,       /* patience with a stranger's lock, well below the time limit */
    DATABASE_FAILURE_TEXT_BYTES = 256,
};

enum database_mode { DATABASE_WRITER, DATABASE_READER };

struct database_statement {
    const char *sql;
    sqlite3_stmt *handle;
};

struct database {
    sqlite3 *handle; /* NULL while closed */
    int failure;     /* a primary SQLite result code; SQLITE_OK is none */
    char failure_text[DATABASE_FAILURE_TEXT_BYTES];
    int wal_pages;       /* length of the log after the last commit */
    int wal_pages_moved; /* and at the last checkpoint */
    struct database_statement statements[DATABASE_STATEMENTS_MAX];
};

/* False when the file cannot be opened or is no usable database; `failure_text` says why. `vfs` is
 * SQLite's name of a file layer, NULL for the usual one. */
bool database_open(struct database *database, const char *path, enum database_mode mode,
                   const char *vfs);

void database_close(struct database *database);

static inline bool database_failed(const struct database *database)
{
    return database->failure != SQLITE_OK;
}

void database_clear_failure(struct database *database);

/* Whether the connection should be made anew before it is used again: its file is damaged, gone,
 * read-only or out of order. A full disk or a lock passes without. */
bool database_needs_reopening(int failure);

/* Runs a statement without parameters or rows. False on failure. */
bool database_run(struct database *database, const char *sql);

/* Runs SQL that is not worth keeping, several statements at once. False on failure. */
bool database_run_script(struct database *database, const char *sql);

/* Moves what the log holds into the file, as far as readers allow; `restart` waits for them. */
void database_checkpoint(struct database *database, bool restart);

/* ---- queries ---- */

struct query {
    struct database *database;
    sqlite3_stmt *statement; /* NULL: failed or ended */
    int bound;
};

struct query query_open(struct database *database, const char *sql);

/* Each binds the next parameter. A text is borrowed until the query ends. */
void query_bind(struct query *query, struct slice text);
void query_bind_int(struct query *query, int64_t value);

/* The next row; false at the end or on failure, which also ends the query. */
bool query_next(struct query *query);

/* Of the current row; a text lasts until the next row. */
struct slice query_text(const struct query *query, int column);
int64_t query_int(const struct query *query, int column);

/* Ends a query before its last row. Harmless when it has ended. */
void query_end(struct query *query);

/* Runs a query to its end: how many rows it inserted, updated or deleted. */
int query_run(struct query *query);

/* Runs a query: whether it has a row. */
bool query_found(struct query *query);

/* Queries whose parameters are all texts: up to three, the first SLICE_NONE ends them. */
struct query query_of(struct database *database, const char *sql, struct slice first,
                      struct slice second, struct slice third);

#endif

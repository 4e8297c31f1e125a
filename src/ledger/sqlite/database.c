#include "ledger/sqlite/database.h"

#include <assert.h>
#include <stdio.h>

static void set_database_failure(struct database *database, int code)
{
    if (database_failed(database))
        return;
    database->failure = code & 0xff;
    snprintf(database->failure_text, sizeof(database->failure_text), "%s (SQLite %d)",
             database->handle ? sqlite3_errmsg(database->handle) : sqlite3_errstr(code), code);
}

void database_clear_failure(struct database *database)
{
    database->failure = SQLITE_OK;
    database->failure_text[0] = '\0';
}

bool database_needs_reopening(int failure)
{
    switch (failure) {
    case SQLITE_OK:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_CONSTRAINT:
        return false;
    default:
        return true;
    }
}

/* ---- opening ---- */

static int on_wal_committed(void *arg, sqlite3 *handle, const char *name, int pages)
{
    struct database *database = arg;
    (void)handle, (void)name;
    database->wal_pages = pages;
    return SQLITE_OK;
}

bool database_open(struct database *database, const char *path, enum database_mode mode,
                   const char *vfs)
{
    /* No foreign keys: the members of a draft are stored before their chat (sqlite_chat_drafts.h). */
    static const char WRITER_SETUP[] = "PRAGMA journal_mode=WAL;"
                                       "PRAGMA synchronous=FULL;"
                                       "PRAGMA foreign_keys=OFF;"
                                       "PRAGMA temp_store=MEMORY;"
                                       "PRAGMA cache_size=-16384;"
                                       "PRAGMA journal_size_limit=67108864;";
    static const char READER_SETUP[] = "PRAGMA query_only=ON;"
                                       "PRAGMA temp_store=MEMORY;"
                                       "PRAGMA cache_size=-1024;"
                                       "SELECT count(*) FROM sqlite_schema;";
    bool writes = mode == DATABASE_WRITER;
    int access = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    *database = (struct database){0};
    int code = sqlite3_open_v2(path, &database->handle, access | SQLITE_OPEN_NOMUTEX, vfs);
    if (code != SQLITE_OK) {
        set_database_failure(database, code);
    } else {
        sqlite3_extended_result_codes(database->handle, 1);
        sqlite3_busy_timeout(database->handle, DATABASE_BUSY_MS);
        if (writes) /* the hook replaces automatic checkpoints, which would make a commit wait */
            sqlite3_wal_hook(database->handle, on_wal_committed, database);
        else
            sqlite3_db_config(database->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        database_run_script(database, writes ? WRITER_SETUP : READER_SETUP);
    }
    if (!database_failed(database)) {
        uint64_t seed;
        sqlite3_randomness(sizeof(seed), &seed);
        database->contact_space = writes ? sqlite_contact_space_make(seed) : NULL;
        return true;
    }
    database_close(database);
    return false;
}

void database_close(struct database *database)
{
    for (size_t i = 0; i < DATABASE_STATEMENTS_MAX; i++)
        sqlite3_finalize(database->statements[i].handle);
    memset(database->statements, 0, sizeof(database->statements));
    sqlite_contact_space_free(&database->contact_space);
    int code = sqlite3_close(database->handle);
    assert(code == SQLITE_OK); /* every statement was finalized */
    (void)code;
    database->handle = NULL;
}

/* ---- statements ---- */

static struct database_statement *find_statement_slot(struct database *database, const char *sql)
{
    size_t slot = ((uintptr_t)sql * 0x9e3779b97f4a7c15u) >> 32;
    for (size_t tries = 0; tries < DATABASE_STATEMENTS_MAX; tries++, slot++) {
        struct database_statement *found =
            &database->statements[slot & (DATABASE_STATEMENTS_MAX - 1)];
        if (!found->sql || found->sql == sql)
            return found;
    }
    assert(!"more SQL texts than DATABASE_STATEMENTS_MAX");
    return NULL;
}

static sqlite3_stmt *prepare_statement(struct database *database, const char *sql)
{
    if (database_failed(database))
        return NULL;
    struct database_statement *statement = find_statement_slot(database, sql);
    if (statement->sql)
        return statement->handle;
    int code = sqlite3_prepare_v3(database->handle, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                  &statement->handle, NULL);
    if (code != SQLITE_OK) {
        set_database_failure(database, code);
        return NULL;
    }
    statement->sql = sql;
    return statement->handle;
}

bool database_run(struct database *database, const char *sql)
{
    struct query query = query_open(database, sql);
    query_run(&query);
    return !database_failed(database);
}

bool database_run_script(struct database *database, const char *sql)
{
    int code = sqlite3_exec(database->handle, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        set_database_failure(database, code);
    return code == SQLITE_OK;
}

void database_checkpoint(struct database *database, bool restart)
{
    int mode = restart ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
    int code = sqlite3_wal_checkpoint_v2(database->handle, NULL, mode, NULL, NULL);
    if (code != SQLITE_OK && code != SQLITE_BUSY)
        set_database_failure(database, code);
}

/* ---- queries ---- */

struct query query_open(struct database *database, const char *sql)
{
    return (struct query){.database = database, .statement = prepare_statement(database, sql)};
}

struct query query_open_texts(struct database *database, const char *sql, struct slice first,
                              struct slice second, struct slice third)
{
    struct query query = query_open(database, sql);
    const struct slice texts[] = {first, second, third};
    for (size_t i = 0; i < 3 && texts[i].data; i++)
        query_bind(&query, texts[i]);
    return query;
}

static void check_query_bound(struct query *query, int code)
{
    if (code == SQLITE_OK)
        return;
    set_database_failure(query->database, code);
    query_end(query);
}

void query_bind(struct query *query, struct slice text)
{
    if (query->statement)
        check_query_bound(query, sqlite3_bind_text64(query->statement, ++query->bound, text.data,
                                                     text.len, SQLITE_STATIC, SQLITE_UTF8));
}

void query_bind_int(struct query *query, int64_t value)
{
    if (query->statement)
        check_query_bound(query, sqlite3_bind_int64(query->statement, ++query->bound, value));
}

bool query_next(struct query *query)
{
    if (!query->statement)
        return false;
    int code = sqlite3_step(query->statement);
    if (code == SQLITE_ROW)
        return true;
    if (code != SQLITE_DONE)
        set_database_failure(query->database, code);
    query_end(query);
    return false;
}

struct slice query_text(const struct query *query, int column)
{
    const char *text = (const char *)sqlite3_column_text(query->statement, column);
    return (struct slice){text, (size_t)sqlite3_column_bytes(query->statement, column)};
}

int64_t query_int(const struct query *query, int column)
{
    return sqlite3_column_int64(query->statement, column);
}

void query_end(struct query *query)
{
    if (!query->statement)
        return;
    sqlite3_reset(query->statement);
    sqlite3_clear_bindings(query->statement); /* they point into a request that will be freed */
    query->statement = NULL;
}

int query_run(struct query *query)
{
    if (!query->statement)
        return 0;
    while (query_next(query))
        ;
    return database_failed(query->database) ? 0 : sqlite3_changes(query->database->handle);
}

bool query_found(struct query *query)
{
    bool found = query_next(query);
    query_end(query);
    return found;
}

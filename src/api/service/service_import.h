/*
 * POST /v1/service/import: contacts, blocks, users and chats as lines (import_line.h) of a body of any length.
 *
 *   body ──pieces──► lines ──contacts, blocks──► batches (a ring) ──► relation_changes.h ──► counts, errors
 *     ▲ paused            └──users, chats──────► singles ───────────► ledger ─────────────────┘
 *     └── while no batch or single is free: TCP slows the client down, and memory stays flat
 *
 * Contacts and blocks go in batches of LEDGER_RELATIONS_MAX, IMPORT_BATCHES_SENT at a time; other users' writes come between them
 * (ledger/ledger_lane.h). Batches of contacts and of blocks are never under way together, so that a block after a contact of
 * the same two users is stored after it. Users and chats have no order.
 *
 * Every line is idempotent, so an import that broke off is sent again from any line. When the ledger does not answer, a
 * batch is sent again with back-off; after IMPORT_PATIENCE_MS without any answer the import ends with 503.
 *
 * One thread, that of the worker. An import lives until its exchange has ended and nothing of it is under way.
 */
#ifndef ROLLCALL_API_SERVICE_SERVICE_IMPORT_H
#define ROLLCALL_API_SERVICE_SERVICE_IMPORT_H

#include "api/service/import_report.h"
#include "api/service/relation_changes.h"
#include "api/service/service_routes.h"

enum {
    IMPORTS_MAX = 4,         /* of one worker at a time; more are answered with 503 */
    IMPORT_BATCHES = 6,      /* in the ring */
    IMPORT_BATCHES_SENT = 4, /* of them, under way */
    IMPORT_SINGLES_MAX = 32,
    IMPORT_BACKOFF_MS = 250, /* before the first repetition; doubles up to IMPORT_BACKOFF_MAX_MS */
    IMPORT_BACKOFF_MAX_MS = 4000,
    IMPORT_PATIENCE_MS = 30000,
};

struct import;

/* Free and filling batches hold pairs in order; the others are ready, sent, or done. */
enum import_batch_state {
    IMPORT_BATCH_FILLING,
    IMPORT_BATCH_READY,
    IMPORT_BATCH_SENT,
    IMPORT_BATCH_DONE
};

struct import_batch {
    struct import *import;
    enum import_batch_state state;
    enum import_kind kind;
    size_t count;
    uint64_t lines[LEDGER_RELATIONS_MAX];
    uint8_t lengths[2 * LEDGER_RELATIONS_MAX]; /* of the ids in `bytes` */
    struct buffer bytes;
};

/* A user or a chat. */
struct import_single {
    struct list of_import; /* in `retries` while it waits for its next try */
    struct import *import;
    enum import_kind kind;
    uint64_t line;
    size_t len;
    char bytes[]; /* the object, then a copy to work on */
};

struct import {
    struct exchange *exchange; /* NULL: it has ended */
    struct api_context *context;
    struct session_context *sessions;
    struct import_lines lines;
    struct import_report report;
    struct import_batch batches[IMPORT_BATCHES];
    unsigned oldest; /* batches from this one to `filling` are in use; both only grow */
    unsigned filling;
    unsigned batches_sent;
    unsigned singles; /* under way or waiting for their next try */
    struct list retries;
    struct wheel_timer retry;
    bool is_retrying;         /* the timer runs: nothing is sent */
    int64_t failing_since_ms; /* 0: the last answer was one */
    int64_t backoff_ms;
    bool body_ended;
    bool body_paused;
    bool advancing;
};

/* ---- service_import_singles.c ---- */

/* Starts a user or chat; copies the object. Out of memory: the line is an error. */
void service_import_single(struct import *import, const struct import_line *line);

/* Tries again what waits for that. */
void service_import_retry_singles(struct import *import);

/* Forgets what waits for its next try. */
void service_import_drop_singles(struct import *import);

/* ---- service_import.c, for the singles ---- */

/* Returns whether the ledger did not answer, so that the line has to be tried again. */
bool service_import_is_retried(enum ledger_status status);

/* The ledger did not answer: starts the back-off, or ends the import when it has lasted too long. */
void service_import_failed(struct import *import);

/* Goes on after something has been done. May free the import. */
void service_import_advance(struct import *import);

#endif

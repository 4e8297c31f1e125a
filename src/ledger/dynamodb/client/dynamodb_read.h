/*
 * Reading from DynamoDB, always consistently: a read that begins after a write was answered sees it. A page of a query is
 * not a snapshot: items that are written meanwhile may or may not be seen.
 *
 * After a failure a read finds nothing; the task remembers that it failed (dynamodb_client.h).
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_READ_H
#define ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_READ_H

#include "ledger/dynamodb/client/dynamodb_item.h"

enum {
    DYNAMODB_BATCH_GET_MAX = 100, /* keys of one call */
    DYNAMODB_GATHER_MAX = 100,    /* keys of one dynamodb_get_together() */
};

struct dynamodb_item dynamodb_get(struct dynamodb_task *task, struct dynamodb_key key);

/* Reads any number of items, several batches at a time; `items` has space for them, in the order of the keys, which are all
 * different. */
void dynamodb_get_many(struct dynamodb_task *task, const struct dynamodb_key *keys, size_t count,
                       struct dynamodb_item *items);

/* Reads at most DYNAMODB_GATHER_MAX items as they are at one instant. */
void dynamodb_get_together(struct dynamodb_task *task, const struct dynamodb_key *keys,
                           size_t count, struct dynamodb_item *items);

/*
 * The items of one partition in the order of their sort keys:
 *
 *     struct dynamodb_query query = {.table = DYNAMODB_CHATS, .partition = chat, .prefix = "member#"};
 *     struct dynamodb_item item;
 *     while (dynamodb_query_next(task, &query, &item))
 *         …
 */
struct dynamodb_query {
    enum dynamodb_table table;
    struct slice partition;
    const char *prefix; /* of a text sort key; NULL: all */
    struct slice after; /* begins behind this sort key, prefix included; SLICE_NONE: at the start */
    bool has_after_number; /* the same for a number */
    int64_t after_number;
    bool descending;
    uint32_t limit;         /* how many items are wanted at most; 0: all */
    const char *attributes; /* a projection, "user_id, since_ms"; NULL: all */
    /* ---- */
    struct dynamodb_item *page;
    size_t page_count;
    size_t at;
    uint32_t returned;
    struct dynamodb_item last_key;
    bool begun;
};

/* Returns false at the end, or after a failure. */
bool dynamodb_query_next(struct dynamodb_task *task, struct dynamodb_query *query,
                         struct dynamodb_item *item);

#endif

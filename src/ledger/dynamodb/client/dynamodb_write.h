/*
 * Writing to DynamoDB. A transaction writes up to DYNAMODB_TRANSACTION_MAX items, all or none, each under a condition:
 *
 *     struct dynamodb_transaction transaction;
 *     dynamodb_transaction_begin(&transaction, task);
 *     unsigned chat = dynamodb_transaction_put(&transaction, key, attributes, "attribute_not_exists(chat_id)", DYNAMODB_NO_VALUES);
 *     …
 *     if (dynamodb_transaction_commit(&transaction) == DYNAMODB_REFUSED && dynamodb_transaction_refused(&transaction, chat)) …
 *
 * Between begin and commit the task makes no other call. A transaction carries a token, so that it is executed once however
 * often it is sent; a refused one has written nothing. No item may occur twice in it. Values that an expression does
 * not use are an error.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_WRITE_H
#define ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_WRITE_H

#include "ledger/dynamodb/client/dynamodb_item.h"

enum {
    DYNAMODB_TRANSACTION_MAX = 100,
    DYNAMODB_BATCH_WRITE_MAX = 25, /* items of one call of dynamodb_put_many() */
    /* How often an operation that was refused reads again and decides anew. */
    DYNAMODB_DECISIONS_MAX = 8,
};

struct dynamodb_refusal {
    bool refused;
    struct dynamodb_item item; /* as it is, if it exists */
};

struct dynamodb_transaction {
    struct dynamodb_task *task;
    unsigned count;
    struct dynamodb_refusal refusals[DYNAMODB_TRANSACTION_MAX];
};

void dynamodb_transaction_begin(struct dynamodb_transaction *transaction,
                                struct dynamodb_task *task);

/* Each adds a write and returns its place. `condition` NULL: none. `values` are those of the expressions. */
unsigned dynamodb_transaction_put(struct dynamodb_transaction *transaction, struct dynamodb_key key,
                                  struct dynamodb_values attributes, const char *condition,
                                  struct dynamodb_values values);
unsigned dynamodb_transaction_update(struct dynamodb_transaction *transaction,
                                     struct dynamodb_key key, const char *update,
                                     const char *condition, struct dynamodb_values values);
unsigned dynamodb_transaction_delete(struct dynamodb_transaction *transaction,
                                     struct dynamodb_key key, const char *condition,
                                     struct dynamodb_values values);
/* Writes nothing, but the others are written only if the condition holds. */
unsigned dynamodb_transaction_check(struct dynamodb_transaction *transaction,
                                    struct dynamodb_key key, const char *condition,
                                    struct dynamodb_values values);

enum dynamodb_outcome dynamodb_transaction_commit(struct dynamodb_transaction *transaction);

/* Begins the next decision of an operation; `decisions` counts them from 0. Before all but the first it waits at random, longer each
 * time, so that one of several processes that refuse each other is first. Returns false when there were enough, or after a
 * failure. */
bool dynamodb_decide(struct dynamodb_task *task, unsigned *decisions);

static inline bool dynamodb_transaction_refused(const struct dynamodb_transaction *transaction,
                                                unsigned place)
{
    return transaction->refusals[place].refused;
}

/* Changes one item. If the outcome of a try was unknown it may be executed twice, so the change must bear that. */
enum dynamodb_outcome dynamodb_update(struct dynamodb_task *task, struct dynamodb_key key,
                                      const char *update, const char *condition,
                                      struct dynamodb_values values);

/* Stores and removes one item, without a condition. */
enum dynamodb_outcome dynamodb_put(struct dynamodb_task *task, struct dynamodb_key key,
                                   struct dynamodb_values attributes);
enum dynamodb_outcome dynamodb_delete(struct dynamodb_task *task, struct dynamodb_key key);

struct dynamodb_put_entry {
    struct dynamodb_key key;
    struct dynamodb_values attributes;
    bool is_delete; /* the attributes do not matter */
};

/* Stores or removes any number of different items, several batches at a time: not all or none. */
enum dynamodb_outcome dynamodb_put_many(struct dynamodb_task *task,
                                        const struct dynamodb_put_entry *entries, size_t count);

#endif

/*
 * Cursors: how far each device of a user has acknowledged a chat. The highest is the user's read mark.
 *
 *   chats   chat_id, "cursor#" and dynamodb_pair(user, device)   cursor_sequence
 *           chat_id, "read#USER"                                 read_sequence, own_read_count, cursor_count
 *
 * own_read_count is how many of the messages up to read_sequence are the user's own; with "sent#USER" it makes the count of unread
 * messages a subtraction. A cursor is added or removed only together with "read#USER", whose cursor_count keeps them within
 * LEDGER_CURSORS_MAX.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_CURSORS_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_CURSORS_H

#include "ledger/dynamodb/dynamodb_operations.h"
#include "ledger/ledger_messages.h"

/* All cursors that a user has in a chat. */
struct dynamodb_user_cursors {
    struct dynamodb_key read_key;
    int64_t count; /* as "read#USER" says; 0: there is no such item */
    struct dynamodb_key keys[LEDGER_CURSORS_MAX];
    int64_t sequences[LEDGER_CURSORS_MAX];
    size_t listed;
};

struct dynamodb_user_cursors dynamodb_cursors_of_user(struct dynamodb_task *task, struct slice chat,
                                                      struct slice user);

/* Adds their removal to a transaction, which is refused if there are others by then. */
void dynamodb_cursors_add_removal(struct dynamodb_transaction *transaction,
                                  const struct dynamodb_user_cursors *cursors);

#endif

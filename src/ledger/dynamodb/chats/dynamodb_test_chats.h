/* For tests: whether the items of all chats agree with each other. */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CHATS_DYNAMODB_TEST_CHATS_H
#define ROLLCALL_LEDGER_DYNAMODB_CHATS_DYNAMODB_TEST_CHATS_H

#include "ledger/dynamodb/dynamodb_test_server.h"

/* Reads the tables `chats` and `users`, at rest, and fails the test unless: the counts of every chat equal its items; every member
 * has an entry, and every entry a member; direct chats exist; cursors are counted; nobody but members has read marks. */
void dynamodb_test_chats_check(const struct dynamodb_test_server *server,
                               struct ledger_client *client);

/* Returns how many items of a table have a second key that begins with `prefix`, under a first key (NULL: any). */
size_t dynamodb_test_chats_count(const struct dynamodb_test_server *server,
                                 struct ledger_client *client, const char *table,
                                 const char *partition, const char *prefix);

#endif

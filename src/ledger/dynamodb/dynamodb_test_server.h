/* For tests: tables of one test on a real DynamoDB server, and calls that bypass the ledger to look at items and to spoil
 * them. The server is named by TEST_DYNAMODB (`make test-cloud` starts one). */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_TEST_SERVER_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_TEST_SERVER_H

#include "ledger/ledger.h"

enum { DYNAMODB_TEST_TEXT_MAX = 512 };

struct dynamodb_test_server {
    char url[DYNAMODB_TEST_TEXT_MAX]; /* dynamodb://…, with a prefix of its own */
    char prefix[64];
    unsigned port;
};

/* Returns false, and says why, without a server. */
bool dynamodb_test_server_init(void);

/* Makes empty tables. */
void dynamodb_test_server_make_tables(struct dynamodb_test_server *server);

struct ledger *dynamodb_test_server_open(const struct dynamodb_test_server *server);

/* Makes a call; each '@' in the body becomes the tables' prefix, each ' a ". The answer lasts until the next call; a
 * status other than 200 fails the test. */
const char *dynamodb_test_server_call(const struct dynamodb_test_server *server, const char *target,
                                      const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

/*
 * The conformance suite on DynamoDB. The server is named by TEST_DYNAMODB (`make test-cloud` starts one); each
 * test has tables of its own. ROLLCALL_TEST names the only test to run, for example chat_is_created_once.
 */
#include "conformance/ledger_suite.h"

#include "conformance/ledger_suite_tests.h"
#include "ledger/dynamodb/dynamodb_admin.h"
#include "ledger/dynamodb/dynamodb_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct server {
    const char *endpoint;
    unsigned opened;
};

static const struct config_dynamodb SETTINGS = {.retry = {3, 100, 5000},
                                                .transaction_conflict = {5, 50}};

static struct ledger *open_empty_ledger(void *context)
{
    struct server *server = context;
    char url[512], error[DYNAMODB_LEDGER_ERROR_TEXT_MAX];
    snprintf(url, sizeof(url), "dynamodb://local?endpoint=%s&prefix=t%d-%u-", server->endpoint,
             (int)getpid(), server->opened++);
    if (!dynamodb_admin_create_tables(url, error))
        fail_msg("%s", error);
    struct ledger *ledger = dynamodb_ledger_open(url, &SETTINGS, error);
    if (!ledger)
        fail_msg("%s", error);
    return ledger;
}

static void leave_tables(void *context)
{
    (void)context; /* the server's memory ends with it */
}

int main(void)
{
    struct server server = {.endpoint = getenv("TEST_DYNAMODB")};
    struct ledger_suite_factory factory = {"dynamodb", &server, open_empty_ledger, leave_tables};
    if (!server.endpoint) {
        puts("TEST_DYNAMODB names no server: make test-cloud starts one");
        return 1;
    }
    setenv("AWS_ACCESS_KEY_ID", "test", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "test", 1);
    if (getenv("ROLLCALL_TEST"))
        cmocka_set_test_filter(getenv("ROLLCALL_TEST"));
    return ledger_suite_run(&factory);
}

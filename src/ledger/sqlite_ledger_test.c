/* The SQLite backend against the suite that every backend must pass. */
#include "conformance/ledger_suite.h"
#include "ledger/sqlite_ledger.h"
#include "ledger/sqlite_test_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct ledger *open_empty(void *context)
{
    struct test_file *file = context;
    struct sqlite_ledger_error error;
    test_file_make(file);
    struct ledger *ledger = sqlite_ledger_open(file->path, NULL, &error);
    if (!ledger)
        fail_msg("%s", error.text);
    return ledger;
}

static void clean(void *context)
{
    test_file_remove(context);
}

int main(void)
{
    struct test_file file;
    struct ledger_suite_factory factory = {"sqlite", &file, open_empty, clean};
    return ledger_suite_run(&factory);
}

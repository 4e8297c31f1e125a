#include "ledger/dynamodb/dynamodb_operations.h"

static const dynamodb_operation operations[LEDGER_OPERATION_COUNT] = {
    [LEDGER_SETTINGS_GET] = dynamodb_users_settings_get,
};

void dynamodb_operations_complete(struct dynamodb_task *task, struct ledger_request *request,
                                  enum ledger_status status)
{
    if (task->invalid)
        status = LEDGER_INVALID;
    else if (task->late)
        status = LEDGER_TIMEOUT;
    else if (task->failed || request->exhausted)
        status = LEDGER_UNAVAILABLE;
    if (status != LEDGER_OK)
        ledger_request_fail(request, status);
}

void dynamodb_operations_execute(struct dynamodb_task *task)
{
    dynamodb_operation operation = operations[task->request->operation];
    enum ledger_status status = operation ? operation(task) : LEDGER_UNAVAILABLE;
    dynamodb_operations_complete(task, task->request, status);
}

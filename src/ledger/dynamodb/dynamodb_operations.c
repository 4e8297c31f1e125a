#include "ledger/dynamodb/dynamodb_operations.h"

static const dynamodb_operation operations[LEDGER_OPERATION_COUNT] = {
    [LEDGER_SETTINGS_GET] = dynamodb_users_settings_get,
    [LEDGER_SETTINGS_PUT] = dynamodb_users_settings_put,
    [LEDGER_PROFILES] = dynamodb_users_profiles,
    [LEDGER_APPEARANCES] = dynamodb_users_appearances,
    [LEDGER_GRAPH] = dynamodb_users_graph,
    [LEDGER_LAST_SEEN_PUT] = dynamodb_users_last_seen_put,
    [LEDGER_CONTACT_REQUEST_CREATE] = dynamodb_contacts_request_create,
    [LEDGER_CONTACT_REQUEST_ACCEPT] = dynamodb_contacts_request_accept,
    [LEDGER_CONTACT_REQUEST_DECLINE] = dynamodb_contacts_request_decline,
    [LEDGER_CONTACT_REQUEST_WITHDRAW] = dynamodb_contacts_request_withdraw,
    [LEDGER_CONTACT_REQUESTS_LIST] = dynamodb_contacts_requests_list,
    [LEDGER_CONTACTS_LIST] = dynamodb_contacts_list,
    [LEDGER_CONTACT_REMOVE] = dynamodb_contacts_remove,
    [LEDGER_BLOCK_PUT] = dynamodb_blocks_put,
    [LEDGER_BLOCK_DELETE] = dynamodb_blocks_delete,
    [LEDGER_BLOCKS_LIST] = dynamodb_blocks_list,
    [LEDGER_RELATIONS_CHANGE] = dynamodb_relations_change,
    [LEDGER_CHAT_CREATE] = dynamodb_chat_create_group,
    [LEDGER_CHAT_OPEN_DIRECT] = dynamodb_chat_create_direct,
    [LEDGER_CHAT_GET] = dynamodb_chats_get,
    [LEDGER_CHAT_CHANGE] = dynamodb_roles_change_chat,
    [LEDGER_CHATS_LIST] = dynamodb_chats_list,
    [LEDGER_CHAT_MEMBER_CHECK] = dynamodb_members_check,
    [LEDGER_CHAT_MEMBER_ADD] = dynamodb_members_add,
    [LEDGER_CHAT_MEMBER_REMOVE] = dynamodb_members_remove,
    [LEDGER_CHAT_ADMIN_PUT] = dynamodb_roles_admin_put,
    [LEDGER_CHAT_ADMIN_DELETE] = dynamodb_roles_admin_delete,
    [LEDGER_CALL_APPEND] = dynamodb_calls_append,
    [LEDGER_CALLS_LIST] = dynamodb_calls_list,
    [LEDGER_MESSAGES_AFTER] = dynamodb_messages_after,
    [LEDGER_MESSAGES_BEFORE] = dynamodb_messages_before,
    [LEDGER_MESSAGES_ERASE] = dynamodb_erasure_messages,
    [LEDGER_USER_FORGET] = dynamodb_erasure_forget,
    [LEDGER_CURSOR_PUT] = dynamodb_cursors_put,
    [LEDGER_OUTBOX_LIST] = dynamodb_outbox_list,
    [LEDGER_OUTBOX_REMOVE] = dynamodb_outbox_remove,
    [LEDGER_DEAD_LETTER_PUT] = dynamodb_outbox_dead_letter_put,
    [LEDGER_DEAD_LETTERS_LIST] = dynamodb_outbox_dead_letters_list,
    [LEDGER_DEAD_LETTER_REPLAY] = dynamodb_outbox_dead_letter_replay,
    [LEDGER_CHAT_REPAIR] = dynamodb_messages_repair,
    [LEDGER_REVOKE] = dynamodb_revocations_put,
    [LEDGER_REVOCATIONS_LIST] = dynamodb_revocations_list,
    [LEDGER_CALL_EVENT] = dynamodb_events_call,
    [LEDGER_EVENTS_LIST] = dynamodb_events_list,
    [LEDGER_EVENTS_REMOVE] = dynamodb_events_remove,
    [LEDGER_EVENTS_BURY] = dynamodb_events_bury,
    [LEDGER_DEAD_EVENTS_LIST] = dynamodb_events_list_dead,
    [LEDGER_DEAD_EVENTS_REPLAY] = dynamodb_events_replay,
    [LEDGER_EVENT_QUEUE_GET] = dynamodb_events_queue_get,
    [LEDGER_EVENT_LEASE] = dynamodb_events_lease,
    [LEDGER_KEY_PUT] = dynamodb_keys_put,
    [LEDGER_KEY_DELETE] = dynamodb_keys_delete,
    [LEDGER_KEY_USED] = dynamodb_keys_used,
    [LEDGER_KEYS_LIST] = dynamodb_keys_list,
    [LEDGER_MESSAGE_DELETE] = dynamodb_messages_delete,
    [LEDGER_FORMER_CHATS_LIST] = dynamodb_erasure_former_chats,
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

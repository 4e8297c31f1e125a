#include "ledger/sqlite/sqlite_operations.h"

#include "log/log.h"

static const sqlite_operation operations[LEDGER_OPERATION_COUNT] = {
    [LEDGER_SETTINGS_GET] = sqlite_users_settings_get,
    [LEDGER_SETTINGS_PUT] = sqlite_users_settings_put,
    [LEDGER_PROFILES] = sqlite_users_profiles,
    [LEDGER_APPEARANCES] = sqlite_users_appearances,
    [LEDGER_GRAPH] = sqlite_users_graph,
    [LEDGER_LAST_SEEN_PUT] = sqlite_users_last_seen_put,
    [LEDGER_CONTACT_REQUEST_CREATE] = sqlite_contact_requests_create,
    [LEDGER_CONTACT_REQUEST_ACCEPT] = sqlite_contact_requests_accept,
    [LEDGER_CONTACT_REQUEST_DECLINE] = sqlite_contact_requests_decline,
    [LEDGER_CONTACT_REQUEST_WITHDRAW] = sqlite_contact_requests_withdraw,
    [LEDGER_CONTACT_REQUESTS_LIST] = sqlite_contact_requests_list,
    [LEDGER_CONTACTS_LIST] = sqlite_contacts_list,
    [LEDGER_CONTACT_REMOVE] = sqlite_contacts_remove,
    [LEDGER_BLOCK_PUT] = sqlite_blocks_put,
    [LEDGER_BLOCK_DELETE] = sqlite_blocks_delete,
    [LEDGER_BLOCKS_LIST] = sqlite_blocks_list,
    [LEDGER_RELATIONS_CHANGE] = sqlite_relations_change,
    [LEDGER_CHAT_CREATE] = sqlite_chat_create_group,
    [LEDGER_CHAT_OPEN_DIRECT] = sqlite_chat_create_direct,
    [LEDGER_CHAT_GET] = sqlite_chats_get,
    [LEDGER_CHAT_CHANGE] = sqlite_roles_change_chat,
    [LEDGER_CHATS_LIST] = sqlite_chats_list,
    [LEDGER_CHAT_MEMBER_CHECK] = sqlite_members_check,
    [LEDGER_CHAT_MEMBER_ADD] = sqlite_members_add,
    [LEDGER_CHAT_MEMBER_REMOVE] = sqlite_members_remove,
    [LEDGER_CHAT_ADMIN_PUT] = sqlite_roles_admin_put,
    [LEDGER_CHAT_ADMIN_DELETE] = sqlite_roles_admin_delete,
    [LEDGER_CALL_APPEND] = sqlite_calls_append,
    [LEDGER_CALLS_LIST] = sqlite_calls_list,
    [LEDGER_MESSAGE_APPEND] = sqlite_messages_append,
    [LEDGER_MESSAGES_AFTER] = sqlite_messages_after,
    [LEDGER_MESSAGES_BEFORE] = sqlite_messages_before,
    [LEDGER_MESSAGES_ERASE] = sqlite_erasure_messages,
    [LEDGER_USER_FORGET] = sqlite_erasure_forget,
    [LEDGER_CURSOR_PUT] = sqlite_cursors_put,
    [LEDGER_OUTBOX_LIST] = sqlite_outbox_list,
    [LEDGER_OUTBOX_REMOVE] = sqlite_outbox_remove,
    [LEDGER_DEAD_LETTER_PUT] = sqlite_outbox_dead_letter_put,
    [LEDGER_DEAD_LETTERS_LIST] = sqlite_outbox_dead_letters_list,
    [LEDGER_DEAD_LETTER_REPLAY] = sqlite_outbox_dead_letter_replay,
    [LEDGER_CHAT_REPAIR] = sqlite_messages_repair,
    [LEDGER_REVOKE] = sqlite_revocations_put,
    [LEDGER_REVOCATIONS_LIST] = sqlite_revocations_list,
    [LEDGER_CALL_EVENT] = sqlite_events_call,
    [LEDGER_EVENTS_LIST] = sqlite_events_list,
    [LEDGER_EVENTS_REMOVE] = sqlite_events_remove,
    [LEDGER_EVENTS_BURY] = sqlite_events_bury,
    [LEDGER_DEAD_EVENTS_LIST] = sqlite_events_list_dead,
    [LEDGER_DEAD_EVENTS_REPLAY] = sqlite_events_replay,
    [LEDGER_EVENT_QUEUE_GET] = sqlite_events_queue_get,
    [LEDGER_EVENT_LEASE] = sqlite_events_lease,
    [LEDGER_KEY_PUT] = sqlite_keys_put,
    [LEDGER_KEY_DELETE] = sqlite_keys_delete,
    [LEDGER_KEY_USED] = sqlite_keys_used,
    [LEDGER_KEYS_LIST] = sqlite_keys_list,
    [LEDGER_MESSAGE_DELETE] = sqlite_messages_delete,
    [LEDGER_FORMER_CHATS_LIST] = sqlite_former_chats_list,
};

bool sqlite_operations_execute(struct database *database, struct ledger_request *request)
{
    enum ledger_status status = operations[request->operation](database, request);
    if (status == LEDGER_OK && request->input.queue_count && ledger_request_writes(request))
        sqlite_events_derive(database, request);
    if (database_failed(database))
        log_error("ledger_failed", "operation=%s error=%s",
                  ledger_request_operation_name(request->operation),
                  log_sentence(slice_of(database->failure_text)));
    if (database_failed(database) || request->exhausted)
        status = LEDGER_UNAVAILABLE;
    if (status != LEDGER_OK)
        ledger_request_fail(request, status);
    return status == LEDGER_OK;
}

const struct slice *sqlite_operations_read_ids(struct ledger_request *request, struct query query,
                                               size_t *count)
{
    struct ledger_request_array ids = {0};
    while (query_next(&query)) {
        struct slice *id = ledger_request_array_push(request, &ids, sizeof(*id));
        if (id)
            *id = ledger_request_copy(request, query_text(&query, 0));
    }
    *count = ids.count;
    return ids.items;
}

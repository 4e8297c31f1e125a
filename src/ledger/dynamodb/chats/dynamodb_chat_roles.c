/* The admins of groups, and who may add members. */
#include "ledger/dynamodb/chats/dynamodb_chats.h"

/* Returns OK if the user it was read for is an admin of a group. */
static enum ledger_status require_admin_item(const struct dynamodb_chat *chat)
{
    if (!dynamodb_item_exists(&chat->member))
        return LEDGER_NOT_FOUND;
    return dynamodb_chat_is_group(chat) && dynamodb_chat_has_admin(chat) ? LEDGER_OK
                                                                         : LEDGER_FORBIDDEN;
}

static void add_admin_check(struct dynamodb_transaction *transaction,
                            const struct dynamodb_chat *chat, struct slice user)
{
    dynamodb_transaction_check(transaction, dynamodb_chat_member_key(transaction->task, chat, user),
                               "is_admin = :one", DYNAMODB_VALUES(DYNAMODB_NUMBER(":one", 1)));
}

/* Refused, if a role changed meanwhile, or if no admin would be left. */
static enum dynamodb_outcome store_role(struct dynamodb_task *task,
                                        const struct dynamodb_chat *chat, bool is_admin)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_value change = DYNAMODB_NUMBER(":change", is_admin ? 1 : -1);
    struct dynamodb_value one = DYNAMODB_NUMBER(":one", 1);
    struct dynamodb_transaction transaction;
    dynamodb_transaction_begin(&transaction, task);
    dynamodb_transaction_update(&transaction, dynamodb_chat_key(input->chat),
                                "ADD admin_count :change", is_admin ? NULL : "admin_count > :one",
                                is_admin ? DYNAMODB_VALUES(change) : DYNAMODB_VALUES(change, one));
    dynamodb_transaction_update(
        &transaction, dynamodb_chat_member_key(task, chat, input->other), "SET is_admin = :new",
        "is_admin = :old",
        DYNAMODB_VALUES(DYNAMODB_NUMBER(":new", is_admin), DYNAMODB_NUMBER(":old", !is_admin)));
    if (!slice_equal(input->user, input->other))
        add_admin_check(&transaction, chat, input->user);
    return dynamodb_transaction_commit(&transaction);
}

static enum ledger_status set_admin(struct dynamodb_task *task, bool is_admin)
{
    const struct ledger_request_input *input = &task->request->input;
    unsigned decisions = 0;
    while (dynamodb_decide(task, &decisions)) {
        struct dynamodb_chat chat = dynamodb_chat_read(task, input->chat, input->user);
        enum ledger_status status = require_admin_item(&chat);
        if (status != LEDGER_OK)
            return status;
        if (!is_admin && slice_equal(input->user, input->other) &&
            dynamodb_item_number(&chat.item, "admin_count") == 1)
            return LEDGER_FORBIDDEN;
        struct dynamodb_item other =
            dynamodb_get(task, dynamodb_chat_member_key(task, &chat, input->other));
        if (!dynamodb_item_exists(&other))
            return LEDGER_NOT_FOUND;
        if ((dynamodb_item_number(&other, "is_admin") != 0) == is_admin)
            return LEDGER_OK;
        if (store_role(task, &chat, is_admin) != DYNAMODB_REFUSED) {
            task->request->outcome.change.changed = true;
            return LEDGER_OK;
        }
    }
    return LEDGER_UNAVAILABLE;
}

enum ledger_status dynamodb_roles_admin_put(struct dynamodb_task *task)
{
    return set_admin(task, true);
}

enum ledger_status dynamodb_roles_admin_delete(struct dynamodb_task *task)
{
    return set_admin(task, false);
}

enum ledger_status dynamodb_roles_change_chat(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_transaction transaction;
    unsigned decisions = 0;
    while (dynamodb_decide(task, &decisions)) {
        struct dynamodb_chat chat = dynamodb_chat_read(task, input->chat, input->user);
        enum ledger_status status = require_admin_item(&chat);
        if (status != LEDGER_OK)
            return status;
        dynamodb_transaction_begin(&transaction, task);
        dynamodb_transaction_update(
            &transaction, dynamodb_chat_key(input->chat), "SET members_can_add = :can", NULL,
            DYNAMODB_VALUES(DYNAMODB_NUMBER(":can", input->members_can_add)));
        add_admin_check(&transaction, &chat, input->user);
        if (dynamodb_transaction_commit(&transaction) != DYNAMODB_REFUSED)
            return dynamodb_chat_return(task, input->chat, input->user,
                                        &DYNAMODB_CHAT_WITH_MEMBERS);
    }
    return LEDGER_UNAVAILABLE;
}

/*
 * Erasing what a user has left (ledger_erasure.h). The items of `sends` name a sender's messages of a chat; one is removed after
 * its message has become a tombstone, so that what remains is what is left to do.
 */
#include "base/id_list.h"
#include "ledger/dynamodb/chats/dynamodb_chats.h"
#include "ledger/dynamodb/client/dynamodb_parallel.h"
#include "ledger/dynamodb/dynamodb_message.h"
#include "ledger/dynamodb/dynamodb_outbox.h"
#include "ledger/ledger_erasure.h"

struct erasure {
    struct slice chat;
    struct slice sends; /* the partition of the sender's sends */
    struct dynamodb_item items[LEDGER_ERASED_MESSAGES_MAX];
    size_t count;
};

static void erase_one_message(struct dynamodb_task *task, size_t at, void *arg)
{
    const struct erasure *erasure = arg;
    const struct dynamodb_item *item = &erasure->items[at];
    int64_t sequence = dynamodb_item_number(item, "sequence_number");
    struct dynamodb_key send = {DYNAMODB_SENDS, erasure->sends,
                                dynamodb_item_text(item, "client_message_id"), 0};
    dynamodb_update(task, dynamodb_message_key(erasure->chat, sequence), "SET body_text = :none",
                    "attribute_exists(chat_id)",
                    DYNAMODB_VALUES(DYNAMODB_TEXT(":none", SLICE(""))));
    dynamodb_delete(task, dynamodb_outbox_key(task, erasure->chat, (uint64_t)sequence,
                                              dynamodb_item_number(item, "sent_at_ms")));
    dynamodb_delete(task, send);
}

/* Frees the place of the direct chat of the two, too. */
static void leave_erased_direct(struct dynamodb_task *task, const struct dynamodb_chat *chat,
                                struct slice user)
{
    const char *prefix = dynamodb_chat_members_prefix(task, chat);
    struct dynamodb_query query = {
        .table = DYNAMODB_CHATS, .partition = chat->id, .prefix = prefix};
    struct dynamodb_item item;
    struct slice other = SLICE_NONE;
    while (dynamodb_query_next(task, &query, &item)) {
        struct slice member = slice_after(dynamodb_item_text(&item, "part_key"), strlen(prefix));
        if (!slice_equal(member, user))
            other = member;
    }
    struct dynamodb_transaction transaction;
    bool is_lesser = other.data && id_list_compare(user, other) < 0;
    dynamodb_transaction_begin(&transaction, task);
    dynamodb_transaction_update(
        &transaction, dynamodb_chat_key(chat->id), "ADD member_count :less, members_version :one",
        NULL, DYNAMODB_VALUES(DYNAMODB_NUMBER(":less", -1), DYNAMODB_NUMBER(":one", 1)));
    dynamodb_transaction_delete(&transaction, dynamodb_chat_member_key(task, chat, user),
                                "attribute_exists(chat_id)", DYNAMODB_NO_VALUES);
    dynamodb_transaction_delete(&transaction, dynamodb_chat_entry_key(task, chat, user), NULL,
                                DYNAMODB_NO_VALUES);
    if (other.data)
        dynamodb_transaction_delete(
            &transaction,
            (struct dynamodb_key){DYNAMODB_USERS, is_lesser ? user : other,
                                  dynamodb_join(task, "direct#", is_lesser ? other : user), 0},
            NULL, DYNAMODB_NO_VALUES);
    dynamodb_transaction_commit(&transaction);
}

enum ledger_status dynamodb_erasure_messages(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct erasure *erasure = ledger_request_alloc(task->request, sizeof(*erasure));
    if (!erasure)
        return LEDGER_UNAVAILABLE;
    *erasure = (struct erasure){.chat = input->chat,
                                .sends = dynamodb_pair(task, input->chat, input->user)};
    struct dynamodb_query query = {
        .table = DYNAMODB_SENDS, .partition = erasure->sends, .limit = LEDGER_ERASED_MESSAGES_MAX};
    while (erasure->count < LEDGER_ERASED_MESSAGES_MAX &&
           dynamodb_query_next(task, &query, &erasure->items[erasure->count]))
        erasure->count++;
    dynamodb_parallel(task, erasure->count, erase_one_message, erasure);
    task->request->outcome.change.changed = erasure->count == LEDGER_ERASED_MESSAGES_MAX;
    if (task->request->outcome.change.changed || task->failed)
        return LEDGER_OK;
    dynamodb_delete(task, dynamodb_chat_left_key(task, input->chat, input->user));
    struct dynamodb_chat chat = dynamodb_chat_read(task, input->chat, input->user);
    if (dynamodb_item_exists(&chat.member) && !dynamodb_chat_is_group(&chat))
        leave_erased_direct(task, &chat, input->user);
    return LEDGER_OK;
}

enum ledger_status dynamodb_erasure_forget(struct dynamodb_task *task)
{
    struct slice user = task->request->input.user;
    struct id_list calls = dynamodb_contacts_read_ids(task, user, "call#", 0);
    struct dynamodb_put_entry *entries =
        ledger_request_alloc(task->request, (calls.count + 1) * sizeof(*entries));
    for (size_t i = 0; entries && i < calls.count; i++)
        entries[i] = (struct dynamodb_put_entry){
            .key = {DYNAMODB_USERS, user, dynamodb_join(task, "call#", calls.ids[i]), 0},
            .is_delete = true};
    if (entries && calls.count)
        dynamodb_put_many(task, entries, calls.count);
    task->request->outcome.change.changed =
        dynamodb_update(task, (struct dynamodb_key){DYNAMODB_USERS, user, SLICE("settings"), 0},
                        "REMOVE last_seen_ms", "attribute_exists(last_seen_ms)",
                        DYNAMODB_NO_VALUES) == DYNAMODB_DONE;
    return LEDGER_OK;
}

/* A user who has written nothing in a chat that was left finds it here all the same: to know that would cost a read at each leave. */
enum ledger_status dynamodb_erasure_former_chats(struct dynamodb_task *task)
{
    static const char PREFIX[] = "left#";
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_query query = {.table = DYNAMODB_USERS,
                                   .partition = input->user,
                                   .prefix = PREFIX,
                                   .limit = input->limit,
                                   .attributes = "part_key"};
    if (input->after.data)
        query.after = dynamodb_join(task, PREFIX, input->after);
    struct ledger_request_array ids = {0};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct slice *id = ledger_request_array_push(task->request, &ids, sizeof(*id));
        if (id)
            *id = slice_after(dynamodb_item_text(&item, "part_key"), strlen(PREFIX));
    }
    task->request->outcome.ids = (struct ledger_ids_outcome){.ids = ids.items, .count = ids.count};
    return LEDGER_OK;
}

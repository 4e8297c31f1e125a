/* Creating chats: groups, in one transaction or staged (dynamodb_chat_drafts.c), and the one direct chat of two users. */
#include "base/id_list.h"
#include "ledger/dynamodb/chats/dynamodb_chats.h"
#include "ledger/dynamodb/dynamodb_events.h"
#include "ledger/dynamodb/dynamodb_relation.h"

/* ---- making a chat ---- */

static void add_member_puts(struct dynamodb_transaction *transaction,
                            const struct dynamodb_new_chat *chat)
{
    struct dynamodb_task *task = transaction->task;
    struct dynamodb_value since = DYNAMODB_NUMBER("since_ms", task->request->wall_ms);
    for (size_t i = 0; i < chat->count; i++) {
        struct slice user = chat->members[i];
        bool is_admin = chat->kind == LEDGER_CHAT_GROUP && slice_equal(user, chat->creator);
        dynamodb_transaction_put(transaction, dynamodb_chat_member_key(task, &chat->chat, user),
                                 DYNAMODB_VALUES(since, DYNAMODB_NUMBER("is_admin", is_admin)),
                                 NULL, DYNAMODB_NO_VALUES);
        dynamodb_transaction_put(
            transaction, dynamodb_chat_entry_key(task, &chat->chat, user),
            DYNAMODB_VALUES(since, DYNAMODB_NUMBER("is_accepted", chat->accepted[i])), NULL,
            DYNAMODB_NO_VALUES);
    }
}

/* From here on the chat is seen. */
static void add_chat_puts(struct dynamodb_transaction *transaction,
                          const struct dynamodb_new_chat *chat)
{
    const struct ledger_request *request = transaction->task->request;
    const struct dynamodb_value attributes[] = {
        DYNAMODB_TEXT("creator_id", chat->creator),
        DYNAMODB_NUMBER("created_at_ms", request->wall_ms),
        DYNAMODB_NUMBER("chat_kind", chat->kind),
        DYNAMODB_NUMBER("members_can_add", request->input.members_can_add),
        DYNAMODB_NUMBER("member_count", chat->count),
        DYNAMODB_NUMBER("admin_count", chat->kind == LEDGER_CHAT_GROUP),
        DYNAMODB_NUMBER("members_version", 1),
        DYNAMODB_TEXT("draft_id", chat->chat.draft),
    };
    size_t count = sizeof(attributes) / sizeof(attributes[0]) - (chat->chat.draft.len ? 0 : 1);
    dynamodb_transaction_put(transaction, dynamodb_chat_key(chat->chat.id),
                             (struct dynamodb_values){attributes, count},
                             "attribute_not_exists(chat_id)", DYNAMODB_NO_VALUES);
    dynamodb_transaction_put(transaction, dynamodb_chat_counter_key(chat->chat.id),
                             DYNAMODB_VALUES(DYNAMODB_NUMBER("sequence_counter", 0),
                                             DYNAMODB_NUMBER("activity_ms", request->wall_ms)),
                             NULL, DYNAMODB_NO_VALUES);
}

/* Fills in the outcome, as if the chat existed. */
static void describe_new_chat(struct dynamodb_task *task, const struct dynamodb_new_chat *chat)
{
    struct ledger_request *request = task->request;
    request->outcome.chat.created = true;
    request->outcome.chat.chat = (struct ledger_chat){
        .id = chat->chat.id,
        .kind = chat->kind,
        .creator = chat->creator,
        .created_at_ms = request->wall_ms,
        .activity_ms = request->wall_ms,
        .members = chat->members,
        .member_count = chat->count,
        .admins = &request->input.user,
        .admin_count = 1,
        .members_can_add = request->input.members_can_add,
        .members_version = 1,
    };
}

/* The last part of a transaction that makes a chat. */
static enum dynamodb_outcome commit_new_chat(struct dynamodb_transaction *transaction,
                                             const struct dynamodb_new_chat *chat)
{
    struct dynamodb_task *task = transaction->task;
    add_chat_puts(transaction, chat);
    describe_new_chat(task, chat);
    dynamodb_events_add_now(transaction);
    enum dynamodb_outcome outcome = dynamodb_transaction_commit(transaction);
    if (outcome == DYNAMODB_REFUSED)
        ledger_request_fail(task->request, LEDGER_OK); /* clears the outcome */
    return outcome;
}

/* ---- groups ---- */

/* Returns the creator and the requested members, sorted, each once. */
static struct id_list list_requested_members(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct slice *ids = ledger_request_alloc(task->request, (input->id_count + 1) * sizeof(*ids));
    if (!ids)
        return (struct id_list){0};
    if (input->id_count)
        memcpy(ids, input->ids, input->id_count * sizeof(*ids));
    ids[input->id_count] = input->user;
    return (struct id_list){ids, id_list_sort_unique(ids, input->id_count + 1)};
}

/* Returns OK if the id names a group that the user is in, and created or requested with its members. */
static enum ledger_status return_existing_item(struct dynamodb_task *task,
                                               const struct dynamodb_chat *chat,
                                               const struct id_list *requested)
{
    struct slice user = task->request->input.user;
    struct ledger_chat *out = &task->request->outcome.chat.chat;
    if (!dynamodb_item_exists(&chat->member) || !dynamodb_chat_is_group(chat))
        return LEDGER_CONFLICT;
    dynamodb_chat_describe(task, chat, user, &DYNAMODB_CHAT_WITH_MEMBERS, out);
    bool is_same = slice_equal(out->creator, user) ||
                   id_list_equal(requested, &(struct id_list){out->members, out->member_count});
    return is_same ? LEDGER_OK : LEDGER_CONFLICT;
}

/* Reads who of the members has accepted the chat in advance, as a contact of the creator, and returns whether all of them
 * may be added by the creator. */
static bool members_consent(struct dynamodb_task *task, struct dynamodb_new_chat *chat)
{
    struct id_list members = {chat->members, chat->count};
    struct dynamodb_key *keys = ledger_request_alloc(task->request, chat->count * sizeof(*keys));
    struct dynamodb_item *settings =
        ledger_request_alloc(task->request, chat->count * sizeof(*settings));
    bool *accepted = ledger_request_alloc(task->request, chat->count);
    const bool *blocked = dynamodb_relation_blocks(task, chat->creator, &members);
    if (!keys || !settings || !accepted || !blocked)
        return false;
    memset(accepted, 0, chat->count);
    dynamodb_relation_mark(task, chat->creator, "contact#", &members, accepted);
    for (size_t i = 0; i < chat->count; i++)
        keys[i] = (struct dynamodb_key){DYNAMODB_USERS, chat->members[i], SLICE("settings"), 0};
    dynamodb_get_many(task, keys, chat->count, settings);
    for (size_t i = 0; i < chat->count; i++) {
        accepted[i] |= slice_equal(chat->members[i], chat->creator);
        bool only_contacts =
            dynamodb_item_number(&settings[i], "group_adds") == LEDGER_GROUP_ADDS_CONTACTS_ONLY;
        if (!task->request->input.without_consent &&
            (blocked[i] || (only_contacts && !accepted[i])))
            return false;
    }
    chat->accepted = accepted;
    return true;
}

/* Returns what became of the transaction that makes the chat: refused, if somebody else has made one with this id. */
static enum dynamodb_outcome make_group(struct dynamodb_task *task, struct dynamodb_new_chat *chat)
{
    struct dynamodb_transaction transaction;
    bool is_staged = chat->count > DYNAMODB_CHAT_UNSTAGED_MAX;
    if (is_staged)
        dynamodb_chat_drafts_stage(task, chat);
    dynamodb_transaction_begin(&transaction, task);
    if (!is_staged)
        add_member_puts(&transaction, chat);
    return commit_new_chat(&transaction, chat);
}

enum ledger_status dynamodb_chat_create_group(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    bool is_reserved = ledger_request_chat_is_reserved(input->chat);
    struct id_list members = list_requested_members(task);
    unsigned decisions = 0;
    while (dynamodb_decide(task, &decisions)) {
        struct dynamodb_chat existing = dynamodb_chat_read_marks(task, input->chat, input->user);
        struct dynamodb_new_chat chat = {.chat = {.id = input->chat},
                                         .kind = LEDGER_CHAT_GROUP,
                                         .creator = input->user,
                                         .members = members.ids,
                                         .count = members.count};
        if (dynamodb_item_exists(&existing.item)) {
            enum ledger_status status = return_existing_item(task, &existing, &members);
            /* the same answer as for an id that is not in use, so that it reveals no chat */
            return status == LEDGER_CONFLICT && is_reserved ? LEDGER_INVALID : status;
        }
        if (is_reserved)
            return LEDGER_INVALID;
        if (members.count > LEDGER_CHAT_MEMBERS_MAX)
            return LEDGER_LIMIT;
        if (!members_consent(task, &chat))
            return LEDGER_FORBIDDEN;
        if (make_group(task, &chat) != DYNAMODB_REFUSED)
            return LEDGER_OK;
    }
    return LEDGER_UNAVAILABLE;
}

/* ---- direct chats ---- */

/* What the decision about a direct chat rests on: the record of it, and what the two are to each other. */
enum { PAIR_CHAT, PAIR_RELATION, PAIR_ITEMS };

static void make_pair_keys(struct dynamodb_task *task, struct dynamodb_key keys[PAIR_ITEMS])
{
    struct slice user = task->request->input.user, other = task->request->input.other;
    bool in_order = id_list_compare(user, other) < 0;
    keys[PAIR_CHAT] =
        (struct dynamodb_key){DYNAMODB_USERS, in_order ? user : other,
                              dynamodb_join(task, "direct#", in_order ? other : user), 0};
    keys[PAIR_RELATION] = dynamodb_relation_key(task, user, other);
}

/* Refused, if the two have got a direct chat, or their relation changed, meanwhile. */
static enum dynamodb_outcome make_direct_chat(struct dynamodb_task *task,
                                              const struct dynamodb_key keys[PAIR_ITEMS],
                                              const struct dynamodb_relation *relation)
{
    const struct ledger_request_input *input = &task->request->input;
    bool in_order = id_list_compare(input->user, input->other) < 0;
    bool are_contacts = relation->are_contacts;
    struct slice members[2] = {in_order ? input->user : input->other,
                               in_order ? input->other : input->user};
    bool accepted[2] = {in_order || are_contacts, !in_order || are_contacts};
    struct dynamodb_new_chat chat = {.chat = {.id = input->chat},
                                     .kind = LEDGER_CHAT_DIRECT,
                                     .creator = input->user,
                                     .members = members,
                                     .accepted = accepted,
                                     .count = 2};
    struct dynamodb_transaction transaction;
    dynamodb_transaction_begin(&transaction, task);
    dynamodb_transaction_put(&transaction, keys[PAIR_CHAT],
                             DYNAMODB_VALUES(DYNAMODB_TEXT("chat_id", input->chat)),
                             "attribute_not_exists(user_id)", DYNAMODB_NO_VALUES);
    dynamodb_relation_add_check(&transaction, relation);
    add_member_puts(&transaction, &chat);
    return commit_new_chat(&transaction, &chat);
}

enum ledger_status dynamodb_chat_create_direct(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_key keys[PAIR_ITEMS];
    make_pair_keys(task, keys);
    unsigned decisions = 0;
    while (dynamodb_decide(task, &decisions)) {
        struct dynamodb_item items[PAIR_ITEMS];
        dynamodb_get_many(task, keys, PAIR_ITEMS, items);
        struct slice chat = dynamodb_item_text(&items[PAIR_CHAT], "chat_id");
        struct dynamodb_relation relation =
            dynamodb_relation_read(&items[PAIR_RELATION], input->user, input->other);
        if (relation.user_blocks || relation.other_blocks)
            return LEDGER_FORBIDDEN;
        bool is_new = chat.len == 0;
        if (is_new && make_direct_chat(task, keys, &relation) == DYNAMODB_REFUSED)
            continue;
        task->request->outcome.chat.created = is_new;
        return dynamodb_chat_return(task, is_new ? input->chat : chat, input->user,
                                    &DYNAMODB_CHAT_WITH_PROFILES);
    }
    return LEDGER_UNAVAILABLE;
}

/* The members of chats: checking, adding and removing them. */
#include "base/id_list.h"
#include "ledger/dynamodb/chats/dynamodb_chats.h"
#include "ledger/dynamodb/dynamodb_cursors.h"
#include "ledger/dynamodb/dynamodb_events.h"
#include "ledger/dynamodb/dynamodb_relation.h"

enum ledger_status dynamodb_members_check(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_chat chat = dynamodb_chat_read(task, input->chat, input->user);
    return dynamodb_item_exists(&chat.member) ? LEDGER_OK : LEDGER_NOT_FOUND;
}

/* ---- adding ---- */

/* What the consent of a new member rests on: what the two are to each other, and the new member's settings. */
struct consent {
    struct dynamodb_relation relation;
    struct dynamodb_key settings;
    bool is_given;
};

static struct consent read_consent(struct dynamodb_task *task, struct slice actor,
                                   struct slice user)
{
    struct consent consent = {.settings = {DYNAMODB_USERS, user, SLICE("settings"), 0}};
    struct dynamodb_key keys[] = {dynamodb_relation_key(task, actor, user), consent.settings};
    struct dynamodb_item items[2];
    dynamodb_get_many(task, keys, 2, items);
    consent.relation = dynamodb_relation_read(&items[0], actor, user);
    consent.is_given =
        !consent.relation.user_blocks && !consent.relation.other_blocks &&
        (consent.relation.are_contacts ||
         dynamodb_item_number(&items[1], "group_adds") != LEDGER_GROUP_ADDS_CONTACTS_ONLY);
    return consent;
}

static void add_consent_checks(struct dynamodb_transaction *transaction,
                               const struct consent *consent)
{
    dynamodb_relation_add_check(transaction, &consent->relation);
    if (!consent->relation.are_contacts)
        dynamodb_transaction_check(
            transaction, consent->settings,
            "attribute_not_exists(group_adds) OR group_adds <> :only_contacts",
            DYNAMODB_VALUES(DYNAMODB_NUMBER(":only_contacts", LEDGER_GROUP_ADDS_CONTACTS_ONLY)));
}

static enum dynamodb_outcome store_member(struct dynamodb_task *task,
                                          const struct dynamodb_chat *chat,
                                          const struct consent *consent)
{
    const struct ledger_request_input *input = &task->request->input;
    bool by_application = slice_equal(input->user, LEDGER_APPLICATION);
    bool is_admin = by_application || dynamodb_chat_has_admin(chat);
    struct dynamodb_value since = DYNAMODB_NUMBER("since_ms", task->request->wall_ms);
    struct dynamodb_value one = DYNAMODB_NUMBER(":one", 1);
    struct dynamodb_value max = DYNAMODB_NUMBER(":max", LEDGER_CHAT_MEMBERS_MAX);
    struct dynamodb_transaction transaction;
    dynamodb_transaction_begin(&transaction, task);
    dynamodb_transaction_update(
        &transaction, dynamodb_chat_key(input->chat), "ADD member_count :one, members_version :one",
        is_admin ? "member_count < :max" : "member_count < :max AND members_can_add = :one",
        DYNAMODB_VALUES(one, max));
    if (!by_application)
        dynamodb_transaction_check(&transaction, dynamodb_chat_member_key(task, chat, input->user),
                                   is_admin ? "is_admin = :one" : "attribute_exists(chat_id)",
                                   is_admin ? DYNAMODB_VALUES(one) : DYNAMODB_NO_VALUES);
    dynamodb_transaction_put(&transaction, dynamodb_chat_member_key(task, chat, input->other),
                             DYNAMODB_VALUES(since, DYNAMODB_NUMBER("is_admin", 0)),
                             "attribute_not_exists(chat_id)", DYNAMODB_NO_VALUES);
    dynamodb_transaction_put(
        &transaction, dynamodb_chat_entry_key(task, chat, input->other),
        DYNAMODB_VALUES(since, DYNAMODB_NUMBER("is_accepted", consent->relation.are_contacts)),
        NULL, DYNAMODB_NO_VALUES);
    dynamodb_transaction_delete(&transaction,
                                dynamodb_chat_left_key(task, input->chat, input->other), NULL,
                                DYNAMODB_NO_VALUES);
    if (!by_application)
        add_consent_checks(&transaction, consent);
    task->request->outcome.change.changed = true;
    dynamodb_events_add_now(&transaction);
    return dynamodb_transaction_commit(&transaction);
}

enum ledger_status dynamodb_members_add(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    bool by_application = slice_equal(input->user, LEDGER_APPLICATION);
    unsigned decisions = 0;
    while (dynamodb_decide(task, &decisions)) {
        struct dynamodb_chat chat = dynamodb_chat_read(task, input->chat, input->user);
        if (!dynamodb_item_exists(by_application ? &chat.item : &chat.member))
            return LEDGER_NOT_FOUND;
        if (!dynamodb_chat_is_group(&chat) ||
            !(by_application || dynamodb_chat_has_admin(&chat) ||
              dynamodb_item_number(&chat.item, "members_can_add")))
            return LEDGER_FORBIDDEN;
        struct dynamodb_item other =
            dynamodb_get(task, dynamodb_chat_member_key(task, &chat, input->other));
        if (dynamodb_item_exists(&other))
            return LEDGER_OK;
        struct consent consent = {.is_given = true};
        if (!by_application)
            consent = read_consent(task, input->user, input->other);
        if (!consent.is_given)
            return LEDGER_FORBIDDEN;
        if (dynamodb_item_number(&chat.item, "member_count") >= LEDGER_CHAT_MEMBERS_MAX)
            return LEDGER_LIMIT;
        if (store_member(task, &chat, &consent) != DYNAMODB_REFUSED)
            return LEDGER_OK;
        task->request->outcome.change.changed = false;
    }
    return LEDGER_UNAVAILABLE;
}

/* ---- removing ---- */

/* A member who is to be removed, and what the removal rests on. */
struct removal {
    struct dynamodb_chat chat; /* read for the actor */
    bool is_admin;
    bool is_last_admin;
    struct slice promoted; /* in place of the last admin */
};

/* Returns the member of the longest standing but one; SLICE_NONE: there is no other. */
static struct slice find_longest_member(struct dynamodb_task *task,
                                        const struct dynamodb_chat *chat, struct slice but)
{
    const char *prefix = dynamodb_chat_members_prefix(task, chat);
    struct dynamodb_query query = {.table = DYNAMODB_CHATS,
                                   .partition = chat->id,
                                   .prefix = prefix,
                                   .attributes = "part_key, since_ms"};
    struct slice longest = SLICE_NONE;
    int64_t longest_since_ms = INT64_MAX;
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) { /* by id: the first of several wins */
        struct slice user = slice_after(dynamodb_item_text(&item, "part_key"), strlen(prefix));
        int64_t since_ms = dynamodb_item_number(&item, "since_ms");
        if (slice_equal(user, but) || since_ms >= longest_since_ms)
            continue;
        longest = user;
        longest_since_ms = since_ms;
    }
    return longest;
}

/* Who takes the place of the last admin rests on all members, so their version must not have changed. */
static void add_chat_update(struct dynamodb_transaction *transaction, const struct removal *removal)
{
    struct dynamodb_key key = dynamodb_chat_key(removal->chat.id);
    struct dynamodb_value one = DYNAMODB_NUMBER(":one", 1), less = DYNAMODB_NUMBER(":less", -1);
    int64_t version = dynamodb_item_number(&removal->chat.item, "members_version");
    struct dynamodb_value same = DYNAMODB_NUMBER(":version", version);
    if (!removal->is_admin)
        dynamodb_transaction_update(transaction, key,
                                    "ADD member_count :less, members_version :one", NULL,
                                    DYNAMODB_VALUES(one, less));
    else if (!removal->is_last_admin)
        dynamodb_transaction_update(
            transaction, key, "ADD member_count :less, admin_count :less, members_version :one",
            "admin_count > :one", DYNAMODB_VALUES(one, less));
    else if (removal->promoted.data)
        dynamodb_transaction_update(
            transaction, key, "ADD member_count :less, members_version :one",
            "members_version = :version AND admin_count = :one", DYNAMODB_VALUES(one, less, same));
    else
        dynamodb_transaction_update(
            transaction, key, "ADD member_count :less, admin_count :less, members_version :one",
            "members_version = :version", DYNAMODB_VALUES(one, less, same));
}

static enum dynamodb_outcome delete_member(struct dynamodb_task *task,
                                           const struct removal *removal,
                                           const struct dynamodb_user_cursors *cursors)
{
    const struct ledger_request_input *input = &task->request->input;
    const struct dynamodb_chat *chat = &removal->chat;
    struct dynamodb_value one = DYNAMODB_NUMBER(":one", 1), zero = DYNAMODB_NUMBER(":zero", 0);
    struct dynamodb_transaction transaction;
    dynamodb_transaction_begin(&transaction, task);
    add_chat_update(&transaction, removal);
    dynamodb_transaction_delete(&transaction, dynamodb_chat_member_key(task, chat, input->other),
                                "is_admin = :is_admin",
                                DYNAMODB_VALUES(DYNAMODB_NUMBER(":is_admin", removal->is_admin)));
    dynamodb_transaction_delete(&transaction, dynamodb_chat_entry_key(task, chat, input->other),
                                NULL, DYNAMODB_NO_VALUES);
    dynamodb_transaction_put(&transaction, dynamodb_chat_left_key(task, chat->id, input->other),
                             DYNAMODB_VALUES(DYNAMODB_NUMBER("since_ms", task->request->wall_ms)),
                             NULL, DYNAMODB_NO_VALUES);
    if (!slice_equal(input->user, input->other))
        dynamodb_transaction_check(&transaction, dynamodb_chat_member_key(task, chat, input->user),
                                   "is_admin = :one", DYNAMODB_VALUES(one));
    if (removal->promoted.data)
        dynamodb_transaction_update(
            &transaction, dynamodb_chat_member_key(task, chat, removal->promoted),
            "SET is_admin = :one", "is_admin = :zero", DYNAMODB_VALUES(one, zero));
    dynamodb_cursors_add_removal(&transaction, cursors);
    task->request->outcome.member.changed = true;
    dynamodb_events_add_now(&transaction);
    return dynamodb_transaction_commit(&transaction);
}

static bool is_allowed_to_remove(const struct ledger_request_input *input,
                                 const struct dynamodb_chat *chat)
{
    return dynamodb_chat_is_group(chat) &&
           (dynamodb_chat_has_admin(chat) || slice_equal(input->user, input->other));
}

enum ledger_status dynamodb_members_remove(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct ledger_member_outcome *outcome = &task->request->outcome.member;
    unsigned decisions = 0;
    while (dynamodb_decide(task, &decisions)) {
        struct removal removal = {.chat = dynamodb_chat_read(task, input->chat, input->user)};
        const struct dynamodb_chat *chat = &removal.chat;
        if (!dynamodb_item_exists(&chat->member))
            return LEDGER_NOT_FOUND;
        if (!is_allowed_to_remove(input, chat))
            return LEDGER_FORBIDDEN;
        struct dynamodb_item other =
            dynamodb_get(task, dynamodb_chat_member_key(task, chat, input->other));
        if (!dynamodb_item_exists(&other))
            return LEDGER_OK;
        removal.is_admin = dynamodb_item_number(&other, "is_admin") != 0;
        removal.is_last_admin =
            removal.is_admin && dynamodb_item_number(&chat->item, "admin_count") == 1;
        if (removal.is_last_admin)
            removal.promoted = find_longest_member(task, chat, input->other);
        struct dynamodb_user_cursors cursors =
            dynamodb_cursors_of_user(task, input->chat, input->other);
        if (delete_member(task, &removal, &cursors) != DYNAMODB_REFUSED) {
            outcome->promoted = removal.promoted;
            return LEDGER_OK;
        }
        outcome->changed = false;
    }
    return LEDGER_UNAVAILABLE;
}

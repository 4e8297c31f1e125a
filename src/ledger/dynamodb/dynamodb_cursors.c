#include "ledger/dynamodb/dynamodb_cursors.h"

#include "base/id_list.h"
#include "ledger/dynamodb/chats/dynamodb_chats.h"

#include <stdio.h>

/* ---- all cursors of a user ---- */

static struct dynamodb_key make_cursor_key(struct dynamodb_task *task, struct slice chat,
                                           struct slice user, struct slice device)
{
    return dynamodb_chat_part_key(task, chat, "cursor#", dynamodb_pair(task, user, device));
}

static void list_cursors(struct dynamodb_task *task, struct slice chat, struct slice user,
                         struct dynamodb_user_cursors *cursors)
{
    char prefix[32 + LEDGER_ID_BYTES_MAX];
    struct dynamodb_query query = {
        .table = DYNAMODB_CHATS, .partition = chat, .prefix = prefix, .limit = LEDGER_CURSORS_MAX};
    struct dynamodb_item item;
    snprintf(prefix, sizeof(prefix), "cursor#%zu:%.*s:", user.len, SLICE_FORMAT(user));
    while (dynamodb_query_next(task, &query, &item)) {
        cursors->keys[cursors->listed] =
            (struct dynamodb_key){DYNAMODB_CHATS, chat, dynamodb_item_text(&item, "part_key"), 0};
        cursors->sequences[cursors->listed++] = dynamodb_item_number(&item, "cursor_sequence");
    }
}

struct dynamodb_user_cursors dynamodb_cursors_of_user(struct dynamodb_task *task, struct slice chat,
                                                      struct slice user)
{
    struct dynamodb_user_cursors cursors = {.read_key =
                                                dynamodb_chat_part_key(task, chat, "read#", user)};
    struct dynamodb_item read = dynamodb_get(task, cursors.read_key);
    cursors.count = dynamodb_item_number(&read, "cursor_count");
    if (cursors.count > 0)
        list_cursors(task, chat, user, &cursors);
    return cursors;
}

void dynamodb_cursors_add_removal(struct dynamodb_transaction *transaction,
                                  const struct dynamodb_user_cursors *cursors)
{
    if (cursors->count == 0)
        dynamodb_transaction_check(transaction, cursors->read_key, "attribute_not_exists(chat_id)",
                                   DYNAMODB_NO_VALUES);
    else
        dynamodb_transaction_delete(transaction, cursors->read_key, "cursor_count = :count",
                                    DYNAMODB_VALUES(DYNAMODB_NUMBER(":count", cursors->count)));
    for (size_t i = 0; i < cursors->listed; i++)
        dynamodb_transaction_delete(transaction, cursors->keys[i], "attribute_exists(chat_id)",
                                    DYNAMODB_NO_VALUES);
}

/* ---- moving one ---- */

/* Own messages are counted from the old mark, or from the end of the chat if that is nearer and worth another call. */
enum { OWN_COUNTED_MIN = 100 };

struct cursor_move {
    struct dynamodb_chat chat;
    struct dynamodb_key key;
    bool is_new;          /* the device had no cursor */
    bool reads_more;      /* the read mark moves */
    int64_t sequence;     /* of the cursor, after the move */
    int64_t own_read;     /* own messages up to the read mark, after the move */
    int64_t cursor_count; /* after the move */
    const struct dynamodb_key *evicted;
};

/* Returns how many of the `count` messages after `sequence` are the user's own. */
static int64_t count_own_messages(struct dynamodb_task *task, int64_t sequence, int64_t count)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_query query = {.table = DYNAMODB_MESSAGES,
                                   .partition = input->chat,
                                   .has_after_number = true,
                                   .after_number = sequence,
                                   .limit = (uint32_t)count,
                                   .attributes = "sender_id"};
    struct dynamodb_item message;
    int64_t own = 0;
    while (count > 0 && dynamodb_query_next(task, &query, &message))
        own += slice_equal(dynamodb_item_text(&message, "sender_id"), input->user);
    return own;
}

/* Returns how many own messages there are up to the new read mark. */
static int64_t count_own_read(struct dynamodb_task *task, const struct cursor_move *move)
{
    const struct ledger_request_input *input = &task->request->input;
    int64_t read = dynamodb_item_number(&move->chat.read, "read_sequence");
    int64_t latest = dynamodb_item_number(&move->chat.counter, "sequence_counter");
    int64_t newly_read = move->sequence - read;
    if (newly_read <= OWN_COUNTED_MIN || latest - move->sequence >= newly_read)
        return dynamodb_item_number(&move->chat.read, "own_read_count") +
               count_own_messages(task, read, newly_read);
    struct dynamodb_key keys[] = {dynamodb_chat_counter_key(input->chat),
                                  dynamodb_chat_part_key(task, input->chat, "sent#", input->user)};
    struct dynamodb_item items[2];
    dynamodb_get_together(task, keys, 2, items);
    latest = dynamodb_item_number(&items[0], "sequence_counter");
    return dynamodb_item_number(&items[1], "sent_count") -
           count_own_messages(task, move->sequence, latest - move->sequence);
}

/* Makes space for a new cursor: the lowest goes, which may be the new one. Returns whether the new one is kept. */
static bool make_space_for_cursor(struct dynamodb_task *task, struct cursor_move *move)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_user_cursors *cursors;
    size_t lowest = 0;
    if (move->cursor_count < LEDGER_CURSORS_MAX) {
        move->cursor_count++;
        return true;
    }
    cursors = ledger_request_alloc(task->request, sizeof(*cursors));
    if (!cursors)
        return false;
    *cursors = dynamodb_cursors_of_user(task, input->chat, input->user);
    for (size_t i = 1; i < cursors->listed; i++)
        if (cursors->sequences[i] < cursors->sequences[lowest])
            lowest = i;
    if (cursors->listed == 0 || cursors->sequences[lowest] >= move->sequence)
        return false;
    move->evicted = &cursors->keys[lowest];
    return true;
}

static void add_mark_update(struct dynamodb_transaction *transaction,
                            const struct cursor_move *move)
{
    const struct ledger_request_input *input = &transaction->task->request->input;
    const struct dynamodb_item *read = &move->chat.read;
    int64_t before = dynamodb_item_number(read, "read_sequence");
    struct dynamodb_key key =
        dynamodb_chat_part_key(transaction->task, input->chat, "read#", input->user);
    struct dynamodb_value values[] = {
        DYNAMODB_NUMBER(":read", move->reads_more ? move->sequence : before),
        DYNAMODB_NUMBER(":own", move->own_read),
        DYNAMODB_NUMBER(":count", move->cursor_count),
        DYNAMODB_NUMBER(":old_read", before),
        DYNAMODB_NUMBER(":old_count", dynamodb_item_number(read, "cursor_count")),
    };
    bool exists = dynamodb_item_exists(read);
    dynamodb_transaction_update(
        transaction, key, "SET read_sequence = :read, own_read_count = :own, cursor_count = :count",
        exists ? "read_sequence = :old_read AND cursor_count = :old_count"
               : "attribute_not_exists(chat_id)",
        (struct dynamodb_values){values, exists ? 5 : 3});
}

/* Refused, if the user has left, or if another device of the user was faster. */
static enum dynamodb_outcome store_cursor_move(struct dynamodb_task *task,
                                               const struct cursor_move *move)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_transaction transaction;
    dynamodb_transaction_begin(&transaction, task);
    dynamodb_transaction_check(&transaction,
                               dynamodb_chat_member_key(task, &move->chat, input->user),
                               "attribute_exists(chat_id)", DYNAMODB_NO_VALUES);
    dynamodb_transaction_update(&transaction, move->key, "SET cursor_sequence = :new",
                                move->is_new ? "attribute_not_exists(chat_id)"
                                             : "cursor_sequence < :new",
                                DYNAMODB_VALUES(DYNAMODB_NUMBER(":new", move->sequence)));
    if (move->is_new || move->reads_more)
        add_mark_update(&transaction, move);
    if (move->evicted)
        dynamodb_transaction_delete(&transaction, *move->evicted, "attribute_exists(chat_id)",
                                    DYNAMODB_NO_VALUES);
    return dynamodb_transaction_commit(&transaction);
}

/* ---- who is told ---- */

static void list_hidden_from(struct dynamodb_task *task, const struct dynamodb_chat *chat,
                             struct ledger_cursor_outcome *outcome)
{
    struct ledger_chat members;
    struct ledger_request_array hidden = {0};
    if (!dynamodb_relation_any_block(task, task->request->input.user))
        return;
    dynamodb_chat_describe(task, chat, SLICE_NONE, &DYNAMODB_CHAT_WITH_MEMBERS, &members);
    struct id_list others = {members.members, members.member_count};
    const bool *blocked = dynamodb_relation_blocks(task, task->request->input.user, &others);
    for (size_t i = 0; blocked && i < others.count; i++) {
        struct slice *id =
            blocked[i] ? ledger_request_array_push(task->request, &hidden, sizeof(*id)) : NULL;
        if (id)
            *id = others.ids[i];
    }
    outcome->hidden_from = (struct id_list){hidden.items, hidden.count};
}

/* Fills in the outcome of a move that was stored, or needed no storing. */
static void describe_move(struct dynamodb_task *task, const struct cursor_move *move)
{
    struct ledger_cursor_outcome *outcome = &task->request->outcome.cursor;
    struct dynamodb_key key = {DYNAMODB_USERS, task->request->input.user, SLICE("settings"), 0};
    outcome->changed = true;
    outcome->read_more = move->reads_more;
    if (!move->reads_more)
        return;
    outcome->read_sequence = (uint64_t)move->sequence;
    if (dynamodb_item_number(&move->chat.item, "member_count") > LEDGER_RECEIPT_MEMBERS_MAX)
        return;
    struct dynamodb_item settings = dynamodb_get(task, key);
    outcome->is_shown = !dynamodb_item_number(&settings, "hides_reads");
    if (outcome->is_shown)
        list_hidden_from(task, &move->chat, outcome);
}

enum ledger_status dynamodb_cursors_put(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_key key = make_cursor_key(task, input->chat, input->user, input->device);
    unsigned decisions = 0;
    while (dynamodb_decide(task, &decisions)) {
        struct cursor_move move = {.chat = dynamodb_chat_read_marks(task, input->chat, input->user),
                                   .key = key};
        if (!dynamodb_item_exists(&move.chat.member))
            return LEDGER_NOT_FOUND;
        struct dynamodb_item cursor = dynamodb_get(task, key);
        uint64_t latest = dynamodb_chat_latest_sequence(task, &move.chat);
        int64_t mark = dynamodb_item_number(&move.chat.read, "read_sequence");
        task->request->outcome.cursor.read_sequence = (uint64_t)mark;
        move.sequence = (int64_t)(input->sequence < latest ? input->sequence : latest);
        move.is_new = !dynamodb_item_exists(&cursor);
        move.reads_more = move.sequence > mark;
        if (!move.is_new && dynamodb_item_number(&cursor, "cursor_sequence") >= move.sequence)
            return LEDGER_OK;
        move.cursor_count = dynamodb_item_number(&move.chat.read, "cursor_count");
        move.own_read = move.reads_more ? count_own_read(task, &move)
                                        : dynamodb_item_number(&move.chat.read, "own_read_count");
        bool is_kept = !move.is_new || make_space_for_cursor(task, &move);
        if (!is_kept || store_cursor_move(task, &move) != DYNAMODB_REFUSED) {
            describe_move(task, &move);
            return LEDGER_OK;
        }
    }
    return LEDGER_UNAVAILABLE;
}

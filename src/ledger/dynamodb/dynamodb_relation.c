#include "ledger/dynamodb/dynamodb_relation.h"

#include "base/id_list.h"
#include "ledger/dynamodb/client/dynamodb_read.h"
#include "ledger/dynamodb/dynamodb_events.h"

/* ---- the pair's item ---- */

static bool is_lesser(struct slice user, struct slice other)
{
    return id_list_compare(user, other) < 0;
}

struct dynamodb_key dynamodb_relation_key(struct dynamodb_task *task, struct slice user,
                                          struct slice other)
{
    bool lesser = is_lesser(user, other);
    return (struct dynamodb_key){DYNAMODB_USERS, lesser ? user : other,
                                 dynamodb_join(task, "pair#", lesser ? other : user), 0};
}

struct dynamodb_relation dynamodb_relation_read(const struct dynamodb_item *item, struct slice user,
                                                struct slice other)
{
    bool lesser = is_lesser(user, other);
    bool lesser_blocks = dynamodb_item_number(item, "lesser_blocks") != 0;
    bool greater_blocks = dynamodb_item_number(item, "greater_blocks") != 0;
    return (struct dynamodb_relation){
        .user = user,
        .other = other,
        .tag = dynamodb_item_number(item, "pair_tag"),
        .are_contacts = dynamodb_item_number(item, "are_contacts") != 0,
        .user_blocks = lesser ? lesser_blocks : greater_blocks,
        .other_blocks = lesser ? greater_blocks : lesser_blocks,
        .is_pending = dynamodb_item_number(item, "is_pending") != 0,
        .is_hidden = dynamodb_item_number(item, "is_hidden") != 0,
        .user_sent = (dynamodb_item_number(item, "lesser_sent") != 0) == lesser,
        .request_id = dynamodb_item_text(item, "request_id"),
        .created_at_ms = dynamodb_item_number(item, "created_at_ms"),
    };
}

static bool is_relation_same(const struct dynamodb_relation *a, const struct dynamodb_relation *b)
{
    return a->are_contacts == b->are_contacts && a->user_blocks == b->user_blocks &&
           a->is_pending == b->is_pending && a->is_hidden == b->is_hidden;
}

static bool is_relation_empty(const struct dynamodb_relation *relation)
{
    return !relation->are_contacts && !relation->is_pending && !relation->user_blocks &&
           !relation->other_blocks;
}

/* The tag is random, so that a pair that was nothing in between never has an old one again. */
static int64_t make_tag(struct dynamodb_task *task)
{
    return (int64_t)(random_u64(task->client->random) >> 1) | 1;
}

static unsigned write_pair(struct dynamodb_transaction *transaction,
                           const struct dynamodb_relation *relation)
{
    struct dynamodb_task *task = transaction->task;
    bool lesser = is_lesser(relation->user, relation->other);
    struct dynamodb_key key = dynamodb_relation_key(task, relation->user, relation->other);
    struct dynamodb_value tag = DYNAMODB_NUMBER(":tag", relation->tag);
    struct dynamodb_values values = {&tag, relation->tag ? 1 : 0};
    const char *condition = relation->tag ? "pair_tag = :tag" : "attribute_not_exists(user_id)";
    if (is_relation_empty(relation))
        return dynamodb_transaction_delete(transaction, key, condition, values);
    return dynamodb_transaction_put(
        transaction, key,
        DYNAMODB_VALUES(DYNAMODB_NUMBER("pair_tag", make_tag(task)),
                        DYNAMODB_NUMBER("are_contacts", relation->are_contacts),
                        DYNAMODB_NUMBER("lesser_blocks",
                                        lesser ? relation->user_blocks : relation->other_blocks),
                        DYNAMODB_NUMBER("greater_blocks",
                                        lesser ? relation->other_blocks : relation->user_blocks),
                        DYNAMODB_NUMBER("is_pending", relation->is_pending),
                        DYNAMODB_NUMBER("is_hidden", relation->is_hidden),
                        DYNAMODB_NUMBER("lesser_sent", relation->user_sent == lesser),
                        DYNAMODB_TEXT("request_id", relation->request_id),
                        DYNAMODB_NUMBER("created_at_ms", relation->created_at_ms)),
        condition, values);
}

void dynamodb_relation_add_check(struct dynamodb_transaction *transaction,
                                 const struct dynamodb_relation *relation)
{
    struct dynamodb_value tag = DYNAMODB_NUMBER(":tag", relation->tag);
    dynamodb_transaction_check(
        transaction, dynamodb_relation_key(transaction->task, relation->user, relation->other),
        relation->tag ? "pair_tag = :tag" : "attribute_not_exists(user_id)",
        (struct dynamodb_values){&tag, relation->tag ? 1 : 0});
}

/* ---- what is found by other ways ---- */

/* Makes an item exist as it shall. `key` is that of `user`; its second part is `prefix` and `id`. */
static void set_item(struct dynamodb_transaction *transaction, bool was, bool is, struct slice user,
                     const char *prefix, struct slice id, struct dynamodb_values attributes)
{
    if (was == is)
        return;
    struct dynamodb_key key = {DYNAMODB_USERS, user, dynamodb_join(transaction->task, prefix, id),
                               0};
    if (is)
        dynamodb_transaction_put(transaction, key, attributes, NULL, DYNAMODB_NO_VALUES);
    else
        dynamodb_transaction_delete(transaction, key, NULL, DYNAMODB_NO_VALUES);
}

static void write_contacts_and_blocks(struct dynamodb_transaction *transaction,
                                      const struct dynamodb_relation *before,
                                      const struct dynamodb_relation *after)
{
    struct slice user = after->user, other = after->other;
    int64_t now_ms = transaction->task->request->wall_ms;
    struct dynamodb_values contact = DYNAMODB_VALUES(DYNAMODB_TEXT("request_id", after->request_id),
                                                     DYNAMODB_NUMBER("since_ms", now_ms));
    struct dynamodb_values block = DYNAMODB_VALUES(DYNAMODB_NUMBER("since_ms", now_ms));
    set_item(transaction, before->are_contacts, after->are_contacts, user, "contact#", other,
             contact);
    set_item(transaction, before->are_contacts, after->are_contacts, other, "contact#", user,
             contact);
    set_item(transaction, before->user_blocks, after->user_blocks, user, "block#", other, block);
    set_item(transaction, before->user_blocks, after->user_blocks, other, "blocked_by#", user,
             block);
}

static void write_pending_request(struct dynamodb_transaction *transaction,
                                  const struct dynamodb_relation *before,
                                  const struct dynamodb_relation *after)
{
    struct slice sender = after->user_sent ? after->user : after->other;
    struct slice receiver = after->user_sent ? after->other : after->user;
    struct dynamodb_value created = DYNAMODB_NUMBER("created_at_ms", after->created_at_ms);
    set_item(transaction, before->is_pending, after->is_pending, sender, "outgoing#",
             after->request_id, DYNAMODB_VALUES(DYNAMODB_TEXT("other_id", receiver), created));
    set_item(transaction, before->is_pending && !before->is_hidden,
             after->is_pending && !after->is_hidden, receiver, "incoming#", after->request_id,
             DYNAMODB_VALUES(DYNAMODB_TEXT("other_id", sender), created));
}

/* Returns whether an id was taken, under the condition that it is free; `place` is then that of the condition. A contact that
 * the application made has no id. */
static bool write_request_id(struct dynamodb_transaction *transaction,
                             const struct dynamodb_relation *before,
                             const struct dynamodb_relation *after, unsigned *place)
{
    bool has_id = after->request_id.len > 0;
    bool was = has_id && (before->is_pending || before->are_contacts);
    bool is = has_id && (after->is_pending || after->are_contacts);
    struct dynamodb_key key = {DYNAMODB_USERS, after->request_id, SLICE("contact_request"), 0};
    if (was && !is)
        dynamodb_transaction_delete(transaction, key, NULL, DYNAMODB_NO_VALUES);
    if (was || !is)
        return false;
    *place = dynamodb_transaction_put(
        transaction, key,
        DYNAMODB_VALUES(DYNAMODB_TEXT("from_id", after->user_sent ? after->user : after->other),
                        DYNAMODB_TEXT("to_id", after->user_sent ? after->other : after->user)),
        "attribute_not_exists(user_id)", DYNAMODB_NO_VALUES);
    return true;
}

/* ---- counts ---- */

struct count_change {
    int contacts;
    int blocks;
    int outgoing;
};

/* A count that does not grow may be anything. */
static int64_t count_before_max(int change, int64_t max)
{
    return change > 0 ? max - 1 : INT64_MAX;
}

/* Returns whether there is something to count; `place` is then that of the bounds. */
static bool write_counts(struct dynamodb_transaction *transaction, struct slice user,
                         struct count_change change, unsigned *place)
{
    if (!change.contacts && !change.blocks && !change.outgoing)
        return false;
    struct dynamodb_key key = {DYNAMODB_USERS, user, SLICE("counts"), 0};
    *place = dynamodb_transaction_update(
        transaction, key,
        "ADD contact_count :contacts, block_count :blocks, outgoing_count :outgoing",
        "(attribute_not_exists(contact_count) OR contact_count <= :contacts_max) AND "
        "(attribute_not_exists(block_count) OR block_count <= :blocks_max) AND "
        "(attribute_not_exists(outgoing_count) OR outgoing_count <= :outgoing_max)",
        DYNAMODB_VALUES(
            DYNAMODB_NUMBER(":contacts", change.contacts),
            DYNAMODB_NUMBER(":blocks", change.blocks),
            DYNAMODB_NUMBER(":outgoing", change.outgoing),
            DYNAMODB_NUMBER(":contacts_max",
                            count_before_max(change.contacts, LEDGER_CONTACTS_MAX)),
            DYNAMODB_NUMBER(":blocks_max", count_before_max(change.blocks, LEDGER_BLOCKS_MAX)),
            DYNAMODB_NUMBER(
                ":outgoing_max",
                count_before_max(change.outgoing, LEDGER_CONTACT_REQUESTS_OUTGOING_MAX))));
    return true;
}

/* ---- changing ---- */

/* Returns BUSY when the relation has changed meanwhile. */
static enum ledger_status write_relation(struct dynamodb_task *task,
                                         const struct dynamodb_relation *before,
                                         const struct dynamodb_relation *after)
{
    int contacts = after->are_contacts - before->are_contacts;
    int pending = after->is_pending - before->is_pending;
    struct count_change of_user = {contacts, after->user_blocks - before->user_blocks,
                                   after->user_sent ? pending : 0};
    struct count_change of_other = {contacts, 0, after->user_sent ? 0 : pending};
    struct dynamodb_transaction transaction;
    unsigned id, counts, counts_of_other;
    dynamodb_transaction_begin(&transaction, task);
    unsigned pair = write_pair(&transaction, after);
    write_contacts_and_blocks(&transaction, before, after);
    write_pending_request(&transaction, before, after);
    bool takes_id = write_request_id(&transaction, before, after, &id);
    bool counts_user = write_counts(&transaction, after->user, of_user, &counts);
    bool counts_other = write_counts(&transaction, after->other, of_other, &counts_of_other);
    dynamodb_events_add_now(&transaction);
    enum dynamodb_outcome outcome = dynamodb_transaction_commit(&transaction);
    if (outcome != DYNAMODB_REFUSED)
        return outcome == DYNAMODB_DONE ? LEDGER_OK : LEDGER_UNAVAILABLE;
    if (dynamodb_transaction_refused(&transaction, pair))
        return LEDGER_BUSY;
    if ((counts_user && dynamodb_transaction_refused(&transaction, counts)) ||
        (counts_other && dynamodb_transaction_refused(&transaction, counts_of_other)))
        return LEDGER_LIMIT;
    return takes_id && dynamodb_transaction_refused(&transaction, id) ? LEDGER_CONFLICT
                                                                      : LEDGER_BUSY;
}

enum ledger_status dynamodb_relation_change(struct dynamodb_task *task, struct slice other,
                                            dynamodb_relation_decision decide)
{
    return dynamodb_relation_change_of(task, task->request->input.user, other, decide);
}

enum ledger_status dynamodb_relation_change_of(struct dynamodb_task *task, struct slice user,
                                               struct slice other,
                                               dynamodb_relation_decision decide)
{
    enum ledger_status status = LEDGER_BUSY;
    for (unsigned i = 0; i < DYNAMODB_DECISIONS_MAX && status == LEDGER_BUSY; i++) {
        struct dynamodb_item item = dynamodb_get(task, dynamodb_relation_key(task, user, other));
        struct dynamodb_relation before = dynamodb_relation_read(&item, user, other);
        struct dynamodb_relation after = before;
        ledger_request_fail(task->request, LEDGER_OK); /* clears the outcome */
        status = decide(task->request, &after);
        if (status == LEDGER_OK && !is_relation_same(&before, &after))
            status = write_relation(task, &before, &after);
    }
    return status == LEDGER_BUSY ? LEDGER_UNAVAILABLE : status;
}

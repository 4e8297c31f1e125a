/*
 * What two users are to each other: contacts or not, a pending contact request, blocks.
 *
 * All of it is one item of the lesser user, "pair#GREATER", with a tag that every change replaces. A change is decided on
 * this item and written under the condition that its tag is still the same, so the changes of one pair happen one after the
 * other, whatever the processes. It does not exist while the two are nothing to each other.
 *
 * The same transaction keeps what is found by other ways:
 *
 *   user_id      part_key           attributes
 *   either user  contact#OTHER      request_id, since_ms
 *   the blocker  block#OTHER        since_ms
 *   the blocked  blocked_by#OTHER   since_ms
 *   the sender   outgoing#ID        other_id, created_at_ms
 *   the receiver incoming#ID        other_id, created_at_ms; not while the contact request is hidden
 *   ID           contact_request    from_id, to_id; while it is pending, and while the contact lasts that it led to
 *   either user  counts             contact_count, block_count, outgoing_count
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_RELATION_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_RELATION_H

#include "ledger/dynamodb/client/dynamodb_write.h"

/* As one of the two, the user, sees it. */
struct dynamodb_relation {
    struct slice user;
    struct slice other;
    int64_t tag; /* 0: there is no item */
    bool are_contacts;
    bool user_blocks;
    bool other_blocks;
    bool is_pending; /* a contact request */
    bool is_hidden;  /* it, from its receiver */
    bool user_sent;  /* it, or the one that led to the contact */
    struct slice request_id;
    int64_t created_at_ms;
};

struct dynamodb_key dynamodb_relation_key(struct dynamodb_task *task, struct slice user,
                                          struct slice other);

struct dynamodb_relation dynamodb_relation_read(const struct dynamodb_item *item, struct slice user,
                                                struct slice other);

/* Lets a transaction be written only if the relation is still the same. */
void dynamodb_relation_add_check(struct dynamodb_transaction *transaction,
                                 const struct dynamodb_relation *relation);

/* Changes the relation in place and fills in the outcome of the request, which is empty before. */
typedef enum ledger_status (*dynamodb_relation_decision)(struct ledger_request *request,
                                                         struct dynamodb_relation *relation);

/* Decides on the relation of the request's user and `other`, and stores what has changed: LIMIT beyond one of the bounds of the
 * two users, CONFLICT when the id of a new contact request is in use. */
enum ledger_status dynamodb_relation_change(struct dynamodb_task *task, struct slice other,
                                            dynamodb_relation_decision decide);

/* The same for any two users. */
enum ledger_status dynamodb_relation_change_of(struct dynamodb_task *task, struct slice user,
                                               struct slice other,
                                               dynamodb_relation_decision decide);

#endif

/*
 * What a process remembers of a chat that is written to, so that a steady stream of messages costs one call per batch and no
 * reads: the counter and the members_version that the last transaction left, and who is known to be a member.
 *
 * All of it may be out of date, because other processes write too. So every transaction repeats it as conditions, and what is
 * refused is forgotten. Nothing is ever answered from here alone.
 *
 * Ownership: the struct owns its lists. All zero remembers nothing.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPEND_CHAT_H
#define ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPEND_CHAT_H

#include "base/id_list.h"
#include "ledger/dynamodb/chats/dynamodb_chats.h"

enum { DYNAMODB_APPEND_SENDERS_MAX = 16 }; /* remembered of one chat */

struct dynamodb_append_chat {
    /* ---- by the item "chat" ---- */
    int64_t members_version; /* 0: not known, and nor are the four below */
    int64_t member_count;
    char draft[DYNAMODB_DRAFT_CHARACTERS + 1]; /* of a staged chat, else empty */
    struct id_list pair; /* the members of a chat of two, in which a block stops both; else empty */
    struct id_list senders; /* members who have accepted the chat */
    /* ---- by the counter ---- */
    bool has_counter;
    bool is_in_order; /* the message of this sequence exists */
    int64_t sequence; /* of the last message */
    int64_t activity_ms;
    /* ---- other processes that write to it ---- */
    unsigned lost_in_row;   /* transactions that one of them was faster than */
    int64_t rests_until_ms; /* to let them go first, by the loop's clock */
};

/* Takes over the item "chat"; forgets the members if their version has changed. */
void dynamodb_append_chat_set(struct dynamodb_append_chat *chat, const struct dynamodb_item *item);

/* Takes over the item of the counter; one that does not exist is forgotten. */
void dynamodb_append_chat_set_counter(struct dynamodb_append_chat *chat,
                                      const struct dynamodb_item *item);

/* Remembers a sender, and forgets the others when there are too many. */
void dynamodb_append_chat_add_sender(struct dynamodb_append_chat *chat, struct slice user);

void dynamodb_append_chat_forget_members(struct dynamodb_append_chat *chat);

/* Forgets everything and frees the lists. */
void dynamodb_append_chat_forget(struct dynamodb_append_chat *chat);

#endif

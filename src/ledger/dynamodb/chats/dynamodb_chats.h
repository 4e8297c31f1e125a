/*
 * What the operations on chats share: the keys of a chat's items, and reading a chat.
 *
 *   table   key                            what it is
 *   chats   chat_id, "chat"                the chat; it exists when this item does
 *           chat_id, "member#USER"         a member: since_ms, is_admin
 *           chat_id, "sent#USER"           how many messages the user has sent; kept when the user leaves
 *           chat_id, "read#USER"           how far the user has read (dynamodb_cursors.c)
 *   users   user_id, "chat#CHAT"           the user's own entry for the chat: is_accepted, since_ms
 *           user_id, "left#CHAT"           a group that the user has left
 *           lesser id, "direct#GREATER"    the direct chat of the two
 *
 * Counts (member_count, admin_count) and members_version are in the item "chat". Every transaction that changes members or
 * roles changes it too, so that the bounds and rules that rest on the counts hold under concurrency.
 *
 * A chat with too many members for one transaction is staged (dynamodb_chat_drafts.c). The items of its members and users name
 * the draft, "member+DRAFT#USER" and "chat+CHAT#DRAFT", for the chat's whole life; its item "chat" has the attribute draft_id. So
 * drafts of one id never touch each other's items, and nothing of an abandoned draft is ever taken for a member.
 * Use the functions below for these keys.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CHATS_DYNAMODB_CHATS_H
#define ROLLCALL_LEDGER_DYNAMODB_CHATS_DYNAMODB_CHATS_H

#include "ledger/dynamodb/dynamodb_operations.h"

enum {
    DYNAMODB_DRAFT_CHARACTERS = 32,
    /* Members of a chat that is created in one transaction: two items each, the chat, its counter and its events. */
    DYNAMODB_CHAT_UNSTAGED_MAX = (DYNAMODB_TRANSACTION_MAX - 2 - 2 * LEDGER_EVENT_QUEUES_MAX) / 2,
};

/* A chat as an operation read it. The items of the user it was read for do not exist if the user is no member. */
struct dynamodb_chat {
    struct slice id;
    struct slice draft; /* SLICE_NONE: it was not staged */
    struct dynamodb_item item;
    struct dynamodb_item member; /* of the user it was read for */
    /* ---- read by dynamodb_chat_read_marks() only ---- */
    struct dynamodb_item counter;
    struct dynamodb_item sent;
    struct dynamodb_item read;
};

static inline struct dynamodb_key dynamodb_chat_key(struct slice chat)
{
    return (struct dynamodb_key){DYNAMODB_CHATS, chat, SLICE("chat"), 0};
}

static inline struct dynamodb_key dynamodb_chat_counter_key(struct slice chat)
{
    return (struct dynamodb_key){DYNAMODB_CHAT_COUNTERS, chat, SLICE_NONE, 0};
}

/* Keys of which only `id` and `draft` of the chat matter. */
struct dynamodb_key dynamodb_chat_member_key(struct dynamodb_task *task,
                                             const struct dynamodb_chat *chat, struct slice user);
/* The user's own entry. */
struct dynamodb_key dynamodb_chat_entry_key(struct dynamodb_task *task,
                                            const struct dynamodb_chat *chat, struct slice user);
/* That the user was a member once. */
struct dynamodb_key dynamodb_chat_left_key(struct dynamodb_task *task, struct slice chat,
                                           struct slice user);
/* A part of the chat: "sent#", "read#". */
struct dynamodb_key dynamodb_chat_part_key(struct dynamodb_task *task, struct slice chat,
                                           const char *prefix, struct slice user);

/* How the keys of the chat's members begin; the user's id follows. */
const char *dynamodb_chat_members_prefix(struct dynamodb_task *task,
                                         const struct dynamodb_chat *chat);

/* Reads a chat, and what it has of a user; SLICE_NONE: of nobody. */
struct dynamodb_chat dynamodb_chat_read(struct dynamodb_task *task, struct slice id,
                                        struct slice user);
/* Reads the counter and the user's read mark, too. */
struct dynamodb_chat dynamodb_chat_read_marks(struct dynamodb_task *task, struct slice id,
                                              struct slice user);

static inline bool dynamodb_chat_is_group(const struct dynamodb_chat *chat)
{
    return dynamodb_item_number(&chat->item, "chat_kind") == LEDGER_CHAT_GROUP;
}

static inline bool dynamodb_chat_has_admin(const struct dynamodb_chat *chat)
{
    return dynamodb_item_number(&chat->member, "is_admin") != 0;
}

struct dynamodb_chat_parts {
    bool members;
    bool profiles;
    bool direct_profiles; /* profiles of a direct chat only */
};

extern const struct dynamodb_chat_parts DYNAMODB_CHAT_WITH_MEMBERS;
extern const struct dynamodb_chat_parts DYNAMODB_CHAT_WITH_PROFILES;

/* Returns the sequence of the last message of a chat that was read with its marks. */
uint64_t dynamodb_chat_latest_sequence(struct dynamodb_task *task,
                                       const struct dynamodb_chat *chat);

/* Describes a chat, which was read with its marks, as the reader (SLICE_NONE: nobody) sees it. */
void dynamodb_chat_describe(struct dynamodb_task *task, const struct dynamodb_chat *chat,
                            struct slice reader, const struct dynamodb_chat_parts *parts,
                            struct ledger_chat *out);

/* Reads the chat with its members, as one who is a member sees it. */
enum ledger_status dynamodb_chat_return(struct dynamodb_task *task, struct slice id,
                                        struct slice reader,
                                        const struct dynamodb_chat_parts *parts);

/* ---- dynamodb_chat_drafts.c ---- */

struct dynamodb_new_chat {
    struct dynamodb_chat chat; /* the id and the draft */
    enum ledger_chat_kind kind;
    struct slice creator;
    const struct slice *members; /* sorted, each once, with the creator */
    const bool *accepted;        /* by each of them */
    size_t count;
};

/* Stores the members of a new chat, in as many writes as it takes. Nobody sees them before the chat exists. If the time is
 * up, the same request continues where this one ended. */
void dynamodb_chat_drafts_stage(struct dynamodb_task *task, struct dynamodb_new_chat *chat);

/* Removes entries of abandoned drafts, which a user's list came across. */
void dynamodb_chat_drafts_clear(struct dynamodb_task *task, struct slice user,
                                const struct dynamodb_chat *drafts, const int64_t *since_ms,
                                size_t count);

/* ---- dynamodb_relation_marks.c ---- */

/* Sets the marks of the users, sorted by id, to whom `user` has an item with this prefix: "contact#", "block#",
 * "blocked_by#". Leaves the others. */
void dynamodb_relation_mark(struct dynamodb_task *task, struct slice user, const char *prefix,
                            const struct id_list *others, bool *marks);

/* Returns whether the user has blocked anybody, or was blocked. */
bool dynamodb_relation_any_block(struct dynamodb_task *task, struct slice user);

/* Returns a mark for each of the users, sorted by id, with whom there is a block in either direction. */
const bool *dynamodb_relation_blocks(struct dynamodb_task *task, struct slice user,
                                     const struct id_list *others);

#endif

/*
 * The ledger's second half: messages, the cursors of devices, the outbox of what is stored but not
 * yet published, and dead letters. Same port, same promises as ledger.h.
 *
 * A chat's messages are numbered from 1 without a gap. The number is drawn from the chat's counter
 * in the transaction that stores the message, and (chat, sequence) is the key of the table, so that
 * one number can never name two messages. A sender's client_message_id names one message of a chat
 * for ever: sending it again returns what the first send did.
 *
 * A message enters the outbox in its own transaction and leaves it with ledger_outbox_remove(),
 * after it was published. What a crash left in between is found with ledger_outbox_list() at start.
 *
 * A chat is halted when its counter is missing or lower than its highest message (or has a gap
 * above it): appending says LEDGER_HALTED, reading goes on, ledger_chat_repair() restores it.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_MESSAGES_H
#define ROLLCALL_LEDGER_LEDGER_MESSAGES_H

#include "ledger/ledger.h"

enum {
    LEDGER_BODY_BYTES_MAX = 4096,
    LEDGER_CURSORS_MAX =
        64, /* devices of one user in one chat; the one furthest behind goes first */
    LEDGER_DEAD_LETTERS_MAX = 10000, /* kept; the oldest goes first */
    LEDGER_DEAD_LETTER_REASON_BYTES_MAX = 256,
    LEDGER_OUTBOX_BATCH_MAX = 1024, /* messages of one ledger_outbox_remove() */
};

struct ledger_message {
    struct slice chat;
    struct slice id;
    struct slice sender;
    struct slice client_message_id;
    struct slice body;
    uint64_t sequence;
    int64_t sent_at_ms;
};

struct ledger_append_outcome {
    enum ledger_status status;
    struct slice message_id;
    uint64_t sequence;
    int64_t sent_at_ms;
    uint64_t members_version; /* of the chat when it was stored; 0 of a duplicate */
    bool duplicate;           /* the rest describes the first send */
    bool body_differs;        /* of a duplicate: that one had another body */
    bool published;           /* of a duplicate: it has left the outbox */
};

typedef void (*ledger_append_done)(void *arg, const struct ledger_append_outcome *outcome);

/* Stores a message of a member. `message_id` is used if it is new. */
void ledger_message_append(struct ledger_client *client, struct slice chat, struct slice sender,
                           struct slice client_message_id, struct slice message_id,
                           struct slice body, ledger_append_done done, void *arg);

struct ledger_messages_outcome {
    enum ledger_status status;
    const struct ledger_message *messages; /* by rising sequence, in both directions */
    size_t count;
    bool has_more;            /* in the direction asked for */
    uint64_t latest_sequence; /* of the chat, from the same snapshot */
};

typedef void (*ledger_messages_done)(void *arg, const struct ledger_messages_outcome *outcome);

/* At most `limit` messages with a sequence greater than `sequence`; past the end is an empty page.
 * With `viewer` SLICE_NONE no membership is asked for. */
void ledger_messages_after(struct ledger_client *client, struct slice chat, struct slice viewer,
                           uint64_t sequence, uint32_t limit, ledger_messages_done done, void *arg);

/* The `limit` messages next below `sequence`; UINT64_MAX for the latest. */
void ledger_messages_before(struct ledger_client *client, struct slice chat, struct slice viewer,
                            uint64_t sequence, uint32_t limit, ledger_messages_done done,
                            void *arg);

/* Moves a device's cursor forward, never back and never past the latest message. */
void ledger_cursor_put(struct ledger_client *client, struct slice chat, struct slice user,
                       struct slice device, uint64_t sequence, ledger_change_done done, void *arg);

/* The oldest messages of the outbox, whole (in the order they were stored). `latest_sequence` is 0.
 */
void ledger_outbox_list(struct ledger_client *client, uint32_t limit, ledger_messages_done done,
                        void *arg);

/* Names a message. */
struct ledger_position {
    struct slice chat;
    uint64_t sequence;
};

/* These messages were published (or given up). At most LEDGER_OUTBOX_BATCH_MAX, else LIMIT. */
void ledger_outbox_remove(struct ledger_client *client, const struct ledger_position *positions,
                          size_t count, ledger_change_done done, void *arg);

struct ledger_dead_letter {
    struct slice chat;
    struct slice reason;
    uint64_t sequence;
    int64_t created_at_ms;
};

struct ledger_dead_letters_outcome {
    enum ledger_status status;
    const struct ledger_dead_letter *letters; /* oldest first */
    size_t count;
};

typedef void (*ledger_dead_letters_done)(void *arg,
                                         const struct ledger_dead_letters_outcome *outcome);

/* Moves a message from the outbox to the dead letters. */
void ledger_dead_letter_put(struct ledger_client *client, struct slice chat, uint64_t sequence,
                            struct slice reason, ledger_change_done done, void *arg);

void ledger_dead_letters_list(struct ledger_client *client, uint32_t limit,
                              ledger_dead_letters_done done, void *arg);

/* Moves a dead letter back to the outbox. NOT_FOUND when it is none. */
void ledger_dead_letter_replay(struct ledger_client *client, struct slice chat, uint64_t sequence,
                               ledger_change_done done, void *arg);

struct ledger_repair_outcome {
    enum ledger_status status;
    bool counter_missing;
    bool needed;               /* the chat is (was) halted */
    uint64_t counter;          /* as found; 0 when missing */
    uint64_t highest_sequence; /* of the stored messages: what the counter is (would be) set to */
};

typedef void (*ledger_repair_done)(void *arg, const struct ledger_repair_outcome *outcome);

/* Shows what is wrong with a chat's counter and, with `apply`, sets it to the highest message. */
void ledger_chat_repair(struct ledger_client *client, struct slice chat, bool apply,
                        ledger_repair_done done, void *arg);

#endif

/*
 * The second half of the ledger port: messages, the cursors of devices, the outbox of messages that are
 * stored but not published yet, and dead letters. ledger.h states the promises.
 *
 * The sequences of a chat are dense: 1, 2, 3, … The transaction that stores a message
 * draws the sequence from the chat's counter, and (chat, sequence) is the key of the table, so that a
 * sequence never names two messages. A sender's client_message_id names one message of a chat for ever:
 * sending it again returns the outcome of the first send.
 *
 * A message enters the outbox in the transaction that stores it, and leaves it with ledger_outbox_remove()
 * after it was published. ledger_outbox_list() finds what a crash left in between. The messages of a client that
 * `skips_outbox` never enter it.
 *
 * A message that was deleted leaves a tombstone: its body is empty, which no other message's is, and it is in no outbox. It
 * keeps its sequence, so that sequences stay dense.
 *
 * A chat is halted when its counter is missing or differs from its highest sequence. Appending then answers
 * LEDGER_HALTED, reading goes on, and ledger_chat_repair() restores the counter.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_MESSAGES_H
#define ROLLCALL_LEDGER_LEDGER_MESSAGES_H

#include "ledger/ledger.h"

enum {
    LEDGER_BODY_BYTES_MAX = 4096,
    LEDGER_CURSORS_MAX = 64, /* devices of one user in one chat; the lowest cursor goes first */
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

/* The sender of a message as users see it: SLICE_NONE if it is the application. */
static inline struct slice ledger_message_sender(struct slice sender)
{
    return slice_equal(sender, LEDGER_APPLICATION) ? SLICE_NONE : sender;
}

struct ledger_append_outcome {
    enum ledger_status status;
    struct slice message_id;
    uint64_t sequence;
    int64_t sent_at_ms;
    uint64_t members_version; /* of the chat when the message was stored; 0 for a duplicate */
    bool duplicate;           /* the other fields describe the first send */
    bool body_differs;        /* for a duplicate: the first send had another body */
    bool published;           /* for a duplicate: the first send is not in the outbox */
};

typedef void (*ledger_append_done)(void *arg, const struct ledger_append_outcome *outcome);

/* Stores a message of a member, or of LEDGER_APPLICATION: a system message. A duplicate keeps the first message_id. */
void ledger_message_append(struct ledger_client *client, struct slice chat, struct slice sender,
                           struct slice client_message_id, struct slice message_id,
                           struct slice body, ledger_append_done done, void *arg);

/* Deletes a message: a tombstone stays. NOT_FOUND when there is no such message; one that was deleted before does not
 * change. */
void ledger_message_delete(struct ledger_client *client, struct slice chat, uint64_t sequence,
                           ledger_change_done done, void *arg);

struct ledger_messages_outcome {
    enum ledger_status status;
    const struct ledger_message *messages; /* by rising sequence, in both directions */
    size_t count;
    bool has_more;            /* in the requested direction */
    uint64_t latest_sequence; /* of the chat: that of the last message if there is none after it */
};

typedef void (*ledger_messages_done)(void *arg, const struct ledger_messages_outcome *outcome);

/* Reads at most `limit` messages with a sequence greater than `sequence`; beyond the end the page is empty.
 * With `reader` SLICE_NONE membership is not checked. */
void ledger_messages_after(struct ledger_client *client, struct slice chat, struct slice reader,
                           uint64_t sequence, uint32_t limit, ledger_messages_done done, void *arg);

/* Reads the `limit` messages just below `sequence`; UINT64_MAX reads the latest. */
void ledger_messages_before(struct ledger_client *client, struct slice chat, struct slice reader,
                            uint64_t sequence, uint32_t limit, ledger_messages_done done,
                            void *arg);

struct ledger_cursor_outcome {
    enum ledger_status status;
    bool changed;           /* this device's cursor moved */
    bool read_more;         /* the user's read mark moved: the highest cursor of all devices */
    uint64_t read_sequence; /* the read mark after the operation */
    bool is_shown;          /* the mark moved, and others may be told, except those below */
    struct id_list hidden_from;
};

typedef void (*ledger_cursor_done)(void *arg, const struct ledger_cursor_outcome *outcome);

/* Moves a device's cursor forward, never back and never beyond the latest message. The mark is shown if the user's
 * settings allow it and the chat has at most LEDGER_RECEIPT_MEMBERS_MAX members; not across a block. */
void ledger_cursor_put(struct ledger_client *client, struct slice chat, struct slice user,
                       struct slice device, uint64_t sequence, ledger_cursor_done done, void *arg);

/* Reads the oldest messages of the outbox, about in the order in which they were sent: a message comes before those that
 * were sent at a later millisecond by the same clock. A message that was moved back from the dead letters may stand
 * anywhere. So whoever reads up to the first young message has seen all old ones, sooner or later. `latest_sequence` is 0. */
void ledger_outbox_list(struct ledger_client *client, uint32_t limit, ledger_messages_done done,
                        void *arg);

/* Names a message. */
struct ledger_position {
    struct slice chat;
    uint64_t sequence;
    int64_t sent_at_ms; /* as the message has it: a backend may order the outbox by it */
};

/* Removes messages that were published or skipped, one by one, not all or none. `changed` is always false: nobody asks
 * whether they were there. More than LEDGER_OUTBOX_BATCH_MAX: LIMIT. */
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
    const struct ledger_dead_letter *letters; /* about the oldest first */
    size_t count;
};

typedef void (*ledger_dead_letters_done)(void *arg,
                                         const struct ledger_dead_letters_outcome *outcome);

/* Moves a message from the outbox to the dead letters. NOT_FOUND when there is no such message. */
void ledger_dead_letter_put(struct ledger_client *client, struct slice chat, uint64_t sequence,
                            struct slice reason, ledger_change_done done, void *arg);

void ledger_dead_letters_list(struct ledger_client *client, uint32_t limit,
                              ledger_dead_letters_done done, void *arg);

/* Moves a dead letter back to the outbox. NOT_FOUND when there is no such dead letter. */
void ledger_dead_letter_replay(struct ledger_client *client, struct slice chat, uint64_t sequence,
                               ledger_change_done done, void *arg);

struct ledger_repair_outcome {
    enum ledger_status status;
    bool counter_missing;
    bool needed;               /* the chat is, or was, halted */
    uint64_t counter;          /* before the repair; 0 when missing */
    uint64_t highest_sequence; /* of the stored messages: the value that a repair sets */
};

typedef void (*ledger_repair_done)(void *arg, const struct ledger_repair_outcome *outcome);

/* Reports what is wrong with a chat's counter and, with `apply`, sets it to the highest sequence. */
void ledger_chat_repair(struct ledger_client *client, struct slice chat, bool apply,
                        ledger_repair_done done, void *arg);

#endif

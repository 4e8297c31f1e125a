/*
 * The ledger holds durable data: users' settings, contacts, blocks, chats, the history of calls and the
 * messages (ledger_messages.h). It is a port: the planes use the functions below and do not depend
 * on the backend (embedded SQLite, another process, DynamoDB).
 *
 * What every backend promises
 *   - Each operation is asynchronous. Its completion runs exactly once, never from inside the function
 *     that started it, and also when the queue is full (BUSY), an id is malformed (INVALID), the disk
 *     fails (UNAVAILABLE) or the time limit passes (TIMEOUT).
 *   - One operation takes effect completely or not at all, and nobody sees a part of it; ledger_last_seen_put() is as
 *     many operations as it has entries.
 *   - LEDGER_OK for a write means that the write is durable. UNAVAILABLE and TIMEOUT for a write mean that
 *     it may or may not have happened. Every write is idempotent, so the caller repeats it.
 *   - A read that starts after a write was answered sees that write. Two operations in flight at the same
 *     time have no order, except that one client's messages of one sender to one chat get rising sequences, and
 *     their completions run in that order.
 *   - A read shows each thing as it was at one instant during the read: the relation of two users, the settings of one,
 *     a list. Different things may be from different instants. Callers rely on no more: whatever keeps an answer drops it when
 *     a change is announced, which happens after the change is stored (contacts/graph_reader.h, visibility_review.h), and a
 *     block hides a user whatever else was read (privacy.h).
 *   - The bounds below hold for every request.
 * ledger_request.h describes what a backend implements; tests/conformance/ledger_suite.h tests all of this.
 *
 * Threading: a worker has one `struct ledger_client` and uses it on its own thread only. The backend works
 * on its own threads and gives finished requests to the client's `post` hook, from one of its threads (or
 * from the caller's, when it refuses at once). The hook moves them to the worker through a mailbox; the
 * worker passes them to ledger_complete(). So a completion always runs on the thread that started its
 * operation.
 *
 * Ownership: arguments are borrowed for the duration of the function and copied. An outcome and everything
 * it points to last until the completion returns. The backend owns a request until ledger_complete(),
 * which frees it.
 *
 * Time and randomness: creation times come from the client's clock at the start of the operation. The
 * caller chooses the ids of new contact requests, chats and messages. Ids are opaque, 1 to
 * LEDGER_ID_BYTES_MAX bytes of UTF-8, as all texts here: callers have them from JSON, which is checked. To other bytes a
 * backend that stores texts answers INVALID.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_H
#define ROLLCALL_LEDGER_LEDGER_H

#include "base/clock.h"
#include "base/id_list.h"
#include "base/list.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger;
struct ledger_event_queue;
struct ledger_metrics;
struct ledger_request;

enum {
    LEDGER_ID_BYTES_MAX = 128,
    LEDGER_QUEUE_MAX = 16384,      /* requests waiting in a backend; beyond it: BUSY */
    LEDGER_REFUSALS_MAX = 256,     /* operations that found no memory and await their answer */
    LEDGER_TIME_LIMIT_MS = 5000,   /* from the start of an operation to its completion */
    LEDGER_PAGE_MAX = 1000,        /* rows of one page; 0 and larger limits mean this */
    LEDGER_PROFILES_MAX = 10000,   /* targets of one ledger_profiles() */
    LEDGER_APPEARANCES_MAX = 1000, /* users of one ledger_appearances() */
    LEDGER_CONTACTS_MAX = 10000,   /* per user */
    LEDGER_BLOCKS_MAX = 10000,     /* per user */
    LEDGER_CONTACT_REQUESTS_OUTGOING_MAX = 1000, /* pending contact requests from one user */
    LEDGER_CHAT_MEMBERS_MAX = 10000,
    LEDGER_CHATS_PAGE_MEMBERS_MAX = 20000, /* members in one page of chats; beyond it: has_more */
    LEDGER_CHAT_PROFILES_MAX = 1000,       /* member profiles of one chat, by id */
    LEDGER_RECEIPT_MEMBERS_MAX = 100,      /* members of a chat that shows who has read how far */
    LEDGER_DISPLAY_NAME_BYTES_MAX = 256,
    LEDGER_AVATAR_URL_BYTES_MAX = 2048,
    LEDGER_CALLS_KEPT_MAX = 1000,     /* per user; older history is dropped */
    LEDGER_CALLS_UNANSWERED_MAX = 20, /* of them, unanswered calls from one user to the other */
    LEDGER_LAST_SEEN_BATCH_MAX = 1024,
    LEDGER_REASON_BYTES_MAX = 32, /* why a call ended */
};

enum ledger_status {
    LEDGER_OK,
    LEDGER_INVALID,     /* an id of the wrong length, oneself as a contact, ... */
    LEDGER_NOT_FOUND,   /* missing, or hidden from this user: the two look the same */
    LEDGER_CONFLICT,    /* the id is in use for something else */
    LEDGER_FORBIDDEN,   /* a member without this right, or a user who does not consent */
    LEDGER_LIMIT,       /* beyond one of the bounds above */
    LEDGER_HALTED,      /* the chat's counter is missing or disagrees with its messages */
    LEDGER_BUSY,        /* too many requests wait; nothing happened */
    LEDGER_TIMEOUT,     /* no answer within the time limit; a write may still happen */
    LEDGER_UNAVAILABLE, /* the store failed (the backend logs why); a write may have happened */
    LEDGER_STATUS_COUNT,
};

const char *ledger_status_name(enum ledger_status status);

/* ---- clients ------------------------------------------------------------------------------------
 */

/* The answer owed to an operation for which there was no memory (refusal.h). */
struct ledger_refusal {
    int operation;
    void (*done)(void);
    void *arg;
};

/* Takes a chain of finished requests and brings it to the client's worker, which passes it to
 * ledger_complete(). Any thread may call it; it must not block. */
typedef void (*ledger_post_hook)(void *arg, struct ledger_request *chain);

/* One worker's access to the ledger. The fields below the line are private to the port. */
struct ledger_client {
    struct ledger *ledger;
    const struct clock *clock; /* the worker's; borrowed for the client's life */
    ledger_post_hook post;
    void *post_arg;
    int64_t time_limit_ms;
    bool skips_outbox; /* its messages are published by other means: they do not enter the outbox */
    const struct ledger_event_queue *event_queues; /* its acts are events there (ledger_events.h) */
    size_t event_queue_count;
    /* ---- */
    struct list unanswered; /* requests in the order of their deadlines */
    size_t outstanding;     /* requests that the backend has not given back, answered or not */
    struct ledger_refusal refusals[LEDGER_REFUSALS_MAX];
    size_t refusal_count;
    bool closed;
};

/* Initialises a client with the default time limit. A client may end when `outstanding` is 0, which is
 * so after ledger_close() and the completion of everything that was posted by then. */
void ledger_client_init(struct ledger_client *client, struct ledger *ledger,
                        const struct clock *clock, ledger_post_hook post, void *post_arg);

/* Returns when ledger_client_expire() has something to do (monotonic): at the deadline of the oldest
 * unanswered request, at once for refused operations, and INT64_MAX when nothing is owed. */
int64_t ledger_client_deadline_ms(const struct ledger_client *client);

/* Answers overdue requests with LEDGER_TIMEOUT, and operations that found no memory with LEDGER_BUSY. A
 * later answer of the backend is dropped. */
void ledger_client_expire(struct ledger_client *client);

/* Detaches the client from its ledger, before the ledger is closed: from here on every operation is answered with
 * UNAVAILABLE and never reaches the ledger. So a completion may start operations at any time, also while
 * the process ends. */
void ledger_client_close(struct ledger_client *client);

/* Returns whether a completion is still owed. */
bool ledger_client_is_owed(const struct ledger_client *client);

/* Returns for how long writes are known to fail because a circuit breaker is open; 0 otherwise. */
int64_t ledger_retry_after_ms(const struct ledger_client *client);

/* Runs the completions of a posted chain and frees it. Call it on the worker's thread. */
void ledger_complete(struct ledger_request *chain);

/* Closes a ledger. Accepted requests are executed and posted before this returns, so the mailboxes must
 * still exist. No operation may start during or after it, so close the clients first. */
void ledger_close(struct ledger **ledger);

const struct ledger_metrics *ledger_metrics(const struct ledger *ledger);

/* ---- outcomes shared by several operations ------------------------------------------------------
 */

struct ledger_change_outcome {
    enum ledger_status status;
    bool changed; /* false: nothing was left to change */
};

typedef void (*ledger_change_done)(void *arg, const struct ledger_change_outcome *outcome);

struct ledger_ids_outcome {
    enum ledger_status status;
    const struct slice *ids; /* sorted by bytes */
    size_t count;
};

typedef void (*ledger_ids_done)(void *arg, const struct ledger_ids_outcome *outcome);

/* ---- users --------------------------------------------------------------------------------------
 */

enum ledger_visibility {
    LEDGER_VISIBLE_CONTACTS_ONLY, /* the default of both settings */
    LEDGER_VISIBLE_EVERYONE,
    LEDGER_VISIBLE_NOBODY,
};

/* Who may add a user to a group. */
enum ledger_group_adds { LEDGER_GROUP_ADDS_EVERYONE, LEDGER_GROUP_ADDS_CONTACTS_ONLY };

struct ledger_settings {
    enum ledger_visibility presence;
    enum ledger_visibility last_seen;
    enum ledger_group_adds group_adds;
    bool hides_reads; /* others are not told how far the user has read */
};

/* How a user appears to contacts and to members of the same chats. An empty text is none. */
struct ledger_appearance {
    struct slice display_name;
    struct slice avatar_url;
};

struct ledger_settings_outcome {
    enum ledger_status status;
    struct ledger_settings settings; /* after the operation */
    struct ledger_settings previous; /* before it */
    struct ledger_appearance appearance;
};

typedef void (*ledger_settings_done)(void *arg, const struct ledger_settings_outcome *outcome);

/* Reads a user's settings. Every id names a user here: without stored settings the defaults apply. */
void ledger_settings_get(struct ledger_client *client, struct slice user, ledger_settings_done done,
                         void *arg);

/* The values to set; NULL leaves a value as it is. */
struct ledger_settings_patch {
    const enum ledger_visibility *presence;
    const enum ledger_visibility *last_seen;
    const enum ledger_group_adds *group_adds;
    const bool *hides_reads;
    const struct slice *display_name; /* an empty text removes it */
    const struct slice *avatar_url;
};

void ledger_settings_put(struct ledger_client *client, struct slice user,
                         const struct ledger_settings_patch *patch, ledger_settings_done done,
                         void *arg);

/* The facts about one target that the privacy engine decides on. The relation is symmetric: with viewer and
 * target swapped, are_contacts stays the same and the two blocks change places. */
struct ledger_profile {
    struct slice user;
    struct ledger_settings settings;
    bool are_contacts;
    bool blocked_by_viewer;
    bool blocked_by_target;
    int64_t last_seen_ms;      /* 0: never seen */
    uint64_t presence_version; /* the highest that was stored */
};

struct ledger_profiles_outcome {
    enum ledger_status status;
    const struct ledger_profile *profiles; /* one per target, in the order of the targets */
    size_t count;
};

typedef void (*ledger_profiles_done)(void *arg, const struct ledger_profiles_outcome *outcome);

/* Reads the settings of each target and its relation to `viewer`; contact and blocks of one relation are from one
 * instant. With `viewer` SLICE_NONE there is no relation. More than LEDGER_PROFILES_MAX targets: LIMIT. */
void ledger_profiles(struct ledger_client *client, struct slice viewer, const struct slice *targets,
                     size_t count, ledger_profiles_done done, void *arg);

struct ledger_appearances_outcome {
    enum ledger_status status;
    const struct ledger_appearance *appearances; /* one per user, in the order of the users */
    size_t count;
};

typedef void (*ledger_appearances_done)(void *arg,
                                        const struct ledger_appearances_outcome *outcome);

/* Reads how users appear. More than LEDGER_APPEARANCES_MAX users: LIMIT. */
void ledger_appearances(struct ledger_client *client, const struct slice *users, size_t count,
                        ledger_appearances_done done, void *arg);

struct ledger_graph_outcome {
    enum ledger_status status;
    struct ledger_settings settings;
    /* Each list is sorted by bytes. */
    struct id_list contacts;
    struct id_list blocked;    /* by this user */
    struct id_list blocked_by; /* the first LEDGER_BLOCKS_MAX users who blocked this user */
    struct id_list chats;      /* `chats_max` of them: accepted ones first, then by activity */
};

typedef void (*ledger_graph_done)(void *arg, const struct ledger_graph_outcome *outcome);

/* Reads a user's social graph, from which the user's audience follows, in one operation. Each list is from one instant or,
 * if it is long, from several: a user whose relation changes meanwhile may be in two lists, or in none. */
void ledger_graph(struct ledger_client *client, struct slice user, uint32_t chats_max,
                  ledger_graph_done done, void *arg);

struct ledger_last_seen {
    struct slice user;
    int64_t last_seen_ms; /* 0: leave it as it is */
    uint64_t presence_version;
};

/* Stores a batch, entry by entry. Neither value ever decreases, in whatever order batches arrive, so a batch that failed
 * is repeated as a whole. More than LEDGER_LAST_SEEN_BATCH_MAX entries: LIMIT. Workers use last_seen.h, which
 * coalesces. */
void ledger_last_seen_put(struct ledger_client *client, const struct ledger_last_seen *entries,
                          size_t count, ledger_change_done done, void *arg);

/* ---- contacts -----------------------------------------------------------------------------------
 */

enum ledger_contact_result {
    LEDGER_CONTACT_REQUESTED, /* a new contact request is pending */
    LEDGER_CONTACT_PENDING,   /* it was already pending, under the returned id */
    LEDGER_CONTACT_ACCEPTED,  /* the two are contacts from now on */
    LEDGER_CONTACT_ALREADY,   /* they were contacts before */
    LEDGER_CONTACT_DECLINED,
    LEDGER_CONTACT_WITHDRAWN,
};

struct ledger_contact_request {
    struct slice id;
    struct slice from;
    struct slice to;
    int64_t created_at_ms;
};

struct ledger_contact_outcome {
    enum ledger_status status;
    enum ledger_contact_result result;
    struct ledger_contact_request request; /* ALREADY sets only `from` and `to` */
    /* Whether the other side may be told. The sender must never see this bit: it is the only difference
     * between a contact request to a user who has blocked the sender and one that stays unanswered. */
    bool tell_other_side;
};

typedef void (*ledger_contact_done)(void *arg, const struct ledger_contact_outcome *outcome);

/* `from` sends `to` a contact request; a new one gets the given id. A contact request that crosses one in
 * the other direction accepts that one. When `from` has blocked `to`: FORBIDDEN. A contact request to a
 * user who has blocked the sender is stored and looks pending to the sender, but the other user never sees
 * it; when the sender repeats it after the block was removed, the other user sees it. */
void ledger_contact_request_create(struct ledger_client *client, struct slice id, struct slice from,
                                   struct slice to, ledger_contact_done done, void *arg);

/* The receiver accepts. Accepting again is ALREADY while the contact lasts. */
void ledger_contact_request_accept(struct ledger_client *client, struct slice user, struct slice id,
                                   ledger_contact_done done, void *arg);

/* The receiver declines. */
void ledger_contact_request_decline(struct ledger_client *client, struct slice user,
                                    struct slice id, ledger_contact_done done, void *arg);

/* The sender takes it back. */
void ledger_contact_request_withdraw(struct ledger_client *client, struct slice user,
                                     struct slice id, ledger_contact_done done, void *arg);

enum ledger_direction { LEDGER_INCOMING, LEDGER_OUTGOING };

struct ledger_contact_requests_outcome {
    enum ledger_status status;
    const struct ledger_contact_request *requests; /* sorted by id */
    size_t count;
    bool has_more; /* continue after the last id */
};

typedef void (*ledger_contact_requests_done)(void *arg,
                                             const struct ledger_contact_requests_outcome *outcome);

/* Lists pending contact requests with an id greater than `after` (SLICE_NONE: from the start). */
void ledger_contact_requests_list(struct ledger_client *client, struct slice user,
                                  enum ledger_direction direction, struct slice after,
                                  uint32_t limit, ledger_contact_requests_done done, void *arg);

/* Lists all contacts of a user; LEDGER_CONTACTS_MAX bounds them. */
void ledger_contacts_list(struct ledger_client *client, struct slice user, ledger_ids_done done,
                          void *arg);

/* Ends a contact for both. If they are not contacts, the status is OK and nothing changed. */
void ledger_contact_remove(struct ledger_client *client, struct slice user, struct slice other,
                           ledger_change_done done, void *arg);

struct ledger_block_outcome {
    enum ledger_status status;
    bool changed;         /* false: `user` had blocked `other` before */
    bool contact_removed; /* the other side sees a removal like any other */
};

typedef void (*ledger_block_done)(void *arg, const struct ledger_block_outcome *outcome);

/* `user` blocks `other`. This ends their contact for both, withdraws the user's contact request to `other`
 * and hides the contact request of `other` from the user; to `other` it still looks pending. */
void ledger_block_put(struct ledger_client *client, struct slice user, struct slice other,
                      ledger_block_done done, void *arg);

void ledger_block_delete(struct ledger_client *client, struct slice user, struct slice other,
                         ledger_change_done done, void *arg);

void ledger_blocks_list(struct ledger_client *client, struct slice user, ledger_ids_done done,
                        void *arg);

/* ---- chats --------------------------------------------------------------------------------------
 */

/*
 * A direct chat belongs to exactly two users for ever. Its id begins with LEDGER_CHAT_DIRECT_PREFIX.
 *
 * In a group admins add, remove and appoint; members leave, and add others if `members_can_add`. The creator is its
 * first admin. When the last admin leaves, the member of the longest standing becomes admin.
 *
 * To a user who is no member, a chat that exists and one that does not are the same: NOT_FOUND. FORBIDDEN means a member
 * without the right, a block, or a user who does not want to be added.
 *
 * A user has accepted a chat that the user created, was added to by a contact, or has written in. Chats that others
 * force on a user therefore never displace accepted ones in ledger_graph().
 */
#define LEDGER_CHAT_DIRECT_PREFIX "direct"

/* The application itself as the actor of a change, or as the sender of a message: it needs neither membership nor a right
 * nor anybody's consent. No user has this id, because a user's has no control characters. */
#define LEDGER_APPLICATION SLICE("\x01")

enum ledger_chat_kind { LEDGER_CHAT_GROUP, LEDGER_CHAT_DIRECT };

/* What a chat shows of a member: only of members who have a name, a picture or a read mark. */
struct ledger_chat_profile {
    struct slice user;
    struct ledger_appearance appearance;
    uint64_t read_sequence; /* 0: nothing read, or not shown to the reader */
};

struct ledger_chat {
    struct slice id;
    enum ledger_chat_kind kind;
    struct slice creator;
    int64_t created_at_ms;
    int64_t activity_ms;         /* of the last message, or of the creation; never decreases */
    const struct slice *members; /* sorted by bytes; NULL when they were not requested */
    size_t member_count;         /* of the chat, also when `members` is NULL */
    const struct slice *admins;  /* sorted; requested together with the members */
    size_t admin_count;
    bool members_can_add;
    uint64_t members_version; /* grows with every change of the members, from 1 */
    uint64_t latest_sequence; /* 0: no message yet */
    uint64_t unread;          /* messages of others that the reader has not acknowledged */
    const struct ledger_chat_profile *profiles; /* by user; see the operations */
    size_t profile_count;
};

struct ledger_chat_outcome {
    enum ledger_status status;
    bool created; /* false: the same chat existed */
    struct ledger_chat chat;
};

typedef void (*ledger_chat_done)(void *arg, const struct ledger_chat_outcome *outcome);

/* Creates a group of `creator` and `members`; repetitions, and the creator among the members, count once. If the id is
 * in use, its creator gets that group as it is now, so that a repeated request succeeds whatever happened to the members
 * since, and another member gets it if the members are the same; otherwise, also for a creator who has left, it is
 * CONFLICT. An id that contains ':' or begins with the prefix of direct chats is INVALID, unless that chat is returned.
 * FORBIDDEN when a member does not want to be added by the creator, or when there is a block between
 * the two; LIMIT beyond LEDGER_CHAT_MEMBERS_MAX.
 *
 * A group is created with all its members or not at all, however many they are: before, nobody sees anything of it. A large
 * one may take longer than the time limit allows; the same request, repeated, continues it. A block or a setting that
 * changes while the group is being created may come too late for it. */
void ledger_chat_create(struct ledger_client *client, struct slice chat, struct slice creator,
                        const struct slice *members, size_t count, bool members_can_add,
                        ledger_chat_done done, void *arg);

/* The same by the application, without anybody's consent. */
void ledger_chat_make(struct ledger_client *client, struct slice chat, struct slice creator,
                      const struct slice *members, size_t count, bool members_can_add,
                      ledger_chat_done done, void *arg);

/* Returns the direct chat of the two users, with its profiles; if there is none, creates it with the id `chat`.
 * FORBIDDEN while one blocks the other; INVALID for oneself. */
void ledger_chat_open_direct(struct ledger_client *client, struct slice chat, struct slice user,
                             struct slice other, ledger_chat_done done, void *arg);

/* Reads a chat as `reader`, a member, sees it, with or without the profiles of its members. With `reader` SLICE_NONE
 * membership is not checked: for fan-out. */
void ledger_chat_get(struct ledger_client *client, struct slice chat, struct slice reader,
                     bool with_profiles, ledger_chat_done done, void *arg);

/* Changes who may add members, as an admin. Returns the chat. */
void ledger_chat_change(struct ledger_client *client, struct slice chat, struct slice actor,
                        bool members_can_add, ledger_chat_done done, void *arg);

struct ledger_chats_outcome {
    enum ledger_status status;
    const struct ledger_chat
        *chats; /* by activity, the latest first, then by id, the greatest first */
    size_t count;
    bool has_more; /* continue after the last chat */
};

typedef void (*ledger_chats_done)(void *arg, const struct ledger_chats_outcome *outcome);

/* The last chat of a page. A chat that becomes active afterwards moves before the cursor; no other is skipped or
 * repeated. */
struct ledger_chats_cursor {
    struct slice chat;   /* SLICE_NONE: from the start */
    int64_t activity_ms; /* as returned; LEDGER_ACTIVITY_NOW: as it is now */
};

enum { LEDGER_ACTIVITY_NOW = -1 };

/* Lists a page of the user's chats after `after`, with or without their members; direct chats with their profiles. */
void ledger_chats_list(struct ledger_client *client, struct slice user,
                       const struct ledger_chats_cursor *after, uint32_t limit, bool with_members,
                       ledger_chats_done done, void *arg);

/* OK: the user is a member. Otherwise NOT_FOUND. */
void ledger_chat_member_check(struct ledger_client *client, struct slice chat, struct slice user,
                              ledger_change_done done, void *arg);

/* `actor`, a member or LEDGER_APPLICATION, adds `user` to a group. */
void ledger_chat_member_add(struct ledger_client *client, struct slice chat, struct slice actor,
                            struct slice user, ledger_change_done done, void *arg);

struct ledger_member_outcome {
    enum ledger_status status;
    bool changed;
    struct slice promoted; /* became admin, because the last one left; SLICE_NONE: nobody did */
};

typedef void (*ledger_member_done)(void *arg, const struct ledger_member_outcome *outcome);

/* `actor` leaves a group as `user`, or, an admin, removes `user`. A chat without members keeps its id. */
void ledger_chat_member_remove(struct ledger_client *client, struct slice chat, struct slice actor,
                               struct slice user, ledger_member_done done, void *arg);

/* `actor`, an admin, makes `user` an admin, or one no longer. NOT_FOUND when `user` is no member; FORBIDDEN when no
 * admin would be left. */
void ledger_chat_admin_put(struct ledger_client *client, struct slice chat, struct slice actor,
                           struct slice user, ledger_change_done done, void *arg);
void ledger_chat_admin_delete(struct ledger_client *client, struct slice chat, struct slice actor,
                              struct slice user, ledger_change_done done, void *arg);

/* ---- calls --------------------------------------------------------------------------------------
 */

struct ledger_call {
    struct slice id;
    struct slice caller;
    struct slice callee;
    struct slice reason; /* 1 to LEDGER_REASON_BYTES_MAX bytes */
    int64_t started_at_ms;
    int64_t answered_at_ms; /* 0: never */
    int64_t ended_at_ms;
    uint32_t kept_max; /* for an append: calls kept per user; 0 or more than the bound: the bound */
};

/* Adds an ended call to the history of both users. The same id again changes nothing. Of the unanswered calls from
 * this caller to this callee only the latest LEDGER_CALLS_UNANSWERED_MAX are kept, so that nobody can push the
 * calls of others out of the callee's history. Calls beyond a bound are gone when the append that exceeds it is answered. */
void ledger_call_append(struct ledger_client *client, const struct ledger_call *call,
                        ledger_change_done done, void *arg);

struct ledger_calls_outcome {
    enum ledger_status status;
    const struct ledger_call *calls; /* the latest to end comes first */
    size_t count;
};

typedef void (*ledger_calls_done)(void *arg, const struct ledger_calls_outcome *outcome);

/* Lists the user's last calls, at most `limit`. */
void ledger_calls_list(struct ledger_client *client, struct slice user, uint32_t limit,
                       ledger_calls_done done, void *arg);

#endif

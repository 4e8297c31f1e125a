/*
 * The ledger remembers what must survive: users' settings, contacts, blocks, chats, the history of
 * calls and the messages (ledger_messages.h). It is a port: the planes call the functions below and
 * never learn which backend answers (SQLite embedded, another process, DynamoDB).
 *
 * Promises
 *   - Every call is asynchronous and answers exactly once, through its typed completion, never from
 *     inside the call itself. Also when the queue is full (BUSY), an id is malformed (INVALID), the
 *     disk fails (UNAVAILABLE) or the time limit passes (TIMEOUT).
 *   - LEDGER_OK for a write means that it is on the disk. UNAVAILABLE and TIMEOUT for a write mean
 *     that it may or may not be: every write is idempotent, so the caller asks again.
 *   - A read started after a write was answered sees that write. Two calls in flight at the same
 *     time have no order.
 *   - One call is one transaction: it happens whole or not at all.
 *
 * Threading: a worker has one `struct ledger_client` and calls from its own thread only. The
 * backend works elsewhere and hands finished requests to the client's `post` hook, on a thread of
 * its own (or on the caller's, when it refuses at once); the hook moves them to the worker (a
 * mailbox), which calls ledger_complete() there. So completions always run on the thread that
 * asked.
 *
 * Ownership: arguments are borrowed for the call and copied. What an outcome points to lasts as
 * long as the completion runs. A request belongs to the backend from the call until
 * ledger_complete(), which frees it.
 *
 * Time and chance: creation times are the client's clock at the call; ids of things that are made
 * (requests, chats, messages) are given by the caller. Ids are opaque, 1 to LEDGER_ID_BYTES_MAX
 * bytes.
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
struct ledger_metrics;
struct ledger_request;

enum {
    LEDGER_ID_BYTES_MAX = 128,
    LEDGER_QUEUE_MAX = 16384,    /* requests waiting in a backend; more is BUSY */
    LEDGER_REFUSALS_MAX = 256,   /* calls without memory for a request that wait for an answer */
    LEDGER_TIME_LIMIT_MS = 5000, /* from a gateway's call to its answer */
    LEDGER_PAGE_MAX = 1000,      /* rows of one page; a larger limit is cut, 0 means this */
    LEDGER_PROFILES_MAX = 10000, /* targets of one ledger_profiles() */
    LEDGER_CONTACTS_MAX = 10000, /* of one user */
    LEDGER_BLOCKS_MAX = 10000,   /* by one user */
    LEDGER_REQUESTS_OUTGOING_MAX = 1000, /* pending, of one user */
    LEDGER_CHAT_MEMBERS_MAX = 10000,
    LEDGER_CHATS_PAGE_MEMBERS_MAX = 20000, /* members listed in one page of chats; then has_more */
    LEDGER_CALLS_KEPT_MAX = 1000,          /* per user; older history is dropped */
    LEDGER_LAST_SEEN_BATCH_MAX = 1024,
    LEDGER_REASON_BYTES_MAX = 32, /* why a call ended */
};

enum ledger_status {
    LEDGER_OK,
    LEDGER_INVALID, /* an id of 0 or more than LEDGER_ID_BYTES_MAX bytes, oneself as a contact, ...
                     */
    LEDGER_NOT_FOUND,   /* or hidden from the one who asks: the two are never told apart */
    LEDGER_CONFLICT,    /* the id is taken by something else */
    LEDGER_FORBIDDEN,   /* not a member, or a block stands between the two */
    LEDGER_LIMIT,       /* one of the bounds above */
    LEDGER_HALTED,      /* the chat's counter is missing or behind its messages */
    LEDGER_BUSY,        /* too many requests wait; nothing was done */
    LEDGER_TIMEOUT,     /* no answer within the time limit; a write may yet happen */
    LEDGER_UNAVAILABLE, /* the store fails (the backend logs why); a write may have happened */
    LEDGER_STATUS_COUNT,
};

const char *ledger_status_name(enum ledger_status status);

/* ---- clients ------------------------------------------------------------------------------------
 */

/* An answer that is owed for a call there was no memory to make a request of. */
struct ledger_refusal {
    int operation;
    void (*done)(void);
    void *arg;
};

/* Takes a chain of finished requests and brings it to the client's worker, which passes it to
 * ledger_complete(). Any thread may call it; it must not block. */
typedef void (*ledger_post_hook)(void *arg, struct ledger_request *chain);

/* One worker's access. The fields below the line are the port's own. */
struct ledger_client {
    struct ledger *ledger;
    const struct clock *clock; /* the worker's; borrowed for the client's life */
    ledger_post_hook post;
    void *post_arg;
    int64_t time_limit_ms;
    /* ---- */
    struct list unanswered; /* in the order of their deadlines */
    size_t outstanding;     /* not yet back from the backend, answered or not */
    struct ledger_refusal refusals[LEDGER_REFUSALS_MAX]; /* owed (refusal.h) */
    size_t refusal_count;
};

/* A client with the default time limit. It may end when `outstanding` is 0, which it is after
 * ledger_close() and the completion of all that was posted by then. */
void ledger_client_init(struct ledger_client *client, struct ledger *ledger,
                        const struct clock *clock, ledger_post_hook post, void *post_arg);

/* When ledger_client_expire() has something to do (monotonic): the oldest unanswered request runs out
 * of time, or at once for what was refused; INT64_MAX when nothing is owed. */
int64_t ledger_client_deadline_ms(const struct ledger_client *client);

/* Answers what is overdue with LEDGER_TIMEOUT, and with LEDGER_BUSY the calls memory was too short for.
 * What the backend says later is dropped. */
void ledger_client_expire(struct ledger_client *client);

/* How long further writes are known to be in vain (a breaker is open); 0: they are not. */
int64_t ledger_retry_after_ms(const struct ledger_client *client);

/* Runs the completions of a posted chain on the worker's thread, then frees it. */
void ledger_complete(struct ledger_request *done);

/* Ends a ledger: requests already accepted are carried out and posted before this returns, so the
 * mailboxes must still stand. No call may be made during or after it. */
void ledger_close(struct ledger **ledger);

const struct ledger_metrics *ledger_metrics(const struct ledger *ledger);

/* ---- outcomes shared by several calls -----------------------------------------------------------
 */

struct ledger_change_outcome {
    enum ledger_status status;
    bool changed; /* false: it was so already */
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

struct ledger_settings {
    enum ledger_visibility presence;
    enum ledger_visibility last_seen;
};

struct ledger_settings_outcome {
    enum ledger_status status;
    struct ledger_settings settings; /* as they stand after the call */
    struct ledger_settings previous; /* as they stood before it */
};

typedef void (*ledger_settings_done)(void *arg, const struct ledger_settings_outcome *outcome);

/* A user who never set anything has the defaults; there are no unknown users here. */
void ledger_settings_get(struct ledger_client *client, struct slice user, ledger_settings_done done,
                         void *arg);

/* Sets what is not NULL, leaves the rest as it is. */
void ledger_settings_put(struct ledger_client *client, struct slice user,
                         const enum ledger_visibility *presence,
                         const enum ledger_visibility *last_seen, ledger_settings_done done,
                         void *arg);

/* What the privacy engine must know of one target. Relations are mirror images: asked with the
 * roles exchanged, are_contacts stays and the two blocks change places. */
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
    const struct ledger_profile *profiles; /* one per target, in the order asked */
    size_t count;
};

typedef void (*ledger_profiles_done)(void *arg, const struct ledger_profiles_outcome *outcome);

/* Settings of each target and its relation to `viewer`, from one snapshot. `viewer` may be
 * SLICE_NONE: no relation then. More than LEDGER_PROFILES_MAX targets: LIMIT. */
void ledger_profiles(struct ledger_client *client, struct slice viewer, const struct slice *targets,
                     size_t count, ledger_profiles_done done, void *arg);

struct ledger_graph_outcome {
    enum ledger_status status;
    struct ledger_settings settings;
    /* Each list is sorted by bytes. */
    struct id_list contacts;
    struct id_list blocked; /* by this user */
    struct id_list chats;   /* the first `chats_max` */
};

typedef void (*ledger_graph_done)(void *arg, const struct ledger_graph_outcome *outcome);

/* All that decides who hears of a user, from one snapshot and in one journey. */
void ledger_graph(struct ledger_client *client, struct slice user, uint32_t chats_max,
                  ledger_graph_done done, void *arg);

struct ledger_last_seen {
    struct slice user;
    int64_t last_seen_ms; /* 0: leave as it is */
    uint64_t presence_version;
};

/* Stores a batch; neither value ever goes back, whatever the order batches arrive in. At most
 * LEDGER_LAST_SEEN_BATCH_MAX entries, else LIMIT. Workers go through last_seen.h, which coalesces.
 */
void ledger_last_seen_put(struct ledger_client *client, const struct ledger_last_seen *entries,
                          size_t count, ledger_change_done done, void *arg);

/* ---- contacts -----------------------------------------------------------------------------------
 */

enum ledger_contact_result {
    LEDGER_CONTACT_REQUESTED, /* a new request waits for the other side */
    LEDGER_CONTACT_PENDING,   /* it waited already, under the id that is returned */
    LEDGER_CONTACT_ACCEPTED,  /* the two are contacts as of now */
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
    struct ledger_contact_request request; /* of ALREADY only from and to are set */
    /* Whether the other side may be told. The one who asked must never see this bit: it is the only
     * difference between a request to someone who has blocked them and one that stays unanswered.
     */
    bool tell_other_side;
};

typedef void (*ledger_contact_done)(void *arg, const struct ledger_contact_outcome *outcome);

/* `from` asks `to`, under `id` if the request is new. A request that crosses one in the other
 * direction accepts it. Asking someone whom one has blocked: FORBIDDEN. Asking someone who has
 * blocked the asker: a request that is stored and looks pending to the asker, but is never shown to
 * the other; asking again after the block was lifted brings it to light. */
void ledger_contact_request_create(struct ledger_client *client, struct slice id, struct slice from,
                                   struct slice to, ledger_contact_done done, void *arg);

/* The one who was asked accepts. Accepting again is ALREADY while the contact lasts. */
void ledger_contact_request_accept(struct ledger_client *client, struct slice user, struct slice id,
                                   ledger_contact_done done, void *arg);

/* The one who was asked declines. */
void ledger_contact_request_decline(struct ledger_client *client, struct slice user,
                                    struct slice id, ledger_contact_done done, void *arg);

/* The one who asked takes it back. */
void ledger_contact_request_withdraw(struct ledger_client *client, struct slice user,
                                     struct slice id, ledger_contact_done done, void *arg);

enum ledger_direction { LEDGER_INCOMING, LEDGER_OUTGOING };

struct ledger_contact_requests_outcome {
    enum ledger_status status;
    const struct ledger_contact_request *requests; /* sorted by id */
    size_t count;
    bool has_more; /* go on after the last id */
};

typedef void (*ledger_contact_requests_done)(void *arg,
                                             const struct ledger_contact_requests_outcome *outcome);

/* Pending requests with an id greater than `after` (SLICE_NONE: from the start). */
void ledger_contact_requests_list(struct ledger_client *client, struct slice user,
                                  enum ledger_direction direction, struct slice after,
                                  uint32_t limit, ledger_contact_requests_done done, void *arg);

/* All of a user's contacts; LEDGER_CONTACTS_MAX bounds them. */
void ledger_contacts_list(struct ledger_client *client, struct slice user, ledger_ids_done done,
                          void *arg);

/* Ends a contact for both. Not contacts: OK, nothing changed. */
void ledger_contact_remove(struct ledger_client *client, struct slice user, struct slice peer,
                           ledger_change_done done, void *arg);

struct ledger_block_outcome {
    enum ledger_status status;
    bool changed;         /* false: was blocked already */
    bool contact_removed; /* the other side sees a removal, as any other */
};

typedef void (*ledger_block_done)(void *arg, const struct ledger_block_outcome *outcome);

/* `user` blocks `peer`: ends the contact for both, withdraws the own request to `peer`, and hides
 * the peer's request to the user, which goes on looking pending to the peer. */
void ledger_block_put(struct ledger_client *client, struct slice user, struct slice peer,
                      ledger_block_done done, void *arg);

void ledger_block_delete(struct ledger_client *client, struct slice user, struct slice peer,
                         ledger_change_done done, void *arg);

void ledger_blocks_list(struct ledger_client *client, struct slice user, ledger_ids_done done,
                        void *arg);

/* ---- chats --------------------------------------------------------------------------------------
 */

/* Chats have no roles: every member may add and remove members. */
struct ledger_chat {
    struct slice id;
    struct slice creator;
    int64_t created_at_ms;
    const struct slice *members; /* sorted by bytes; NULL where they were not asked for */
    size_t member_count;         /* of the chat, also where `members` is NULL */
    uint64_t members_version;    /* grows with every change of the members, from 1 */
    uint64_t latest_sequence;    /* 0: no message yet */
    uint64_t unread;             /* of the one who asks */
};

struct ledger_chat_outcome {
    enum ledger_status status;
    bool created; /* false: it existed, just so */
    struct ledger_chat chat;
};

typedef void (*ledger_chat_done)(void *arg, const struct ledger_chat_outcome *outcome);

/* Makes a chat of `creator` and `members` (repetitions and the creator among them count once). An
 * id in use is CONFLICT, unless the creator is a member and the members are the same: then that
 * chat is returned. FORBIDDEN when the creator and one of the members have blocked one another;
 * LIMIT over LEDGER_CHAT_MEMBERS_MAX. */
void ledger_chat_create(struct ledger_client *client, struct slice chat, struct slice creator,
                        const struct slice *members, size_t count, ledger_chat_done done,
                        void *arg);

/* The chat as a member sees it. With `viewer` SLICE_NONE no membership is asked for (fan-out). */
void ledger_chat_get(struct ledger_client *client, struct slice chat, struct slice viewer,
                     ledger_chat_done done, void *arg);

struct ledger_chats_outcome {
    enum ledger_status status;
    const struct ledger_chat *chats; /* sorted by id */
    size_t count;
    bool has_more; /* go on after the last id */
};

typedef void (*ledger_chats_done)(void *arg, const struct ledger_chats_outcome *outcome);

/* A page of the user's chats with an id greater than `after`, with or without their members. */
void ledger_chats_list(struct ledger_client *client, struct slice user, struct slice after,
                       uint32_t limit, bool with_members, ledger_chats_done done, void *arg);

/* OK: a member. FORBIDDEN: not one. NOT_FOUND: no such chat. */
void ledger_chat_member_check(struct ledger_client *client, struct slice chat, struct slice user,
                              ledger_change_done done, void *arg);

/* `actor`, a member, adds `user`. A block between the two: FORBIDDEN. */
void ledger_chat_member_add(struct ledger_client *client, struct slice chat, struct slice actor,
                            struct slice user, ledger_change_done done, void *arg);

/* `actor`, a member, removes `user`, which may be the actor. A chat without members keeps its id.
 */
void ledger_chat_member_remove(struct ledger_client *client, struct slice chat, struct slice actor,
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
    uint32_t kept_max; /* of an append: calls kept of each; 0: LEDGER_CALLS_KEPT_MAX, the most */
};

/* Enters an ended call into the history of both. The same id again changes nothing. */
void ledger_call_append(struct ledger_client *client, const struct ledger_call *call,
                        ledger_change_done done, void *arg);

struct ledger_calls_outcome {
    enum ledger_status status;
    const struct ledger_call *calls; /* the latest to end comes first */
    size_t count;
};

typedef void (*ledger_calls_done)(void *arg, const struct ledger_calls_outcome *outcome);

/* The user's last calls, at most `limit`. */
void ledger_calls_list(struct ledger_client *client, struct slice user, uint32_t limit,
                       ledger_calls_done done, void *arg);

#endif

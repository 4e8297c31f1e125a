/*
 * The inner side of the ledger port, for backends and decorators.
 *
 * Each operation becomes a request: one heap object with the operation, its input, its outcome and its
 * typed completion. A backend implements `submit` and `close`. It
 *   - takes requests with `submit`, on any thread and without blocking;
 *   - executes them on threads of its own, in any order, each as one transaction, or in slices of which others see
 *     nothing before the last;
 *   - may skip a request that is `abandoned` and not started, with LEDGER_TIMEOUT;
 *   - fills in `outcome`, or calls ledger_request_fail(), and gives every request back exactly once with
 *     ledger_request_finish(), whatever happens;
 *   - refuses more than LEDGER_QUEUE_MAX requests with LEDGER_BUSY;
 *   - keeps its counters in `ledger.metrics`, and stamps `submitted_us` if it measures time.
 * A decorator implements the same table around another ledger. Everything else of the port is common to
 * all backends: no backend sees a client, a completion or a time limit. The inputs are already checked
 * against the bounds of ledger.h.
 *
 * Memory: an input and an outcome point to memory of the request (ledger_request_alloc), which lives as
 * long as the request. Running out of memory is sticky (`exhausted`), so that a backend checks once, at
 * the end.
 *
 * Threading: a request has one owner at a time: the calling worker until `submit`, the backend until
 * ledger_request_finish(), then the worker again. There are two exceptions. `unanswered` always belongs to
 * the worker. The worker sets `abandoned` when its client has stopped waiting, and the backend reads it.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_REQUEST_H
#define ROLLCALL_LEDGER_LEDGER_REQUEST_H

#include "ledger/ledger_events.h"
#include "ledger/ledger_keys.h"
#include "ledger/ledger_messages.h"
#include "ledger/ledger_metrics.h"
#include "ledger/ledger_relations.h"
#include "ledger/ledger_revocations.h"
#include "net/mailbox.h"

#include <stdatomic.h>

struct ledger_backend {
    /* Takes the request and gives it back through ledger_request_finish(). Any thread; never blocks. */
    void (*submit)(struct ledger *ledger, struct ledger_request *request);
    /* Finishes the requests that it took, then frees the ledger. */
    void (*close)(struct ledger *ledger);
    /* May be NULL. Receives the status of each submitted request once, when it is finished or when its time
     * limit passes, whichever comes first. Any thread. */
    void (*observe)(struct ledger *ledger, const struct ledger_request *request,
                    enum ledger_status status);
    /* May be NULL. Returns for how long writes are known to fail; 0: not known. Any thread. */
    int64_t (*retry_after_ms)(struct ledger *ledger);
};

/* A backend embeds this as its first field. */
struct ledger {
    const struct ledger_backend *backend;
    struct ledger *inner; /* a decorator wraps and owns it; NULL in a backend */
    struct ledger_metrics metrics;
};

/* Returns the backend behind all decorators, which keeps the metrics. */
static inline struct ledger *ledger_innermost(struct ledger *ledger)
{
    while (ledger->inner)
        ledger = ledger->inner;
    return ledger;
}

/* One line per operation of the port, in the order of the headers: its name, whether it writes, and its
 * field of the completion and outcome unions. */
#define LEDGER_OPERATIONS(X)                                                                       \
    X(SETTINGS_GET, false, settings)                                                               \
    X(SETTINGS_PUT, true, settings)                                                                \
    X(PROFILES, false, profiles)                                                                   \
    X(APPEARANCES, false, appearances)                                                             \
    X(GRAPH, false, graph)                                                                         \
    X(LAST_SEEN_PUT, true, change)                                                                 \
    X(CONTACT_REQUEST_CREATE, true, contact)                                                       \
    X(CONTACT_REQUEST_ACCEPT, true, contact)                                                       \
    X(CONTACT_REQUEST_DECLINE, true, contact)                                                      \
    X(CONTACT_REQUEST_WITHDRAW, true, contact)                                                     \
    X(CONTACT_REQUESTS_LIST, false, contact_requests)                                              \
    X(CONTACTS_LIST, false, ids)                                                                   \
    X(CONTACT_REMOVE, true, change)                                                                \
    X(BLOCK_PUT, true, block)                                                                      \
    X(BLOCK_DELETE, true, change)                                                                  \
    X(BLOCKS_LIST, false, ids)                                                                     \
    X(RELATIONS_CHANGE, true, relations)                                                           \
    X(CHAT_CREATE, true, chat)                                                                     \
    X(CHAT_OPEN_DIRECT, true, chat)                                                                \
    X(CHAT_GET, false, chat)                                                                       \
    X(CHAT_CHANGE, true, chat)                                                                     \
    X(CHATS_LIST, false, chats)                                                                    \
    X(CHAT_MEMBER_CHECK, false, change)                                                            \
    X(CHAT_MEMBER_ADD, true, change)                                                               \
    X(CHAT_MEMBER_REMOVE, true, member)                                                            \
    X(CHAT_ADMIN_PUT, true, change)                                                                \
    X(CHAT_ADMIN_DELETE, true, change)                                                             \
    X(CALL_APPEND, true, change)                                                                   \
    X(CALLS_LIST, false, calls)                                                                    \
    X(MESSAGE_APPEND, true, append)                                                                \
    X(MESSAGES_AFTER, false, messages)                                                             \
    X(MESSAGES_BEFORE, false, messages)                                                            \
    X(MESSAGES_ERASE, true, change)                                                                \
    X(USER_FORGET, true, change)                                                                   \
    X(CURSOR_PUT, true, cursor)                                                                    \
    X(OUTBOX_LIST, false, messages)                                                                \
    X(OUTBOX_REMOVE, true, change)                                                                 \
    X(DEAD_LETTER_PUT, true, change)                                                               \
    X(DEAD_LETTERS_LIST, false, dead_letters)                                                      \
    X(DEAD_LETTER_REPLAY, true, change)                                                            \
    X(CHAT_REPAIR, true, repair)                                                                   \
    X(REVOKE, true, revoke)                                                                        \
    X(REVOCATIONS_LIST, false, revocations)                                                        \
    X(CALL_EVENT, true, change)                                                                    \
    X(EVENTS_LIST, false, events)                                                                  \
    X(EVENTS_REMOVE, true, change)                                                                 \
    X(EVENTS_BURY, true, change)                                                                   \
    X(DEAD_EVENTS_LIST, false, events)                                                             \
    X(DEAD_EVENTS_REPLAY, true, change)                                                            \
    X(EVENT_QUEUE_GET, false, event_queue)                                                         \
    X(EVENT_LEASE, true, event_queue)                                                              \
    X(KEY_PUT, true, change)                                                                       \
    X(KEY_DELETE, true, change)                                                                    \
    X(KEY_USED, true, change)                                                                      \
    X(KEYS_LIST, false, keys)                                                                      \
    X(MESSAGE_DELETE, true, change)                                                                \
    X(FORMER_CHATS_LIST, false, ids)

#define LEDGER_OPERATION_NAME(name, writes, outcome) LEDGER_##name,
enum ledger_operation { LEDGER_OPERATIONS(LEDGER_OPERATION_NAME) LEDGER_OPERATION_COUNT };
#undef LEDGER_OPERATION_NAME

/* An operation uses the fields for which its function has parameters; the others are zero. It is one flat
 * struct, so that a backend that sends requests elsewhere needs only one encoding. */
struct ledger_request_input {
    struct slice
        user; /* who makes the request: also viewer, reader, sender, creator, actor, from */
    struct slice other; /* also to, the chat member to add or remove, and the scope of a key */
    struct slice chat;
    struct slice
        id; /* of a contact request or a message; also the name of an event queue or of a key */
    struct slice after; /* the page starts after this id */
    int64_t after_activity_ms;
    struct slice client_message_id;
    struct slice device;     /* also the holder of an event queue, or a key's hash */
    struct slice text;       /* a body, a reason, or the data of an event */
    const struct slice *ids; /* targets, chat members, pairs, or positions of events */
    size_t id_count;
    const struct ledger_last_seen *seen;
    size_t seen_count;
    const struct ledger_call *call;
    const struct ledger_position *positions;
    size_t position_count;
    enum ledger_relation_change relation;
    struct ledger_settings settings;
    struct ledger_appearance appearance;
    uint64_t sequence; /* also the position after which a page starts */
    uint32_t limit;    /* 1 to LEDGER_PAGE_MAX */
    bool set_presence;
    bool set_last_seen;
    bool set_group_adds;
    bool set_hides_reads;
    bool set_display_name;
    bool set_avatar_url;
    bool incoming;
    bool with_members;
    bool with_profiles;
    bool members_can_add;
    bool apply;
    bool skips_outbox;
    bool without_consent;
    unsigned event_type; /* enum ledger_event_type */
    const struct ledger_event_queue
        *queues; /* where the act is an event; the client's, or copies */
    size_t queue_count;
};

union ledger_request_outcome {
    struct {
        enum ledger_status status; /* the first field of every outcome */
    } any;
    struct ledger_change_outcome change;
    struct ledger_ids_outcome ids;
    struct ledger_settings_outcome settings;
    struct ledger_profiles_outcome profiles;
    struct ledger_appearances_outcome appearances;
    struct ledger_graph_outcome graph;
    struct ledger_contact_outcome contact;
    struct ledger_contact_requests_outcome contact_requests;
    struct ledger_block_outcome block;
    struct ledger_relations_outcome relations;
    struct ledger_chat_outcome chat;
    struct ledger_chats_outcome chats;
    struct ledger_member_outcome member;
    struct ledger_cursor_outcome cursor;
    struct ledger_calls_outcome calls;
    struct ledger_append_outcome append;
    struct ledger_messages_outcome messages;
    struct ledger_dead_letters_outcome dead_letters;
    struct ledger_repair_outcome repair;
    struct ledger_revoke_outcome revoke;
    struct ledger_revocations_outcome revocations;
    struct ledger_keys_outcome keys;
    struct ledger_events_outcome events;
    struct ledger_event_queue_outcome event_queue;
};

union ledger_request_completion {
    void (*any)(void); /* how a refusal keeps it */
    ledger_change_done change;
    ledger_ids_done ids;
    ledger_settings_done settings;
    ledger_profiles_done profiles;
    ledger_appearances_done appearances;
    ledger_graph_done graph;
    ledger_contact_done contact;
    ledger_contact_requests_done contact_requests;
    ledger_block_done block;
    ledger_relations_done relations;
    ledger_chat_done chat;
    ledger_chats_done chats;
    ledger_member_done member;
    ledger_cursor_done cursor;
    ledger_calls_done calls;
    ledger_append_done append;
    ledger_messages_done messages;
    ledger_dead_letters_done dead_letters;
    ledger_repair_done repair;
    ledger_revoke_done revoke;
    ledger_revocations_done revocations;
    ledger_keys_done keys;
    ledger_events_done events;
    ledger_event_queue_done event_queue;
};

struct ledger_request_chunk;

struct ledger_request {
    struct ledger_request *next; /* in the owner's queue, then in the posted chain */
    struct mail mail;            /* in an inbox, for the chain it is the first of */
    struct list unanswered;      /* in the client's list until it is answered */
    struct ledger_client *client;
    enum ledger_operation operation;
    enum ledger_status refused; /* not OK: the answer; the request never reaches the backend */
    bool exhausted;
    bool stands_in; /* there was no memory: see ledger_request_make() */
    _Atomic bool abandoned;
    _Atomic bool observed; /* see ledger_backend.observe */
    bool unfinished;       /* the backend's: executed, but a part of it remains to be done */
    bool sequence_taken;   /* the backend's: halted because a message has the next sequence */
    uint32_t ids_done;     /* the backend's: how many of `input.ids` earlier slices have stored */
    uint32_t members_done; /* the backend's: how many members that made */
    int64_t draft;         /* the backend's: names what earlier slices have stored; 0: nothing */
    uint32_t ticket;       /* the breaker's, from its submit to its observe */
    uint64_t
        writes_before; /* the breaker's: how many writes had taken effect when it was submitted */
    int64_t wall_ms;   /* the caller's wall clock */
    int64_t deadline_ms;
    uint64_t submitted_us; /* set by the backend, for its metrics */
    struct ledger_request_input input;
    union ledger_request_outcome outcome;
    union ledger_request_completion done;
    void *arg;
    struct ledger_request_chunk *chunks;
};

/* ---- making a request, for the port's own functions ---- */

/* Makes a request of the client. When out of memory it returns a stand-in of this thread, which the caller
 * fills in and submits like any other request, before it makes the next one; the client then owes a
 * refusal (BUSY; refusal.h). */
struct ledger_request *ledger_request_make(struct ledger_client *client,
                                           enum ledger_operation operation, void *arg);

/* Copies an id; refuses the request as INVALID when the length is out of bounds. */
struct slice ledger_request_id(struct ledger_request *request, struct slice id);

/* Does the same, but allows SLICE_NONE. */
struct slice ledger_request_optional_id(struct ledger_request *request, struct slice id);

/* Copies several ids; refuses the request as LIMIT when there are more than `count_max`. */
const struct slice *ledger_request_ids(struct ledger_request *request, const struct slice *ids,
                                       size_t count, size_t count_max);

/* Returns a limit between 1 and LEDGER_PAGE_MAX. */
uint32_t ledger_request_limit(uint32_t limit);

/* Makes `status` the answer, unless the request was refused before. */
void ledger_request_refuse(struct ledger_request *request, enum ledger_status status);

/* Starts the time limit and gives the request to the backend, or back to the client if it is refused. */
void ledger_request_submit(struct ledger_request *request);

/* ---- executing a request, for backends ---- */

/* Allocates memory that lives as long as the request. Returns NULL, and sets `exhausted`, when out of
 * memory. */
void *ledger_request_alloc(struct ledger_request *request, size_t bytes);

/* Copies bytes into the request's memory. Returns SLICE_NONE when out of memory. */
struct slice ledger_request_copy(struct ledger_request *request, struct slice s);

/* An array that grows by one item at a time in the request's memory. */
struct ledger_request_array {
    void *items;
    size_t count;
    size_t capacity;
};

/* Appends a zeroed item of `item_bytes`. Returns NULL when out of memory. */
void *ledger_request_array_push(struct ledger_request *request, struct ledger_request_array *array,
                                size_t item_bytes);

/* Replaces what a change of settings sets in its outcome, which holds the settings as they were. */
void ledger_request_patch_settings(struct ledger_request *request);

/* Returns the user on whose behalf the request is made; SLICE_NONE: the server's own. */
struct slice ledger_request_user(const struct ledger_request *request);

/* Returns what the request still costs, in rows: 1 and one more for each id that is not done. The server's own
 * requests, which it makes one at a time, cost 1. */
uint64_t ledger_request_cost(const struct ledger_request *request);

/* Returns whether no group may be created with this id: ids of direct chats are the server's to make. */
bool ledger_request_chat_is_reserved(struct slice chat);

bool ledger_request_writes(const struct ledger_request *request);
const char *ledger_request_operation_name(enum ledger_operation operation);

/* Clears the outcome and sets its status. */
void ledger_request_fail(struct ledger_request *request, enum ledger_status status);

/* Reports an answer to the client's ledger (`observe`), unless one was reported for this request. */
void ledger_request_observe(struct ledger_request *request, enum ledger_status status);

/* Gives a chain (linked by `next`, of any clients) back to the clients, which own the requests from then
 * on. */
void ledger_request_finish(struct ledger_request *chain);

/* ---- completing a request, for the client ---- */

/* Runs a completion with only a status, when the request itself cannot be used to answer. */
void ledger_request_answer_status(enum ledger_operation operation,
                                  union ledger_request_completion done, void *arg,
                                  enum ledger_status status);

/* Detaches a finished request from its client without running the completion, for a caller that acts on
 * behalf of another process and needs the whole outcome. The caller frees it. */
void ledger_request_detach(struct ledger_request *request);

/* Runs the typed completion. */
void ledger_request_answer(struct ledger_request *request);
void ledger_request_free(struct ledger_request *request);

#endif

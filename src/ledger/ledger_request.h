/*
 * The inner side of the ledger port, for backends and decorators.
 *
 * A call becomes a request: one heap object with an operation, its input, its outcome and the typed
 * completion. A backend is a table of two functions: it takes requests with `submit` from any
 * thread, works on them wherever it likes, fills in `outcome` and gives them back with
 * ledger_request_finish(). A decorator implements the same table around another ledger. Nothing else of
 * the port differs between backends, so none of them sees a client, a completion or a time limit.
 *
 * Memory: what input and outcome point to is allocated from the request (request_alloc) and goes
 * with it. Running out of memory is sticky (`exhausted`), so that a backend checks once, at the
 * end.
 *
 * Threading: a request has one owner at a time: the calling worker until submit, the backend until
 * ledger_request_finish(), the worker again afterwards. Only `unanswered` is the worker's throughout, and
 * `abandoned` is set by the worker while the backend reads it: nobody waits for this request any
 * more, and a backend that has not begun may skip it.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_REQUEST_H
#define ROLLCALL_LEDGER_LEDGER_REQUEST_H

#include "ledger/ledger_messages.h"
#include "ledger/ledger_metrics.h"
#include "net/mailbox.h"

#include <stdatomic.h>

struct ledger_backend {
    /* Takes the request; it comes back through ledger_request_finish(), whatever happens. Never blocks. */
    void (*submit)(struct ledger *ledger, struct ledger_request *request);
    /* Finishes what was taken, then frees the ledger. */
    void (*close)(struct ledger *ledger);
    /* May be NULL. For a decorator that judges the store by its answers: sees each request that was
     * submitted once, when it is finished or when its time is up, whichever comes first. Any thread.
     */
    void (*observe)(struct ledger *ledger, const struct ledger_request *request,
                    enum ledger_status status);
    /* May be NULL. How long asking is known to be in vain; 0: ask. Any thread. */
    int64_t (*retry_after_ms)(struct ledger *ledger);
};

/* A backend embeds this as its first member. */
struct ledger {
    const struct ledger_backend *backend;
    struct ledger *inner; /* of a decorator: what it wraps and owns; else NULL */
    struct ledger_metrics metrics;
};

/* The backend behind all decorators, which keeps the metrics. */
static inline struct ledger *ledger_innermost(struct ledger *ledger)
{
    while (ledger->inner)
        ledger = ledger->inner;
    return ledger;
}

/* One line per call of the port, in the order of the headers: operation, whether it writes, the
 * member of the completion and outcome unions that answers it. */
#define LEDGER_OPERATIONS(X)                                                                       \
    X(SETTINGS_GET, false, settings)                                                               \
    X(SETTINGS_PUT, true, settings)                                                                \
    X(PROFILES, false, profiles)                                                                   \
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
    X(CHAT_CREATE, true, chat)                                                                     \
    X(CHAT_GET, false, chat)                                                                       \
    X(CHATS_LIST, false, chats)                                                                    \
    X(CHAT_MEMBER_CHECK, false, change)                                                            \
    X(CHAT_MEMBER_ADD, true, change)                                                               \
    X(CHAT_MEMBER_REMOVE, true, change)                                                            \
    X(CALL_APPEND, true, change)                                                                   \
    X(CALLS_LIST, false, calls)                                                                    \
    X(MESSAGE_APPEND, true, append)                                                                \
    X(MESSAGES_AFTER, false, messages)                                                             \
    X(MESSAGES_BEFORE, false, messages)                                                            \
    X(CURSOR_PUT, true, change)                                                                    \
    X(OUTBOX_LIST, false, messages)                                                                \
    X(OUTBOX_REMOVE, true, change)                                                                 \
    X(DEAD_LETTER_PUT, true, change)                                                               \
    X(DEAD_LETTERS_LIST, false, dead_letters)                                                      \
    X(DEAD_LETTER_REPLAY, true, change)                                                            \
    X(CHAT_REPAIR, true, repair)

#define LEDGER_OPERATION_NAME(name, writes, outcome) LEDGER_##name,
enum ledger_operation { LEDGER_OPERATIONS(LEDGER_OPERATION_NAME) LEDGER_OPERATION_COUNT };
#undef LEDGER_OPERATION_NAME

/* Each operation uses the fields its function in the header has parameters for; the others are
 * zero. One flat struct, so that a backend that sends requests elsewhere has one encoding to write.
 */
struct ledger_request_input {
    struct slice user; /* who asks: also viewer, sender, creator, actor, from */
    struct slice peer; /* the other one: also to, the member added or removed */
    struct slice chat;
    struct slice id;    /* of a contact request or a message */
    struct slice after; /* the page starts behind this */
    struct slice client_message_id;
    struct slice device;
    struct slice text;       /* a body or a reason */
    const struct slice *ids; /* targets, members */
    size_t id_count;
    const struct ledger_last_seen *seen;
    size_t seen_count;
    const struct ledger_call *call;
    const struct ledger_position *positions;
    size_t position_count;
    struct ledger_settings settings;
    uint64_t sequence;
    uint32_t limit; /* 1 to LEDGER_PAGE_MAX */
    bool set_presence;
    bool set_last_seen;
    bool incoming;
    bool with_members;
    bool apply;
};

union ledger_request_outcome {
    struct {
        enum ledger_status status; /* every outcome begins with it */
    } any;
    struct ledger_change_outcome change;
    struct ledger_ids_outcome ids;
    struct ledger_settings_outcome settings;
    struct ledger_profiles_outcome profiles;
    struct ledger_graph_outcome graph;
    struct ledger_contact_outcome contact;
    struct ledger_contact_requests_outcome contact_requests;
    struct ledger_block_outcome block;
    struct ledger_chat_outcome chat;
    struct ledger_chats_outcome chats;
    struct ledger_calls_outcome calls;
    struct ledger_append_outcome append;
    struct ledger_messages_outcome messages;
    struct ledger_dead_letters_outcome dead_letters;
    struct ledger_repair_outcome repair;
};

union ledger_request_completion {
    void (*any)(void); /* as a refusal keeps it */
    ledger_change_done change;
    ledger_ids_done ids;
    ledger_settings_done settings;
    ledger_profiles_done profiles;
    ledger_graph_done graph;
    ledger_contact_done contact;
    ledger_contact_requests_done contact_requests;
    ledger_block_done block;
    ledger_chat_done chat;
    ledger_chats_done chats;
    ledger_calls_done calls;
    ledger_append_done append;
    ledger_messages_done messages;
    ledger_dead_letters_done dead_letters;
    ledger_repair_done repair;
};

struct ledger_request_chunk;

struct ledger_request {
    struct ledger_request *next; /* in the owner's queue; then the posted chain */
    struct mail mail;            /* in an inbox, for the chain it is the first of */
    struct list unanswered;      /* in the client's list until it was answered */
    struct ledger_client *client;
    enum ledger_operation operation;
    enum ledger_status refused; /* not OK: never reaches the backend, this is the answer */
    bool exhausted;
    bool stands_in; /* for one that could not be had: see ledger_request_make() */
    _Atomic bool abandoned;
    _Atomic bool observed; /* see ledger_backend.observe */
    uint32_t ticket;       /* a decorator's, from its submit to its observe */
    int64_t wall_ms;       /* the caller's time of day */
    int64_t deadline_ms;
    uint64_t submitted_us; /* stamped by the backend, for its metrics */
    struct ledger_request_input input;
    union ledger_request_outcome outcome;
    union ledger_request_completion done;
    void *arg;
    struct ledger_request_chunk *chunks;
};

/* ---- making, for the port's own functions ---- */

/* A request of the client. When not even that memory can be had, a stand-in is filled in and submitted
 * like any other, by the same thread and before the next one is made; the client then owes a refusal
 * (BUSY; refusal.h). */
struct ledger_request *ledger_request_make(struct ledger_client *client,
                                           enum ledger_operation operation, void *arg);

/* A copy of an id; the request is refused as INVALID when its length is out of bounds. */
struct slice ledger_request_id(struct ledger_request *request, struct slice id);

/* The same, but SLICE_NONE is allowed. */
struct slice ledger_request_optional_id(struct ledger_request *request, struct slice id);

/* A copy of many, refused as LIMIT when there are more than `count_max`. */
const struct slice *ledger_request_ids(struct ledger_request *request, const struct slice *ids,
                                       size_t count, size_t count_max);

/* A limit within 1 and LEDGER_PAGE_MAX. */
uint32_t ledger_request_limit(uint32_t limit);

void ledger_request_refuse(struct ledger_request *request, enum ledger_status status);

/* Starts the time limit and gives the request to the backend, or back to the client if refused. */
void ledger_request_submit(struct ledger_request *request);

/* ---- working, for backends ---- */

/* Memory that lives as long as the request; NULL (and `exhausted`) when there is none. */
void *ledger_request_alloc(struct ledger_request *request, size_t bytes);

/* A copy with the request's life; SLICE_NONE when memory is exhausted. */
struct slice ledger_request_copy(struct ledger_request *request, struct slice s);

/* An array that grows by one item at a time in the request's memory. */
struct ledger_request_array {
    void *items;
    size_t count;
    size_t capacity;
};

/* Room for one more zeroed item, all of `item_bytes`; NULL when memory is exhausted. */
void *ledger_request_array_push(struct ledger_request *request, struct ledger_request_array *array,
                                size_t item_bytes);

bool ledger_request_writes(const struct ledger_request *request);
const char *ledger_request_name(const struct ledger_request *request);
const char *ledger_request_operation_name(enum ledger_operation operation);

/* Makes `status` the whole outcome. */
void ledger_request_fail(struct ledger_request *request, enum ledger_status status);

/* Shows an answer to the ledger the client asked, unless it saw this request's before. */
void ledger_request_observe(struct ledger_request *request, enum ledger_status status);

/* Gives a chain (linked by `next`, of any clients) back; their owner is the client from here on. */
void ledger_request_finish(struct ledger_request *chain);

/* ---- ending, for the client ---- */

/* Runs a completion with nothing but a status, when the request itself is not there to answer with. */
void ledger_request_answer_status(enum ledger_operation operation,
                                  union ledger_request_completion done, void *arg,
                                  enum ledger_status status);

/* Takes a request that has come back out of its client's books without running the completion: for one
 * who asks on behalf of another and needs the whole outcome. The caller frees it. */
void ledger_request_detach(struct ledger_request *request);

/* Runs the typed completion. */
void ledger_request_answer(struct ledger_request *request);
void ledger_request_free(struct ledger_request *request);

#endif

/*
 * Events for the application: the third part of the ledger port; ledger.h states the promises.
 *
 * An act of a user (a message, a contact, a chat, a call) that somebody outside must hear of is written as an event in the
 * transaction of the act itself, so that neither exists without the other. Which events an operation makes is decided here, from its
 * input and its outcome (ledger_event_derive.h), the same for every backend.
 *
 * Events wait in queues, one per receiver, each with the types its receiver wants and a bound. A client names the queues that its
 * operations fill (`event_queues`); a client that names none makes no events. Beyond the bound of a queue the oldest event gives way, and
 * is counted in `dropped`; a backend without a count of its queues (DynamoDB) leaves the bound to the age at which receivers give up.
 *
 *     act ──► queue ──ledger_events_list()──► receiver ──taken──► ledger_events_remove()
 *               ▲                                └──given up──► ledger_events_bury(): a dead letter
 *               └───────────── ledger_dead_events_replay() ◄───────────┘
 *
 * An event of a message names the message and does not hold its body: that is read from the message when the event is listed. So a
 * message that is deleted or erased loses its body in all events that wait, and in all dead letters; the events themselves stay.
 *
 * Order: events of one subject (a chat, or a user) are listed in the order in which their acts took effect.
 *
 * A queue has at most one holder, who alone sends what is in it. There is no clock in a lease: its version grows with every renewal, and
 * whoever has seen the same version for LEDGER_EVENT_LEASE_MS, by its own clock, may take it over from there.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_EVENTS_H
#define ROLLCALL_LEDGER_LEDGER_EVENTS_H

#include "ledger/ledger.h"

enum {
    LEDGER_EVENT_QUEUES_MAX = 16,
    LEDGER_EVENT_POSITION_BYTES_MAX = LEDGER_ID_BYTES_MAX,
    LEDGER_EVENT_MEMBERS_MAX = 1000,            /* chat members that an event names */
    LEDGER_EVENT_DATA_BYTES_MAX = 512 * 1024,   /* more than so many members need, escaped */
    LEDGER_EVENTS_PAGE_BYTES_MAX = 1024 * 1024, /* data of one page, except that it has one event */
    LEDGER_DEAD_EVENTS_MAX = 10000,             /* kept per queue; the oldest goes first */
    LEDGER_EVENT_LEASE_MS = 4000,
};

/* The types that an application may hear of, by their public names. The first group is durable. The second is not the ledger's, but
 * has its numbers here, so that a set of types is one number everywhere. */
#define LEDGER_EVENT_TYPES(X)                                                                      \
    X(MESSAGE_CREATED, "message.created")                                                          \
    X(MESSAGE_UNDELIVERED, "message.undelivered")                                                  \
    X(CONTACT_REQUESTED, "contact.requested")                                                      \
    X(CONTACT_ACCEPTED, "contact.accepted")                                                        \
    X(CONTACT_REMOVED, "contact.removed")                                                          \
    X(CHAT_CREATED, "chat.created")                                                                \
    X(CHAT_MEMBERS_CHANGED, "chat.members_changed")                                                \
    X(CALL_STARTED, "call.started")                                                                \
    X(CALL_ENDED, "call.ended")                                                                    \
    X(CALL_MISSED, "call.missed")                                                                  \
    X(PRESENCE_CHANGED, "presence.changed")                                                        \
    X(USER_CONNECTED, "user.connected")                                                            \
    X(USER_DISCONNECTED, "user.disconnected")

#define LEDGER_EVENT_TYPE_NAME(name, text) LEDGER_EVENT_##name,
enum ledger_event_type { LEDGER_EVENT_TYPES(LEDGER_EVENT_TYPE_NAME) LEDGER_EVENT_TYPE_COUNT };
#undef LEDGER_EVENT_TYPE_NAME

enum { LEDGER_EVENT_TYPES_ALL = (1 << LEDGER_EVENT_TYPE_COUNT) - 1 };

/* Returns the public name. */
const char *ledger_event_type_name(enum ledger_event_type type);

/* Returns false for a name of no type. */
bool ledger_event_type_parse(struct slice name, enum ledger_event_type *type);

/* Where events go. `name` is the same in every process of the fleet. */
struct ledger_event_queue {
    struct slice name;
    uint32_t types;     /* a bit for each type */
    uint32_t count_max; /* events; 0: no bound */
};

struct ledger_event {
    struct slice queue;    /* of a dead letter only */
    struct slice position; /* names the event in its queue; opaque */
    enum ledger_event_type type;
    struct slice subject; /* a chat, or a user: its events are ordered */
    int64_t time_ms;
    struct slice data;   /* a JSON object; of a message without its body */
    struct slice reason; /* of a dead letter only */
    uint64_t sequence; /* of the message in the chat that is the subject; 0: not about a message */
    struct slice body; /* of that message; empty if it is deleted, and of a dead letter */
};

struct ledger_events_outcome {
    enum ledger_status status;
    const struct ledger_event *events;
    size_t count;
    bool has_more;
};

typedef void (*ledger_events_done)(void *arg, const struct ledger_events_outcome *outcome);

/* Writes an event about a call that is no part of the history: it has started, or was missed by a user who was not there. `changed` is
 * always true. */
void ledger_call_event(struct ledger_client *client, enum ledger_event_type type,
                       const struct ledger_call *call, ledger_change_done done, void *arg);

/* Lists the oldest events of a queue, at most `limit` and LEDGER_EVENTS_PAGE_BYTES_MAX. An event may appear late, and then
 * before others of other subjects. */
void ledger_events_list(struct ledger_client *client, struct slice queue, uint32_t limit,
                        ledger_events_done done, void *arg);

/* Removes events by their positions, at most LEDGER_PAGE_MAX; `changed` is always false. */
void ledger_events_remove(struct ledger_client *client, struct slice queue,
                          const struct slice *positions, size_t count, ledger_change_done done,
                          void *arg);

/* Moves events to the dead letters. `changed` is always false. */
void ledger_events_bury(struct ledger_client *client, struct slice queue,
                        const struct slice *positions, size_t count, struct slice reason,
                        ledger_change_done done, void *arg);

/* Lists dead letters of all queues, after the given queue and position (SLICE_NONE: from the start), by queue, the oldest first. */
void ledger_dead_events_list(struct ledger_client *client, struct slice after_queue,
                             struct slice after_position, uint32_t limit, ledger_events_done done,
                             void *arg);

/* Moves dead letters back to the end of their queue. `changed`: there was at least one. */
void ledger_dead_events_replay(struct ledger_client *client, struct slice queue,
                               const struct slice *positions, size_t count, ledger_change_done done,
                               void *arg);

struct ledger_event_queue_outcome {
    enum ledger_status status;
    struct slice holder;    /* empty: nobody has held it yet */
    uint64_t lease_version; /* grows with every renewal */
    uint64_t event_count;   /* UINT64_MAX: not counted */
    uint64_t dropped;       /* events that gave way at the bound, ever */
};

typedef void (*ledger_event_queue_done)(void *arg,
                                        const struct ledger_event_queue_outcome *outcome);

/* Reads who holds a queue and what is in it. */
void ledger_event_queue_get(struct ledger_client *client, struct slice queue,
                            ledger_event_queue_done done, void *arg);

/* Renews the lease of `holder`, or takes it over if it still has the version that was seen. Returns the lease as it is then; it was
 * granted if its holder is `holder`. */
void ledger_event_lease(struct ledger_client *client, struct slice queue, struct slice holder,
                        uint64_t seen_version, ledger_event_queue_done done, void *arg);

#endif

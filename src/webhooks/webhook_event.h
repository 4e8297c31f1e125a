/*
 * An event on its way to one endpoint: one allocation, in a list of its lane.
 *
 * Its id is a hash of what the ledger stores of it (type, time, subject, data), so that it is the same for every endpoint and every try,
 * in every process, whether its message still has a body or not, and an application that has seen it can drop it.
 */
#ifndef ROLLCALL_WEBHOOKS_WEBHOOK_EVENT_H
#define ROLLCALL_WEBHOOKS_WEBHOOK_EVENT_H

#include "base/buffer.h"
#include "base/list.h"
#include "ledger/ledger_events.h"

enum { WEBHOOK_EVENT_ID_BYTES = sizeof("evt_") - 1 + 32 };

enum webhook_event_state {
    WEBHOOK_EVENT_READY,
    WEBHOOK_EVENT_UNRESOLVED, /* a message: who has no device is not known yet */
    WEBHOOK_EVENT_RESOLVING,
    WEBHOOK_EVENT_IN_FLIGHT,
    WEBHOOK_EVENT_TAKEN, /* by the endpoint, or there was nothing to tell; from here on it only waits for its removal */
    WEBHOOK_EVENT_GIVEN_UP,
    WEBHOOK_EVENT_REMOVING, /* from the ledger, or to its dead letters */
};

struct webhook_event {
    struct list item;
    enum webhook_event_state state;
    enum ledger_event_type type;
    int64_t time_ms;     /* wall clock */
    int64_t added_at_ms; /* monotonic */
    int64_t read_at_ms;  /* monotonic: when its message was read last */
    int64_t due_at_ms;   /* monotonic: it is not tried, or resolved, before */
    unsigned failures;   /* of requests with this event alone */
    uint64_t order_hash; /* of the subject: events of one hash stay in order */
    struct slice position;
    struct slice subject;
    struct slice data;
    bool is_about_message;
    struct slice body;   /* of its message; empty: deleted */
    char *replaced_data; /* owned, if the data was replaced */
    char id[WEBHOOK_EVENT_ID_BYTES];
    char bytes[];
};

/* Copies an event that was read now. Returns NULL when out of memory. */
struct webhook_event *webhook_event_make(const struct ledger_event *event, int64_t now_ms);

/* Removes it from its list and frees it. */
void webhook_event_free(struct webhook_event **event);

/* Writes the id of an event. */
void webhook_event_id(char out[WEBHOOK_EVENT_ID_BYTES], enum ledger_event_type type,
                      int64_t time_ms, struct slice subject, struct slice data);

/* Notes what was read of the event again: its message may have been deleted. */
void webhook_event_refresh(struct webhook_event *event, const struct ledger_event *read,
                           int64_t now_ms);

/* Appends {"id","type","time","data"}; a message's data ends with "body", or with "deleted". */
void webhook_event_write(struct buffer *out, const struct webhook_event *event);

#endif

/*
 * The parts of the client:
 *
 *   aggregate_client.c  making and freeing, calls and their answers, listeners
 *   aggregate_links.c   links: hello, frames, time, and which aggregator has which slot
 */
#ifndef ROLLCALL_AGGREGATE_AGGREGATE_CLIENT_INTERNAL_H
#define ROLLCALL_AGGREGATE_AGGREGATE_CLIENT_INTERNAL_H

#include "aggregate/aggregate_client.h"
#include "peer/peer_dialer.h"

enum aggregate_link_state { AGGREGATE_LINK_DOWN, AGGREGATE_LINK_GREETING, AGGREGATE_LINK_READY };

struct aggregate_link {
    struct aggregate_client *client;
    struct peer_dialer *dialer;
    enum aggregate_link_state state;
    bool is_available; /* it says that Redis answers */
    bool is_leaving;
    uint64_t sessions;
    int64_t heard_ms;
    struct list calls;                        /* unanswered, the oldest first */
    char refusal[AGGREGATE_REASON_BYTES_MAX]; /* the last one that was logged */
};

/* One unanswered call, or a free place for one. */
struct aggregate_pending {
    struct list place;           /* in the link's calls */
    struct aggregate_link *link; /* NULL: free */
    aggregate_answered done;
    void *arg;
    int64_t sent_ms;
    uint32_t generation; /* grows each time the place is freed */
    uint32_t next_free;
    uint16_t slot;
    bool has_slot;
};

/* The calls of a slot that are unanswered, and where. */
struct aggregate_slot {
    uint16_t unanswered;
    uint16_t aggregator; /* where they are */
    uint16_t owner;      /* by the ring, among the usable ones */
};

struct aggregate_client {
    struct aggregate_client_options options;
    char instance[AGGREGATE_INSTANCE_LEN + 1];
    struct aggregate_ring ring;
    struct aggregate_link *links;      /* one for each address */
    bool *usable;                      /* likewise */
    struct aggregate_slot *slots;      /* AGGREGATE_SLOTS */
    struct aggregate_pending *pending; /* AGGREGATE_CALLS_MAX; untouched places cost no memory */
    uint32_t first_free;
    uint32_t used_end;
    size_t pending_count;
    struct list listeners;
    struct wheel_timer tick;
    int64_t ticked_ms;
    struct buffer frame; /* that is being encoded */
    bool is_closed;
};

/* ---- aggregate_client.c ---- */

/* Answers all calls of a link as lost. */
void aggregate_client_lose_calls(struct aggregate_link *link);

void aggregate_client_take_answer(struct aggregate_link *link, uint64_t id,
                                  enum aggregate_result result, struct slice body);

void aggregate_client_tell_changed(struct aggregate_client *client);
void aggregate_client_tell_notice(struct aggregate_link *link, enum aggregate_notice notice,
                                  struct slice body);

/* ---- aggregate_links.c ---- */

bool aggregate_links_start(struct aggregate_client *client);
void aggregate_links_drop(struct aggregate_client *client);

size_t aggregate_link_index(const struct aggregate_link *link);

/* Returns false, having queued nothing, when the link does not take it. */
bool aggregate_link_send(struct aggregate_link *link, const struct aggregate_frame *frame);

#endif

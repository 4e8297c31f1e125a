/*
 * Sends a message. Every message enters its chat through message_send().
 *
 *   size of the body → ledger (breaker, transaction, disk) → feed → result
 *
 * Promises: a send succeeds only after the commit and the publish; everything else is an error; each send ends
 * with exactly one result, also while draining, while the breaker is open, or when the sender has disconnected.
 * When the commit succeeded and the publish failed, the send fails with SERVICE_UNAVAILABLE; its repetition
 * finds the sequence of the first send and publishes that. Commit and publish share one time limit
 * (gateway.timeouts.durability_rpc).
 *
 * Rate limits and the bound on pending replies belong to the connection, or to the REST user; callers apply
 * them first.
 */
#ifndef ROLLCALL_MESSAGES_MESSAGE_SEND_H
#define ROLLCALL_MESSAGES_MESSAGE_SEND_H

#include "base/ulid.h"
#include "messages/message_plane.h"

/* Borrowed for the duration of message_send(). */
struct message_send_order {
    struct slice chat;
    struct slice sender;
    struct slice client_message_id;
    struct slice body;
    const struct ulid *except; /* the connection that gets the result, not the message; or NULL */
};

/* Lasts until the completion returns. */
struct message_send_result {
    bool accepted;
    struct message_ack ack;     /* if accepted */
    struct message_error error; /* otherwise; contains the client_message_id */
};

typedef void (*message_send_done)(void *arg, const struct message_send_result *result);

/* Returns whether a body is small enough. Callers check this first, before they count rates. */
bool message_send_body_fits(const struct message_plane *plane, struct slice body);

/* Sends a message; refuses a body that does not fit. `done` runs exactly once, possibly before this function
 * returns. */
void message_send(struct message_plane *plane, const struct message_send_order *order,
                  message_send_done done, void *arg);

#endif

/*
 * Sending a message: the one road from a command to a place in a chat.
 *
 *   body's size → ledger (breaker, transaction, disk) → feed → result
 *
 * What a send promises: success is told only after the commit and the publish; whatever else happens
 * is told as an error; each send ends with exactly one result, also while draining, when the breaker
 * is open or when whoever asked has gone. When the commit succeeded and the publish did not, the send
 * fails with SERVICE_UNAVAILABLE: its repetition finds the first one's sequence and publishes that.
 *
 * Rate limits and the bound on requests under way belong to whom one sends for, a connection or a user
 * of REST, and are applied there before.
 */
#ifndef ROLLCALL_MESSAGES_MESSAGE_SEND_H
#define ROLLCALL_MESSAGES_MESSAGE_SEND_H

#include "base/ulid.h"
#include "messages/message_plane.h"

/* Borrowed for the call. */
struct send_order {
    struct slice chat;
    struct slice sender;
    struct slice client_message_id;
    struct slice body;
    const struct ulid
        *except; /* the connection that gets the result and not the message; or NULL */
};

/* Lasts for the completion. */
struct send_result {
    bool accepted;
    struct message_ack ack;     /* when accepted */
    struct message_error error; /* otherwise; names the client_message_id */
};

typedef void (*message_send_done)(void *arg, const struct send_result *result);

/* Whether a body is not too large: what is asked first, before rates are counted. */
bool send_body_fits(const struct message_plane *plane, struct slice body);

/* Runs `done` once, also before it returns. A body that does not fit is refused. */
void send_message(struct message_plane *plane, const struct send_order *order,
                  message_send_done done, void *arg);

#endif

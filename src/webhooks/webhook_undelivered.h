/*
 * Which recipients of a message had no device: the second half of `message.undelivered`.
 *
 * The ledger writes one such event with every message, without recipients. WEBHOOK_UNDELIVERED_MS after the message, and as long after the
 * start of this process, so that clients can reconnect after a restart, the members of the chat are read from the ledger and their
 * routes from the state store. Members without one become the event's `user_ids`; if there are none, nothing is sent. While
 * ledger or store do not answer, the event waits.
 *
 * Part of a webhook_queue, on its thread.
 */
#ifndef ROLLCALL_WEBHOOKS_WEBHOOK_UNDELIVERED_H
#define ROLLCALL_WEBHOOKS_WEBHOOK_UNDELIVERED_H

#include "webhooks/webhook_queue.h"

/* Sets when a new event is due. */
void webhook_undelivered_prepare(struct webhook_queue *queue, struct webhook_event *event);

/* Starts to resolve events that are due, at most WEBHOOK_RESOLUTIONS_MAX chats at a time. */
void webhook_undelivered_resolve(struct webhook_queue *queue);

#endif

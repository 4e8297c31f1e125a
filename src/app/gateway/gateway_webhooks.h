/*
 * Connects one gateway with the webhooks: its acts in the ledger become events, and what is not in the ledger (presence,
 * connections) is offered to the sender. A part of the composition root (gateway_compose.c). Without endpoints there is nothing of it.
 *
 * Runs on the gateway's thread.
 */
#ifndef ROLLCALL_APP_GATEWAY_GATEWAY_WEBHOOKS_H
#define ROLLCALL_APP_GATEWAY_GATEWAY_WEBHOOKS_H

#include "session/session_context.h"
#include "webhooks/webhook_sender.h"

/* Makes the sender and sets the hooks of sessions and presence. Returns false when out of memory. */
bool gateway_webhooks_make(struct webhook_sender **sender, const struct webhook_sender_parts *parts,
                           struct session_context *sessions);

#endif

/*
 * What happens between two users once the ledger has it: caches, sight and events in the order that
 * keeps a block secret (presence/visibility/visibility_change.h), then the answer to who asked for it.
 */
#ifndef ROLLCALL_API_CONTACT_EVENTS_H
#define ROLLCALL_API_CONTACT_EVENTS_H

#include "api/api_context.h"
#include "presence/visibility/visibility_change.h"

/* A request waits for `to`: all their devices are told. */
void contact_events_requested(struct session_context *handlers, struct slice request_id,
                              struct slice from, struct slice to);

/* They are contacts now: both are told, if it `is_new`, and see each other. Then 200 or 201 with `json`,
 * which is taken. */
void contact_events_made(struct exchange *exchange, struct slice user, struct slice peer,
                         bool is_new, unsigned status, struct buffer *json);

/* The contact, a block or both have changed. Both are told of a contact that ended. Then 204. */
void contact_events_changed(struct exchange *exchange, enum visibility_cause cause,
                            struct slice peer, bool contact_ended);

#endif

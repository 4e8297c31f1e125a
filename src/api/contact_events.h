/*
 * What follows a change between two users that the ledger has stored: caches, visibility and events in the order
 * that keeps a block secret (presence/visibility/visibility_change.h), then the answer to the request.
 */
#ifndef ROLLCALL_API_CONTACT_EVENTS_H
#define ROLLCALL_API_CONTACT_EVENTS_H

#include "api/api_context.h"
#include "presence/visibility/visibility_change.h"

/* Notifies all devices of `to` of a contact request. */
void contact_events_requested(struct session_context *sessions, struct slice request_id,
                              struct slice from, struct slice to);

/* The two have become contacts: notifies both, if it `is_new`, makes them visible to each other, and answers with
 * `status` and `json`, which it takes. */
void contact_events_made(struct exchange *exchange, struct slice user, struct slice other,
                         bool is_new, unsigned status, struct buffer *json);

/* The contact, a block or both have changed: notifies both if a contact ended, then answers 204. */
void contact_events_changed(struct exchange *exchange, enum visibility_cause cause,
                            struct slice other, bool contact_ended);

#endif

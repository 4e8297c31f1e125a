/*
 * What follows a change between two users that the ledger has stored: caches, visibility and events in the order
 * that keeps a block secret (presence/visibility/visibility_change.h), then the answer to the request.
 */
#ifndef ROLLCALL_API_CONTACT_EVENTS_H
#define ROLLCALL_API_CONTACT_EVENTS_H

#include "api/api_context.h"
#include "presence/visibility/visibility_change.h"

/* Returns whether users make and end contacts; else it has answered 403: the application does (contacts.managed_by). */
bool contact_events_are_of_users(struct exchange **exchange);

/* Notifies all devices of `to` of a contact request. */
void contact_events_requested(struct session_context *sessions, struct slice request_id,
                              struct slice from, struct slice to);

/* The two have become contacts: notifies both, if it `is_new`, and makes them visible to each other. `done` runs exactly
 * once, possibly before this function returns. */
void contact_events_tell_made(struct session_context *sessions, struct slice user,
                              struct slice other, bool is_new, visibility_change_done done,
                              void *arg);

/* The contact, a block or both have changed: ends their calls and notifies both if a contact ended. `done` as above. */
void contact_events_tell_changed(struct session_context *sessions, enum visibility_cause cause,
                                 struct slice user, struct slice other, bool contact_ended,
                                 visibility_change_done done, void *arg);

/* Does the first of these, then answers with `status` and `json`, which it takes. */
void contact_events_made(struct exchange *exchange, struct slice user, struct slice other,
                         bool is_new, unsigned status, struct buffer *json);

/* Does the second for the user of the exchange, then answers 204. */
void contact_events_changed(struct exchange *exchange, enum visibility_cause cause,
                            struct slice other, bool contact_ended);

#endif

/*
 * What follows a change of a chat that the ledger has stored: the graph cache forgets the users concerned, and clients are
 * told.
 *
 *   chat_added {chat_id, kind}   to all devices of a user who is a member from now on
 *   chat_removed {chat_id}       to all devices of a user who is no member any more
 *   chat_changed {chat_id}       to everybody who has the chat open, and to all devices of a user whose role changed
 *
 * A change that the ledger had already (`changed` is false) takes effect again: a client that got no answer repeats its
 * request, and the first attempt may have reached nobody. But it is not pushed again, or a repetition would be a way to
 * disturb others.
 */
#ifndef ROLLCALL_API_CHAT_EVENTS_H
#define ROLLCALL_API_CHAT_EVENTS_H

#include "api/api_context.h"

void chat_events_created(struct session_context *sessions, const struct ledger_chat *chat,
                         bool changed);
void chat_events_member_added(struct session_context *sessions, struct slice chat,
                              struct slice user, bool changed);
void chat_events_member_removed(struct session_context *sessions, struct slice chat,
                                struct slice user, bool changed);

/* The user became an admin or ceased to be one. */
void chat_events_role_changed(struct session_context *sessions, struct slice chat,
                              struct slice user);

#endif

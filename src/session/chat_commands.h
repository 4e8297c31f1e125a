/* What else a session's open chats need; the commands themselves are in dispatch.h. */
#ifndef ROLLCALL_SESSION_CHAT_COMMANDS_H
#define ROLLCALL_SESSION_CHAT_COMMANDS_H

#include "session/session.h"

/* Who types and how people are gave way to what was owed to a slow reader, and it has caught up: sends a
 * snapshot of every chat it has open. */
void chat_commands_refresh(struct session *session);

/* resync.refresh_chat: the same of one chat that the endpoint's session has open. */
void chat_commands_refresh_chat(struct endpoint *endpoint, struct slice chat_id);

#endif

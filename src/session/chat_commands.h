/* Refreshes a session's open chats; the commands themselves are declared in dispatch.h. */
#ifndef ROLLCALL_SESSION_CHAT_COMMANDS_H
#define ROLLCALL_SESSION_CHAT_COMMANDS_H

#include "session/session.h"

/* Sends a snapshot of every open chat: typing and presence were shed while the client read slowly, and it has
 * caught up. */
void chat_commands_refresh(struct session *session);

/* Hook of presence/resync.h: sends a snapshot of one chat that the endpoint's session has open. */
void chat_commands_refresh_chat(struct endpoint *endpoint, struct slice chat_id);

#endif
